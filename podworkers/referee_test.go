package podworkers_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// referee is a Syncer that knows what was said to the workers, in the dumbest form, and objects to every call that should not be. It
// behaves as badly as it is told to.
type referee struct {
	mu      sync.Mutex
	began   time.Time
	pods    map[types.UID]*record
	lives   map[*corev1.Pod]int
	open    atomic.Bool // Run runs
	moods   []mood
	calls   int
	history []string
	faults  []string
}

// record is what is known of one UID: what was asked for, and what was done about it.
type record struct {
	newest *corev1.Pod // what its source wants; nil if it does not
	ends   bool        // and that has to end
	life   int         // counts the times that it was asked for anew

	under    int // the life that is under way, or was the last that was
	step     step
	busy     bool
	runs     bool      // containers may run
	deadline time.Time // of the last stop in this life
	synced   string    // the version that was synced last
}

// step is how far the life that is under way has come.
type step int

const (
	nothing step = iota
	synced
	stopping
	orphanStopping
	stopped
	cleaned
)

// mood is how a sync goes.
type mood struct {
	takes    time.Duration
	deaf     bool // does not notice that its context ends
	fails    bool
	finished bool
}

func (r *referee) say(format string, args ...any) {
	r.history = append(r.history, fmt.Sprintf("%v ", time.Since(r.began))+fmt.Sprintf(format, args...))
}

func (r *referee) object(format string, args ...any) {
	r.say("OBJECTION: "+format, args...)
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

func (r *referee) record(uid types.UID) *record {
	if r.pods[uid] == nil {
		r.pods[uid] = &record{}
	}
	return r.pods[uid]
}

// call checks that a call may be made, carries it out, and takes the outcome down.
func (r *referee) call(ctx context.Context, uid types.UID, name string, check func(*record), done func(*record, bool)) (bool, error) {
	r.mu.Lock()
	rec := r.record(uid)
	r.say("%s %s", name, uid)
	if rec.busy {
		r.object("%s %s: another sync of it is in flight", name, uid)
	}
	if !r.open.Load() {
		r.object("%s %s: Run does not run", name, uid)
	}
	rec.busy = true
	check(rec)
	m := mood{}
	if len(r.moods) > 0 {
		m = r.moods[r.calls%len(r.moods)]
	}
	r.calls++
	r.mu.Unlock()

	err := r.suffer(ctx, m)

	r.mu.Lock()
	defer r.mu.Unlock()
	rec.busy = false
	r.say("%s %s ends: %v", name, uid, err)
	if err == nil {
		done(rec, m.finished)
	}
	return m.finished, err
}

func (r *referee) suffer(ctx context.Context, m mood) error {
	if m.deaf {
		time.Sleep(m.takes)
	} else if err := sleep(ctx, m.takes); err != nil {
		return err
	}
	if m.fails {
		return errSync
	}
	return ctx.Err()
}

func (r *referee) SyncPod(ctx context.Context, pod *corev1.Pod) (*podmill.Kill, error) {
	finished, err := r.call(ctx, pod.UID, "sync", func(rec *record) {
		r.begins(rec, pod, nothing, synced)
		switch {
		case rec.newest == nil || rec.ends:
			r.object("sync %s: it has to end", pod.UID)
		case rec.newest != pod:
			r.object("sync %s: version %s is not the newest", pod.UID, pod.ResourceVersion)
		}
		for uid, other := range r.pods {
			if uid != pod.UID && other.runs && isStatic(pod) && nameOf[uid] == pod.Name {
				r.object("sync %s: %s of the same name runs", pod.UID, uid)
			}
		}
		rec.step, rec.runs, rec.synced = synced, true, pod.ResourceVersion
	}, func(rec *record, finished bool) {
		rec.ends = rec.ends || finished
	})
	if finished {
		return &podmill.Kill{}, err
	}
	return nil, err
}

func (r *referee) SyncTerminatingPod(ctx context.Context, pod *corev1.Pod, t podmill.Termination) error {
	_, err := r.call(ctx, pod.UID, "stop", func(rec *record) {
		r.begins(rec, pod, nothing, synced, stopping)
		if rec.newest != nil && !rec.ends && r.lives[pod] == rec.life {
			r.object("stop %s: nobody asked for its end", pod.UID)
		}
		if !rec.deadline.IsZero() && t.Deadline.After(rec.deadline) {
			r.object("stop %s: the deadline recedes", pod.UID)
		}
		rec.step, rec.deadline = stopping, t.Deadline
	}, func(rec *record, _ bool) { rec.step, rec.runs = stopped, false })
	return err
}

func (r *referee) SyncTerminatingRuntimePod(ctx context.Context, pod *podmill.RuntimePod) error {
	_, err := r.call(ctx, pod.UID, "stop orphan", func(rec *record) {
		if rec.step != nothing && rec.step != cleaned && rec.step != orphanStopping {
			r.object("stop orphan %s: the pod is known", pod.UID)
		}
		rec.step = orphanStopping
	}, func(rec *record, _ bool) { rec.step = cleaned })
	return err
}

func (r *referee) SyncTerminatedPod(ctx context.Context, pod *corev1.Pod) error {
	_, err := r.call(ctx, pod.UID, "clean", func(rec *record) {
		if pod.DeletionTimestamp != nil {
			r.begins(rec, pod, stopped, cleaned)
		} else {
			r.begins(rec, pod, stopped)
		}
	}, func(rec *record, _ bool) { rec.step = cleaned })
	return err
}

// begins checks that a call belongs to the life that is under way, and that this is at one of the given steps; or that it begins another
// life, and the one before is over.
func (r *referee) begins(rec *record, pod *corev1.Pod, at ...step) {
	if r.lives[pod] > rec.under {
		if rec.step != nothing && rec.step != cleaned {
			r.object("%s begins another life while one is at step %d", pod.UID, rec.step)
		}
		rec.under, rec.step, rec.deadline = r.lives[pod], nothing, time.Time{}
	}
	if r.lives[pod] < rec.under || !slices.Contains(at, rec.step) {
		r.object("%s goes back, from step %d of life %d", pod.UID, rec.step, rec.under)
	}
}
