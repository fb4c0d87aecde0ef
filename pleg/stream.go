package pleg

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"

	"github.com/podmill/podmill"
)

// follow takes the runtime's events as hints until ctx ends.
func (p *PLEG) follow(ctx context.Context, streamer podmill.EventStreamer) {
	log := logr.FromContextOrDiscard(ctx)
	for failures := 1; ; failures++ {
		began := time.Now()
		err := streamer.StreamEvents(ctx, func() { p.stream(true, nil) }, p.event)
		if ctx.Err() != nil {
			return
		}
		p.stream(false, err)
		if errors.Is(err, errors.ErrUnsupported) {
			log.V(1).Info("runtime has no events, listing only", "period", p.opts.period)
			return
		}
		if time.Since(began) > time.Minute {
			failures = 1
		}
		wait := backoff(100*time.Millisecond, failures)
		log.Info("runtime's events broke off, connecting again", "reason", err, "wait", wait)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// stream notes that events come from now on, or no longer. What was missed until then is found by listing.
func (p *PLEG) stream(up bool, reason error) {
	p.mu.Lock()
	turned := p.streaming != up
	p.streaming = up
	p.mu.Unlock()
	if up || turned {
		poke(p.relists)
	}
	p.opts.observer.stream(up, reason)
}
