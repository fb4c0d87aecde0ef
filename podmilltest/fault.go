package podmilltest

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// Fault says which calls to a [FaultyRuntime] go wrong, and how. Of several faults that match, the first has its way.
type Fault struct {
	On        Op        // empty is every operation
	Pod       types.UID // empty is every pod, and what concerns none
	Container string    // empty is every container, and what concerns none
	// After lets so many matching calls pass first.
	After int
	// Times is how many calls go wrong after that; zero is all of them.
	Times int
	// OneIn makes one matching call in so many go wrong, by the luck of Seed. A call's luck depends on what it concerns and how
	// often that was done before, never on what goes on beside it, so that a run can be repeated.
	OneIn int
	Seed  uint64
	Effect
}

// Effect is how a call goes wrong. A nil part changes nothing.
type Effect struct {
	Name string // for the log
	// Call is called in place of a call, which it may make, once, with call.
	Call func(ctx context.Context, call func() error) error

	stale, omit bool
}

// Fail makes a call fail and do nothing.
func Fail(err error) Effect {
	return Effect{Name: "fails", Call: func(context.Context, func() error) error { return err }}
}

// LoseReply makes a call do its work and fail all the same.
func LoseReply(err error) Effect {
	return Effect{Name: "loses its reply", Call: func(_ context.Context, call func() error) error {
		_ = call()
		return err
	}}
}

// Hang makes a call wait until it is released, and then do its work. It gives up when its context ends. A nil channel never
// releases.
func Hang(released <-chan struct{}) Effect {
	return Effect{Name: "hangs", Call: func(ctx context.Context, call func() error) error {
		select {
		case <-released:
			return call()
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
}

// Slow makes a call do its work after d.
func Slow(d time.Duration) Effect {
	return Effect{Name: "is slow", Call: func(ctx context.Context, call func() error) error {
		if err := pause(ctx, d); err != nil {
			return err
		}
		return call()
	}}
}

// Late makes a call do its work, and answer after d. A listing is then as old.
func Late(d time.Duration) Effect {
	return Effect{Name: "answers late", Call: func(ctx context.Context, call func() error) error {
		if err := call(); err != nil {
			return err
		}
		return pause(ctx, d)
	}}
}

// Stale makes ListPods and InspectPod answer what they answered the last time that they were not stale.
func Stale() Effect { return Effect{Name: "is stale", stale: true} }

// Omit makes ListPods and InspectPod leave out what the fault matches, and event streams drop the events of its pod.
func Omit() Effect { return Effect{Name: "omits", omit: true} }

// target is what a call concerns.
type target struct {
	op        Op
	pod       types.UID
	container string
	event     bool // an event of a stream, and not its beginning
}

// armed is a fault and what it has seen so far.
type armed struct {
	Fault
	seen map[target]int
	hits int
	past int
}

// strikes reports that a call goes wrong, and counts it.
func (a *armed) strikes(t target) bool {
	if !a.matches(t) || a.Times > 0 && a.hits == a.Times {
		return false
	}
	if a.past++; a.past <= a.After {
		return false
	}
	a.seen[t]++
	if a.OneIn > 1 && luck(a.Seed, t, a.seen[t])%uint64(a.OneIn) != 0 {
		return false
	}
	a.hits++
	return true
}

// matches reports that a fault is about a call.
func (f *Fault) matches(t target) bool {
	if f.On != "" && f.On != t.op || t.op == OpStreamEvents && t.event != f.omit {
		return false
	}
	if f.omit {
		// What is left out of a listing or an observation is seen in the answer.
		return t.pod == "" || f.Pod == "" || f.Pod == t.pod
	}
	return (f.Pod == "" || f.Pod == t.pod) && (f.Container == "" || f.Container == t.container)
}

// luck is a number that looks random and is the same for the same arguments.
func luck(seed uint64, t target, n int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %s %s %d", seed, t.op, t.pod, t.container, n)
	x := h.Sum64()
	x = (x ^ x>>31) * 0x9e3779b97f4a7c15
	return x >> 16
}

// around makes a call, or what the fault makes of it. A nil fault changes nothing.
func (f *Fault) around(ctx context.Context, call func() error) error {
	if f == nil || f.Call == nil {
		return call()
	}
	return f.Call(ctx, call)
}

// trim leaves out of a listing what the fault matches.
func (f *Fault) trim(snap *podmill.Snapshot) {
	snap.Items = slices.DeleteFunc(snap.Items, func(i podmill.Item) bool {
		return (f.Pod == "" || f.Pod == i.Pod.UID) && (f.Container == "" || f.Container == i.Container)
	})
}

// trimPod leaves out of an observation what the fault matches, and copies what it changes.
func (f *Fault) trimPod(seen *podmill.RuntimePod) *podmill.RuntimePod {
	trimmed := &podmill.RuntimePod{PodRef: seen.PodRef}
	if f.Container == "" {
		return trimmed
	}
	trimmed.Sandboxes = seen.Sandboxes
	for _, c := range seen.Containers {
		if c.Name != f.Container {
			trimmed.Containers = append(trimmed.Containers, c)
		}
	}
	return trimmed
}
