package syncloop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// Workers look after one pod each. Every method returns at once.
type Workers interface {
	// Update says that a pod is wanted, and as it is now.
	Update(pod *corev1.Pod)
	// Remove says that nobody wants a pod any more.
	Remove(pod types.UID)
	// Sync says that something happened to a pod. One that is not known is ignored.
	Sync(pod types.UID)
	// Orphan says that the runtime holds a pod that nobody wants.
	Orphan(pod *podmill.RuntimePod)
	// Leftover says that the runtime holds something of a pod that is known. For one that has finished that is news.
	Leftover(pod types.UID)
	// Known reports whether a pod has a worker: something of it may still run, or have to be cleaned up. It may be called
	// concurrently with all the others. From Update or Orphan until the pod has finished it is true.
	Known(pod types.UID) bool
}

// Loop merges sources, and passes on to the workers what they want and what happens. Its methods may be called concurrently.
type Loop struct {
	workers Workers
	inbox   *Inbox
	sources []podmill.PodSource
	opts    options

	running    atomic.Bool
	deliveries chan delivery
	merged     merged                    // the loop's goroutine's own
	batch      []types.UID               // likewise
	unnamed    map[types.UID]*corev1.Pod // likewise; static pods that wait to be sure of their names
	kept       map[types.UID]struct{}    // likewise; who was wanted or held at the last housekeeping
	cleaned    time.Time                 // likewise; when the last round of cleaning began
	cleaning   atomic.Bool               // a round of cleaning is under way
	due        atomic.Bool               // another is due
	complaint  string                    // of the last round of cleaning

	mu     sync.Mutex
	pods   map[types.UID]*corev1.Pod // what merged comes to, for others to read
	synced bool
	beat   time.Time // when the loop last came round; zero before Run
}

// New returns a loop that takes pods from sources and keys from inbox, once it runs. Of a pod that several sources want it takes the one of
// the first of them.
func New(workers Workers, inbox *Inbox, sources []podmill.PodSource, opts ...Option) *Loop {
	return &Loop{
		workers:    workers,
		inbox:      inbox,
		sources:    sources,
		opts:       newOptions(opts),
		deliveries: make(chan delivery),
		merged:     newMerged(sources),
		unnamed:    map[types.UID]*corev1.Pod{},
		pods:       map[types.UID]*corev1.Pod{},
		kept:       map[types.UID]struct{}{},
	}
}

// Run runs the sources and the loop until ctx ends. It may be called once.
func (l *Loop) Run(ctx context.Context) error {
	if l.running.Swap(true) {
		return errors.New("sync loop was run before")
	}
	var parts sync.WaitGroup
	defer parts.Wait()
	for source := range l.sources {
		parts.Go(func() { l.follow(ctx, source) })
	}
	housekeeping := time.NewTicker(l.opts.period)
	defer housekeeping.Stop()
	for {
		l.alive()
		select {
		case <-ctx.Done():
			return nil
		case d := <-l.deliveries:
			l.merge(ctx, d)
		case <-l.inbox.wake:
			l.drain(ctx)
		case <-housekeeping.C:
			if round := l.housekeep(ctx); round != nil {
				parts.Go(round)
			}
		}
	}
}

// drain passes on what the inbox holds.
func (l *Loop) drain(ctx context.Context) {
	l.startWaiting(ctx)
	l.batch = l.inbox.take(l.batch)
	for _, pod := range l.batch {
		l.workers.Sync(pod)
	}
}

func (l *Loop) alive() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beat = time.Now()
}

// Pod returns the newest version of a pod that a source wants.
func (l *Loop) Pod(uid types.UID) (*corev1.Pod, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pod, ok := l.pods[uid]
	return pod, ok
}

// Pods returns all pods that the sources want, in no order. Unless synced, a source has not told its pods yet, and there may
// be more of them.
func (l *Loop) Pods() (pods []*corev1.Pod, synced bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pods = make([]*corev1.Pod, 0, len(l.pods))
	for _, pod := range l.pods {
		pods = append(pods, pod)
	}
	return pods, l.synced
}

// Healthy returns an error when the loop does not run, or has not come round for two minutes: a worker's method or the runtime func
// blocks it.
func (l *Loop) Healthy() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.beat.IsZero() {
		return errors.New("sync loop has yet to run")
	}
	if ago := time.Since(l.beat); ago > stuckAfter {
		return fmt.Errorf("sync loop was last seen active %v ago; threshold is %v", ago, stuckAfter)
	}
	return nil
}
