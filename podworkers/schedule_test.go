package podworkers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestTheScheduleIsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s schedule
		pods := make([]incarnation, 8)
		oracle := map[*incarnation]time.Time{} // when each that is in the schedule is to be looked at
		now := time.Now()
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				inc := &pods[rapid.IntRange(0, len(pods)-1).Draw(t, "pod")]
				at := now.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "in")))
				if was, ok := oracle[inc]; !ok || at.Before(was) {
					oracle[inc] = at
				}
				s.put(inc, at)
			},
			"drop": func(t *rapid.T) {
				inc := &pods[rapid.IntRange(0, len(pods)-1).Draw(t, "pod")]
				delete(oracle, inc)
				s.drop(inc)
			},
			"due": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "pass")))
				for inc := s.due(now); inc != nil; inc = s.due(now) {
					if at, ok := oracle[inc]; !ok || at.After(now) {
						t.Fatalf("it is due at %v, and came at %v", at, now)
					}
					delete(oracle, inc)
				}
			},
			"": func(t *rapid.T) {
				first, ok := s.next()
				if len(s) != len(oracle) || ok != (len(oracle) > 0) {
					t.Fatalf("%d pods, not %d", len(s), len(oracle))
				}
				for _, at := range oracle {
					if at.Before(first) {
						t.Fatalf("the first is at %v, not %v", first, at)
					}
				}
			},
		})
	})
}

// What is forgotten leaves nothing behind: memory is bounded by the pods, not by how many there have been.
func TestNothingIsLeftOfPodsThatAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(many{func() {}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		for _, pod := range manyPods(10) {
			w.Update(pod)
			time.Sleep(time.Second) // it has been synced, and is in the schedule
			w.Remove(pod.UID)
			w.Update(pod)
			w.Remove(pod.UID)
		}
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(w.pods) != 0 || len(w.lines) != 0 || len(w.schedule) != 0 {
			t.Errorf("left: %d pods, %d names, %d in the schedule", len(w.pods), len(w.lines), len(w.schedule))
		}
	})
}
