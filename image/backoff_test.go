package image

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func at(seconds int) time.Time { return time.Unix(1_000_000+int64(seconds), 0) }

// TestDelays shows how long each failure in a row makes the next pull wait, and when it is forgotten (B066).
func TestDelays(t *testing.T) {
	b := backOff{failures: map[pullKey]failure{}}
	key, now := pullKey{"u", "img"}, 0
	for i, want := range []int{10, 20, 40, 80, 160, 300, 300, 300} {
		f := b.failed(key, at(now), at(now+1), "x")
		if f.delay != time.Duration(want)*time.Second {
			t.Errorf("failure %d: got %v, want %d s", i, f.delay, want)
		}
		if _, ok := b.waiting(key, at(now+want)); !ok {
			t.Errorf("failure %d: a second early is soon enough", i)
		}
		if _, ok := b.waiting(key, at(now+want+1)); ok {
			t.Errorf("failure %d: it waits longer than that", i)
		}
		now += 1 + want
	}
	if f := b.failed(key, at(now+301), at(now+302), "x"); f.delay != 10*time.Second {
		t.Errorf("after ten minutes: %v", f.delay)
	}
	if f := b.failed(pullKey{"v", "img"}, at(now), at(now), "x"); f.delay != 10*time.Second {
		t.Errorf("another pod: %v", f.delay)
	}
	b.succeeded(key)
	if _, ok := b.waiting(key, at(now+302)); ok {
		t.Error("after success it waits")
	}
}

// TestOneFailureOfSeveralContainers shows that containers of a pod that waited for one pull count as one failure.
func TestOneFailureOfSeveralContainers(t *testing.T) {
	b := backOff{failures: map[pullKey]failure{}}
	key := pullKey{"u", "img"}
	for range 3 {
		b.failed(key, at(0), at(5), "x")
	}
	if f := b.failures[key]; f.delay != firstDelay {
		t.Errorf("got %v", f.delay)
	}
}

// TestBackOffIsBounded shows that what is remembered is no more than what failed in the last ten minutes, and that no wait is ever longer
// than five, or shorter than ten seconds.
func TestBackOffIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := backOff{failures: map[pullKey]failure{}}
		now, recent := 0, map[pullKey]int{}
		for range rapid.IntRange(1, 100).Draw(t, "failures") {
			began := now + rapid.IntRange(0, 500).Draw(t, "pause")
			now = began + rapid.IntRange(0, 200).Draw(t, "took")
			key := pullKey{"u", rapid.StringMatching(`[a-f]`).Draw(t, "image")}
			f := b.failed(key, at(began), at(now), "x")
			if f.delay < firstDelay || f.delay > maxDelay {
				t.Fatalf("delay %v", f.delay)
			}
			recent[key] = now
			for k, last := range recent {
				if now-last > 600 {
					delete(recent, k)
				}
			}
			if len(b.failures) > len(recent) {
				t.Fatalf("%d remembered, %d recent", len(b.failures), len(recent))
			}
		}
	})
}
