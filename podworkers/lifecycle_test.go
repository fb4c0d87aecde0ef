package podworkers

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/podmill/podmill"
)

// witness leads one life through random events, and remembers all that was said instead of drawing conclusions from it.
type witness struct {
	life
	now     time.Time
	version int
	call    *call   // in flight
	kills   []asked // all that were asked for before it terminated
	hints   int     // since the last sync began
	news    int
	reason  string
	wasDone bool // it ended by itself
}

type asked struct {
	at    time.Time
	grace int64
}

func (w *witness) spec(deleted bool) *corev1.Pod {
	w.version++
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: fmt.Sprint(w.version)}}
	if deleted {
		pod.DeletionTimestamp = &metav1.Time{Time: w.now}
	}
	return pod
}

// ask notes a kill and does it.
func (w *witness) ask(t *rapid.T, k podmill.Kill, by why) {
	if w.state < Terminated {
		g := int64(corev1.DefaultTerminationGracePeriodSeconds)
		if k.GracePeriodSeconds != nil {
			g = *k.GracePeriodSeconds
		}
		w.kills = append(w.kills, asked{w.now, g})
		if w.reason == "" && !w.wasDone {
			w.reason = k.Reason
		}
	}
	e := w.kill(k, by, w.now)
	if e.cancel != nil && w.call == nil {
		t.Fatal("it cancels a sync when none is in flight")
	}
	if w.call != nil && w.call.during == Syncing && w.state == Terminating && !w.cancelled {
		t.Fatal("it goes on syncing a pod that has to end")
	}
}

// deadline is what the kills make of it, the dumb way: the shortest grace before the first stop began, counted from there, and
// from then on the nearest.
func (w *witness) deadline(stopBegan time.Time) time.Time {
	shortest := w.kills[0].grace
	for _, k := range w.kills {
		if !k.at.After(stopBegan) {
			shortest = min(shortest, k.grace)
		}
	}
	nearest := stopBegan.Add(seconds(shortest))
	for _, k := range w.kills {
		if at := k.at.Add(seconds(k.grace)); k.at.After(stopBegan) && at.Before(nearest) {
			nearest = at
		}
	}
	return nearest
}

func (w *witness) start(t *rapid.T, firstStop *time.Time) {
	if at, ok := w.due(); w.call != nil || !ok || at.After(w.now) {
		if w.call == nil && w.state == Syncing && (w.news > 0 || w.hints > 0 && w.failures == 0) {
			t.Fatal("something has happened, and it does not want to be synced")
		}
		return
	}
	c := w.begin(w.now)
	w.call, w.hints, w.news = &c, 0, 0
	switch {
	case c.pod.ResourceVersion != fmt.Sprint(w.version):
		t.Fatalf("version %s is not the newest, %d is", c.pod.ResourceVersion, w.version)
	case c.during == Syncing && len(w.kills) > 0:
		t.Fatal("it has to end, and is started")
	case c.during == Terminating:
		if firstStop.IsZero() {
			*firstStop = w.now
		}
		if want := w.deadline(*firstStop); !c.stop.Deadline.Equal(want) || c.stop.Reason != w.reason {
			t.Fatalf("it stops by %v for %q; it should by %v for %q", c.stop.Deadline, c.stop.Reason, want, w.reason)
		}
	}
}

func (w *witness) finish(t *rapid.T, finished bool, err error) {
	if w.call == nil {
		return
	}
	during, before := w.call.during, w.state
	w.call = nil
	if during == Syncing && before == Syncing && finished && err == nil {
		w.kills, w.wasDone = append(w.kills, asked{w.now, corev1.DefaultTerminationGracePeriodSeconds}), true
	}
	var own *podmill.Kill
	if finished {
		own = &podmill.Kill{}
	}
	w.end(during, own, err, w.now, pace{resync: time.Minute, backoff: time.Second, maxBackoff: 10 * time.Second})
	switch {
	case err != nil && w.state != before:
		t.Fatalf("a failure leads from %v to %v", before, w.state)
	case err == nil && during == Terminating && w.state != Terminated:
		t.Fatalf("it has stopped, and is %v", w.state)
	case w.state > before+1:
		t.Fatalf("it goes from %v to %v", before, w.state)
	}
}

func TestALifeWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &witness{now: time.Now()}
		w.life = newLife(w.spec(false))
		var firstStop time.Time
		highest := Waiting
		t.Repeat(map[string]func(*rapid.T){
			"admit": func(*rapid.T) {
				if w.state == Waiting {
					w.admit()
					w.news++
				}
			},
			"update": func(t *rapid.T) {
				gone := w.pod.DeletionTimestamp != nil || rapid.IntRange(0, 9).Draw(t, "deleted") == 0
				w.update(w.spec(gone))
				w.news++
				if gone {
					w.ask(t, deletion(w.pod), deleted)
				}
			},
			"hint": func(*rapid.T) { w.hint(); w.hints++ },
			"kill": func(t *rapid.T) {
				g := rapid.Int64Range(0, 60).Draw(t, "grace")
				w.ask(t, podmill.Kill{GracePeriodSeconds: &g, Reason: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "reason")}, killed)
			},
			"pass":    func(t *rapid.T) { w.now = w.now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "s")) * time.Second) },
			"start":   func(t *rapid.T) { w.start(t, &firstStop) },
			"succeed": func(t *rapid.T) { w.finish(t, false, nil) },
			"be done": func(t *rapid.T) { w.finish(t, true, nil) },
			"fail":    func(t *rapid.T) { w.finish(t, false, errors.New("it does not work")) },
			"": func(t *rapid.T) {
				if w.state < highest {
					t.Fatalf("it goes back from %v to %v", highest, w.state)
				}
				highest = w.state
			},
		})
		w.comeToRest(t, &firstStop)
	})
}

// comeToRest lets all troubles end: whatever the pod went through, it is where it should be after a few syncs.
func (w *witness) comeToRest(t *rapid.T, firstStop *time.Time) {
	if w.state == Waiting {
		w.admit()
	}
	for range 8 {
		w.finish(t, false, nil)
		w.now = w.now.Add(10 * time.Second)
		w.start(t, firstStop)
	}
	want := Syncing
	if len(w.kills) > 0 {
		want = Finished
	}
	if w.state != want || w.fresh || w.failures > 0 {
		t.Fatalf("it comes to rest as %+v, not %v", w.life, want)
	}
}
