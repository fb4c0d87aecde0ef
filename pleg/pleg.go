package pleg

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// ErrEnded is what a caller of [PLEG.Observe] gets who waits for an inspection when Run has returned.
var ErrEnded = errors.New("pleg has ended")

// PLEG knows what a runtime holds, pod by pod, and says when that changes. Its methods may be called concurrently.
type PLEG struct {
	runtime podmill.Lister
	notify  func(types.UID)
	opts    options

	running atomic.Bool
	ended   chan struct{}    // closed when Run returns
	first   chan struct{}    // closed when the first good listing has come
	asked   chan struct{}    // holds one token when an inspection may begin
	relists chan struct{}    // holds one token when a listing is wanted now
	listing podmill.Snapshot // of the goroutine that lists

	seed maphash.Seed

	mu        sync.Mutex
	pods      map[types.UID]*entry // held by the runtime, or being looked at
	queue     queue
	streaming bool
	listed    time.Time // when the last good listing came; zero before the first
	listings  uint64    // how many good listings there were
}

// entry is what is known of one pod.
type entry struct {
	uid    types.UID
	seen   *podmill.RuntimePod      // as last inspected; nil before that, and never empty
	known  digest                   // of seen
	stale  bool                     // something was heard of it since its last inspection began that this may not have seen
	failed int                      // inspections in a row
	heard  map[string]podmill.State // what events told while the inspection under way went on, all that made it stale; nil if none did
	later  *time.Timer              // will ask for an inspection if nobody does before

	listing uint64              // the last listing that it was in
	listed  digest              // of what that said
	sketch  *podmill.RuntimePod // what that said, where nothing better is known

	now   *look         // under way
	next  *look         // asked for, not begun
	place *list.Element // in the queue; nil when it is not there
}

// New returns a PLEG that looks at runtime once it runs. It calls notify when something of a pod may have changed, and after it has
// seen a change; notify returns at once.
func New(runtime podmill.Lister, notify func(types.UID), opts ...Option) *PLEG {
	o := newOptions(opts)
	return &PLEG{
		runtime: runtime,
		notify:  notify,
		opts:    o,
		ended:   make(chan struct{}),
		first:   make(chan struct{}),
		asked:   make(chan struct{}, 1),
		relists: make(chan struct{}, 1),
		pods:    map[types.UID]*entry{},
		seed:    maphash.MakeSeed(),
		queue:   queue{room: o.parallel},
	}
}

// Run lists, follows the runtime's events and inspects until ctx ends. It may be called once.
func (p *PLEG) Run(ctx context.Context) error {
	if p.running.Swap(true) {
		return errors.New("pleg was run before")
	}
	defer close(p.ended)
	var parts sync.WaitGroup
	parts.Go(func() { p.list(ctx) })
	parts.Go(func() { p.inspect(ctx) })
	if streamer, ok := podmill.As[podmill.EventStreamer](p.runtime); ok {
		parts.Go(func() { p.follow(ctx, streamer) })
	}
	parts.Wait()
	p.stopLater()
	return nil
}

// Observe returns what the runtime holds of a pod: nothing is an answer, not an error. With fresh it waits for an inspection that began
// after the call, which callers share; it is for those who have just changed something or tried to. Without it the newest that is known
// is returned at once, unless that is not good enough: the pod was not inspected yet, or something was heard of it since, or its last
// inspection failed. Then Observe waits for an inspection, and returns its error if it fails. It waits for Run to start too, but not beyond ctx.
func (p *PLEG) Observe(ctx context.Context, pod types.UID, fresh bool) (*podmill.RuntimePod, error) {
	p.mu.Lock()
	if !fresh {
		if seen := p.known(pod); seen != nil {
			p.mu.Unlock()
			return seen, nil
		}
	}
	l := p.underWay(pod)
	if fresh || l == nil || p.pods[pod].stale {
		l = p.ask(pod, true)
	}
	p.mu.Unlock()

	select {
	case <-l.done:
		return l.pod, l.err
	case <-ctx.Done():
		return nil, fmt.Errorf("observe pod %s: %w", pod, ctx.Err())
	case <-p.ended:
		return nil, fmt.Errorf("observe pod %s: %w", pod, ErrEnded)
	}
}

// known returns the newest that is known of a pod, nil where that is nothing to go by. A pod that was neither listed nor
// heard of since is known to be absent. Callers hold mu.
func (p *PLEG) known(pod types.UID) *podmill.RuntimePod {
	switch e := p.pods[pod]; {
	case e == nil && !p.listed.IsZero():
		return &podmill.RuntimePod{PodRef: podmill.PodRef{UID: pod}}
	case e != nil && e.failed == 0 && !e.stale:
		return e.seen
	default:
		return nil
	}
}

// entry returns what is kept of a pod, from now on if need be. Callers hold mu.
func (p *PLEG) entry(pod types.UID) *entry {
	e := p.pods[pod]
	if e == nil {
		e = &entry{uid: pod}
		p.pods[pod] = e
	}
	return e
}

// underWay returns the inspection of a pod that has begun and was not answered, nil if there is none. Callers hold mu.
func (p *PLEG) underWay(pod types.UID) *look {
	if e := p.pods[pod]; e != nil && e.now != nil && !e.now.over {
		return e.now
	}
	return nil
}

// Pods returns every pod that the runtime holds, in no order; ok is false before the first good listing. A pod that was listed and
// could not be inspected yet has what the listing says: names, states and attempts.
func (p *PLEG) Pods() (pods []*podmill.RuntimePod, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pods = make([]*podmill.RuntimePod, 0, len(p.pods))
	for _, e := range p.pods {
		if e.seen != nil {
			pods = append(pods, e.seen)
		} else if e.sketch != nil {
			pods = append(pods, e.sketch)
		}
	}
	return pods, !p.listed.IsZero()
}

// Listed returns a channel that is closed when the first good listing has come: from then on a pod that the runtime holds is known.
func (p *PLEG) Listed() <-chan struct{} { return p.first }

// Healthy returns an error when no listing has succeeded for three minutes, or none yet.
func (p *PLEG) Healthy() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listed.IsZero() {
		return errors.New("pleg has yet to be successful")
	}
	if ago := time.Since(p.listed); ago > unhealthyAfter {
		return fmt.Errorf("pleg was last seen active %v ago; threshold is %v", ago, unhealthyAfter)
	}
	return nil
}
