package podworkers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/podworkers"
)

// nameOf has the pods of the model: three static pods of one name, one of another, and one of the API.
var nameOf = map[types.UID]string{"s1": "web", "s2": "web", "s3": "web", "t1": "db", "p1": "job"}

func isStatic(pod *corev1.Pod) bool { return pod.UID != "p1" }

// script is what happens to workers: events, and how syncs go.
type script struct {
	events   []event
	moods    []mood
	parallel int
}

type event struct {
	kind  int
	uid   types.UID
	grace int64
	pause time.Duration
}

const (
	update = iota
	updateDeleted
	updateEnded
	hint
	kill
	remove
	orphaned
	restart
	kinds
)

// play plays a script, lets the faults stop, and returns what the referee objected to and all that happened.
func play(t *testing.T, s script) (faults, history []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &player{
			referee: &referee{began: time.Now(), moods: s.moods, pods: map[types.UID]*record{}, lives: map[*corev1.Pod]int{}},
			kills:   map[types.UID][]promise{},
		}
		p.Workers = podworkers.New(p.referee, podworkers.WithParallel(s.parallel))
		p.start(t)
		for i, e := range s.events {
			p.do(t, e, fmt.Sprint(i))
			pass(e.pause)
			p.look()
		}
		p.mu.Lock()
		p.moods = nil
		p.mu.Unlock()
		pass(10 * time.Minute)
		p.look()
		p.converged()
		for uid := range nameOf {
			p.do(t, event{kind: remove, uid: uid}, "")
		}
		pass(10 * time.Minute)
		for _, left := range p.Pods() {
			p.object("%s was not forgotten: %s", left.UID, left.State)
		}
		p.stop()
		faults, history = p.faults, p.history
	})
	return faults, history
}

// player does the events, and tells the referee first.
type player struct {
	*podworkers.Workers
	*referee
	stop  func()
	kills map[types.UID][]promise
}

// promise is a channel that Kill returned, in which life of the pod.
type promise struct {
	done <-chan struct{}
	life int
}

func (p *player) start(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	p.open.Store(true)
	go func() {
		defer close(done)
		_ = p.Run(ctx)
	}()
	p.stop = func() {
		cancel()
		<-done
		p.open.Store(false)
	}
	synctest.Wait()
}

func (p *player) do(t *testing.T, e event, version string) {
	newest, life := p.foresee(e, version)
	switch e.kind {
	case update, updateDeleted, updateEnded:
		p.Update(newest)
	case hint:
		p.Sync(e.uid)
	case kill:
		p.kills[e.uid] = append(p.kills[e.uid], promise{p.Kill(e.uid, after(e.grace)), life})
	case remove:
		p.Remove(e.uid)
	case orphaned:
		p.Orphan(&podmill.RuntimePod{PodRef: podmill.PodRef{UID: e.uid, Name: nameOf[e.uid]}})
	case restart:
		p.stop()
		pass(time.Second)
		p.start(t)
	}
	synctest.Wait()
}

// foresee tells the referee of an event.
func (p *player) foresee(e event, version string) (newest *corev1.Pod, life int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.say("event %d %s %d", e.kind, e.uid, e.grace)
	rec := p.record(e.uid)
	switch e.kind {
	case update, updateDeleted, updateEnded:
		p.want(rec, e, version)
	case kill:
		rec.ends = rec.newest != nil
	case remove:
		rec.newest = nil
	}
	return rec.newest, rec.life
}

// want makes the next version of a pod what its source wants. What is deleted stays so.
func (p *player) want(rec *record, e event, version string) {
	if rec.newest != nil && rec.newest.DeletionTimestamp != nil {
		e.kind = updateDeleted
	}
	opts := []podmilltest.PodOption{v(version), podmilltest.Grace(time.Duration(e.grace+1) * time.Second)}
	if e.uid != "p1" {
		opts = append(opts, static(nameOf[e.uid]))
	}
	switch e.kind {
	case updateDeleted:
		opts = append(opts, podmilltest.Deleted(time.Duration(e.grace)*time.Second))
	case updateEnded:
		opts = append(opts, phase(corev1.PodFailed))
	}
	if rec.newest == nil {
		rec.life++
		rec.ends = e.kind == updateEnded
	}
	rec.ends = rec.ends || e.kind == updateDeleted
	rec.newest = pod(string(e.uid), opts...)
	p.lives[rec.newest] = rec.life
}

// look checks what must hold at any time.
func (p *player) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid, promises := range p.kills {
		for _, k := range promises {
			if rec := p.pods[uid]; isClosed(k.done) && rec.runs && rec.life == k.life {
				p.object("%s runs after it was said to have stopped", uid)
			}
		}
	}
}

// converged checks what must hold when nothing happens any more.
func (p *player) converged() {
	p.mu.Lock()
	defer p.mu.Unlock()
	got := map[types.UID]podworkers.PodState{}
	for _, s := range p.Pods() {
		got[s.UID] = s
		if s.Running || s.Failures > 0 || s.Again {
			p.object("%s does not come to rest: %+v", s.UID, s)
		}
	}
	active := map[string]int{}
	for uid, rec := range p.pods {
		s, known := got[uid]
		switch {
		case rec.newest == nil && known:
			p.object("%s is %s, and nobody wants it", uid, s.State)
		case rec.newest == nil:
		case rec.ends && s.State != podworkers.Finished:
			p.object("%s is %s, and had to end", uid, s.State)
		case rec.ends:
		case s.State == podworkers.Syncing && rec.synced == rec.newest.ResourceVersion:
			active[nameOf[uid]] += 1
		case s.State == podworkers.Waiting:
			active[nameOf[uid]] += 0
		default:
			p.object("%s is %s at version %s, and wanted at %s", uid, s.State, rec.synced, rec.newest.ResourceVersion)
		}
	}
	for name, n := range active {
		if n != 1 {
			p.object("%d pods of the name %s are active", n, name)
		}
	}
	for uid, promises := range p.kills {
		for _, k := range promises {
			if !isClosed(k.done) {
				p.object("nobody is told that %s has stopped", uid)
			}
		}
	}
}

func uids() []types.UID { return []types.UID{"p1", "s1", "s2", "s3", "t1"} }

func TestWorkersKeepTheirPromisesWhateverHappens(t *testing.T) {
	pauses := []time.Duration{0, 0, time.Millisecond, time.Second, 5 * time.Second, time.Minute}
	events := rapid.Custom(func(t *rapid.T) event {
		return event{
			kind: rapid.IntRange(0, kinds-1).Draw(t, "kind"), uid: rapid.SampledFrom(uids()).Draw(t, "uid"),
			grace: rapid.Int64Range(0, 20).Draw(t, "grace"), pause: rapid.SampledFrom(pauses).Draw(t, "pause"),
		}
	})
	moods := rapid.Custom(func(t *rapid.T) mood {
		return mood{
			takes: rapid.SampledFrom(pauses[:5]).Draw(t, "takes"), deaf: rapid.Bool().Draw(t, "deaf"),
			fails: rapid.Bool().Draw(t, "fails"), finished: rapid.IntRange(0, 9).Draw(t, "finished") == 0,
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		faults, history := play(t, script{
			events:   rapid.SliceOfN(events, 1, 40).Draw(rt, "events"),
			moods:    rapid.SliceOfN(moods, 0, 8).Draw(rt, "moods"),
			parallel: rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(rt, "parallel"),
		})
		if len(faults) > 0 {
			rt.Fatalf("%s\n\n%s", strings.Join(faults, "\n"), strings.Join(history, "\n"))
		}
	})
}

// FuzzEvents reads events and moods from bytes: two for each event, with every fourth pair a mood.
func FuzzEvents(f *testing.F) {
	f.Add([]byte{0, 1, 5, 1, 0, 1, 3, 0, 0})       // B001: removed and put back, with syncs that take time
	f.Add([]byte{0, 1, 0, 2, 5, 1, 3, 0, 4, 2, 1}) // B014: another one of the name, and the first removed
	f.Add(slices.Repeat([]byte{0x3b, 4, 9, 0x1c}, 8))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := script{}
		for i := 0; i+1 < len(data) && i < 200; i += 2 {
			a, b := int(data[i]), int(data[i+1])
			if i%8 == 6 {
				s.moods = append(s.moods, mood{takes: time.Duration(a%8) * time.Second, deaf: b&1 > 0, fails: b&2 > 0, finished: b&28 == 28})
				continue
			}
			s.events = append(s.events, event{
				kind: a % kinds, uid: uids()[b%len(uids())], grace: int64(b), pause: time.Duration(a/kinds) * 200 * time.Millisecond,
			})
		}
		if len(data) > 0 {
			s.parallel = int(data[len(data)-1] % 4)
		}
		if faults, history := play(t, s); len(faults) > 0 {
			t.Fatalf("%s\n\n%s", strings.Join(faults, "\n"), strings.Join(history, "\n"))
		}
	})
}
