package pleg

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
)

// list lists all that the runtime holds, again and again until ctx ends.
func (p *PLEG) list(ctx context.Context) {
	log := logr.FromContextOrDiscard(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for failed := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-p.relists:
		}
		began := time.Now()
		err := p.relist(ctx)
		if ctx.Err() != nil {
			return
		}
		p.opts.observer.relist(time.Since(began), err)
		switch {
		case err != nil && !failed:
			log.Error(err, "runtime not listed, trying again", "period", p.opts.period)
		case err == nil && failed:
			log.Info("runtime listed again")
		}
		failed = err != nil
		timer.Reset(p.period(failed))
	}
}

// period is the time until the next listing.
func (p *PLEG) period(failed bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.streaming && !failed {
		return p.opts.streaming
	}
	return p.opts.period
}

// relist lists once.
func (p *PLEG) relist(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.opts.timeout)
	defer cancel()
	if err := p.runtime.ListPods(ctx, &p.listing); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	p.learnListing()
	return nil
}

// learnListing has every pod inspected of which the listing says something else than what is known. That a known pod is missing in
// it is no more than that either: only an inspection, which cannot be older than what is known, says that a pod is gone. Where the
// listing says of all pods what is known, nothing is allocated.
func (p *PLEG) learnListing() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listed.IsZero() {
		defer close(p.first)
	}
	p.listed = time.Now()
	p.listings++
	for i := range p.listing.Items {
		line := &p.listing.Items[i]
		e := p.entry(line.Pod.UID)
		if e.listing != p.listings {
			e.listing, e.listed, e.sketch = p.listings, 0, nil
		}
		e.listed += digestOf(p.seed, line.ID, line.State)
		if e.seen == nil {
			e.sketch = sketch(e.sketch, line)
		}
	}
	for uid, e := range p.pods {
		if e.listing != p.listings {
			e.listed, e.sketch = 0, nil
		}
		if e.listed != e.known && e.later == nil { // one that waits for its next try goes on waiting
			p.ask(uid, false)
		}
	}
}
