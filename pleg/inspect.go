package pleg

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// inspect carries out the inspections that were asked for, until ctx ends.
func (p *PLEG) inspect(ctx context.Context) {
	var looks sync.WaitGroup
	defer looks.Wait()
	for {
		for e := p.begin(); e != nil; e = p.begin() {
			looks.Go(func() { p.look(ctx, e) })
		}
		select {
		case <-ctx.Done():
			return
		case <-p.asked:
		}
	}
}

func (p *PLEG) begin() *entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.begin()
}

// ask makes sure that an inspection of the pod will begin, and returns it. Callers hold mu.
func (p *PLEG) ask(pod types.UID, waited bool) *look {
	e := p.entry(pod)
	e.stopLater()
	poke(p.asked)
	return p.queue.ask(e, waited)
}

// look carries out one inspection of a pod.
func (p *PLEG) look(ctx context.Context, e *entry) {
	l := e.now
	slow := time.AfterFunc(slowLook, func() { p.leave(l) })
	defer slow.Stop()
	began := time.Now()
	pod, err := p.inspectPod(ctx, e.uid)
	if ctx.Err() == nil {
		p.opts.observer.inspect(e.uid, time.Since(began), err)
	}

	events := p.learn(ctx, e, pod, err)
	close(l.done)
	for _, event := range events {
		p.opts.observer.event(event)
	}
	if len(events) > 0 {
		p.notify(e.uid)
	}
	p.end(e)
}

func (p *PLEG) inspectPod(ctx context.Context, uid types.UID) (*podmill.RuntimePod, error) {
	ctx, cancel := context.WithTimeout(ctx, p.opts.timeout)
	defer cancel()
	pod, err := p.runtime.InspectPod(ctx, uid)
	if err == nil && pod == nil {
		err = errors.New("the runtime gave no answer")
	}
	if err != nil {
		return nil, fmt.Errorf("inspect pod %s: %w", uid, err)
	}
	return pod, nil
}

// learn makes the outcome of an inspection known, and returns what it says that has happened.
func (p *PLEG) learn(ctx context.Context, e *entry, pod *podmill.RuntimePod, err error) []Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.now.pod, e.now.err, e.now.over = pod, err, true
	if err != nil {
		e.failed++
		if ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).Error(err, "pod not inspected", "attempt", e.failed)
		}
		return nil
	}
	events := diff(e.seen, pod)
	e.seen, e.known, e.sketch, e.failed = pod, digestOfPod(p.seed, pod), nil, 0
	if pod.Empty() {
		e.seen = nil
	}
	e.confirm(pod)
	return events
}

// end lets the next inspection of a pod begin. One that failed is followed by another after a while; a pod that is gone is forgotten.
func (p *PLEG) end(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.end(e)
	switch {
	case e.next != nil:
	case e.failed > 0:
		e.later = time.AfterFunc(backoff(time.Second, e.failed), func() { p.again(e.uid) })
	case e.seen == nil:
		delete(p.pods, e.uid)
	}
	poke(p.asked)
}

// leave lets another inspection begin beside one that takes long.
func (p *PLEG) leave(l *look) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.leave(l)
	poke(p.asked)
}

// stopLater takes back the inspections that would be due when Run has ended.
func (p *PLEG) stopLater() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.pods {
		e.stopLater()
	}
}

func (e *entry) stopLater() {
	if e.later != nil {
		e.later.Stop()
		e.later = nil
	}
}

// poke puts a token into a channel that holds one.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
