package staticpod

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// TestSettle shows, in virtual time, how long it is waited for a directory to come to rest.
func TestSettle(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name   string
		events map[time.Duration]string // when something happens to which name
		want   time.Duration
	}{
		{"nothing happens", nil, time.Hour},
		{"one event", map[time.Duration]string{5 * ms: "a.yaml"}, 105 * ms},
		{"several", map[time.Duration]string{5 * ms: "a.yaml", 100 * ms: "a.yaml", 150 * ms: "b.yaml"}, 250 * ms},
		{"hidden files do not count", map[time.Duration]string{5 * ms: ".a.swp", 50 * ms: "a.yaml", 100 * ms: ".a.swp", 120 * ms: "a.yaml~"}, 150 * ms},
		{"but those of an atomic volume do", map[time.Duration]string{5 * ms: "..data"}, 105 * ms},
		{"events are lost", map[time.Duration]string{5 * ms: ""}, 105 * ms},
		{"it has an end", func() map[time.Duration]string {
			events := map[time.Duration]string{}
			for at := 5 * ms; at < 5*time.Second; at += 50 * ms {
				events[at] = "a.yaml"
			}
			return events
		}(), 1005 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events, lost := make(chan fsnotify.Event), make(chan error)
				w := &watch{events: events, errors: lost, dir: "/m", quiet: settleQuiet}
				ctx, cancel := context.WithCancel(t.Context())
				for at, name := range c.events {
					go func() {
						select {
						case <-time.After(at):
						case <-ctx.Done():
							return
						}
						if name == "" {
							select {
							case lost <- errors.New("overflow"):
							case <-ctx.Done():
							}
							return
						}
						select {
						case events <- fsnotify.Event{Name: "/m/" + name, Op: fsnotify.Write}:
						case <-ctx.Done():
						}
					}()
				}
				start := time.Now()
				if !w.next(ctx, time.Hour) {
					t.Error("it has ended")
				}
				if got := time.Since(start); got != c.want {
					t.Errorf("it took %v, want %v", got, c.want)
				}
				cancel()
				synctest.Wait()
				if w.next(ctx, time.Hour) {
					t.Error("it goes on after its context has ended")
				}
			})
		})
	}
}

// TestWholeFilesAreReadAtOnce shows that a file which was renamed into place is not waited for, and that any other step still is.
func TestWholeFilesAreReadAtOnce(t *testing.T) {
	const create, write, rename = fsnotify.Create, fsnotify.Write, fsnotify.Rename
	type events []fsnotify.Event
	for name, c := range map[string]struct {
		events events
		want   time.Duration
	}{
		"renamed into place":               {events{{Name: "/m/.a", Op: rename}, {Name: "/m/a.yaml", Op: create}}, settleWhole},
		"many of them":                     {events{{Name: "/m/.a", Op: rename}, {Name: "/m/a", Op: create}, {Name: "/m/.b", Op: rename}, {Name: "/m/b", Op: create}}, settleWhole},
		"created and written":              {events{{Name: "/m/a.yaml", Op: create}, {Name: "/m/a.yaml", Op: write}}, settleQuiet},
		"renamed, and another is written":  {events{{Name: "/m/.a", Op: rename}, {Name: "/m/a", Op: create}, {Name: "/m/b", Op: create}}, settleQuiet},
		"written, and another is renamed":  {events{{Name: "/m/b", Op: write}, {Name: "/m/.a", Op: rename}, {Name: "/m/a", Op: create}}, settleQuiet},
		"an editor puts the old one aside": {events{{Name: "/m/a.yaml", Op: rename}, {Name: "/m/b.yaml", Op: create}}, settleQuiet},
		"an atomic volume":                 {events{{Name: "/m/..data_tmp", Op: rename}, {Name: "/m/..data", Op: create}}, settleQuiet},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := make(chan fsnotify.Event, len(c.events))
				for _, event := range c.events {
					told <- event
				}
				w := &watch{events: told, dir: "/m", quiet: settleQuiet}
				start := time.Now()
				if !w.next(t.Context(), time.Hour) {
					t.Error("it has ended")
				}
				if got := time.Since(start); got != c.want {
					t.Errorf("it took %v, want %v", got, c.want)
				}
			})
		})
	}
}

// TestWithoutNotice shows that a directory of which the system tells nothing is read now and then.
func TestWithoutNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watch{path: t.TempDir(), quiet: settleQuiet}
		w.follow()
		start := time.Now()
		if !w.next(t.Context(), 20*time.Second) || time.Since(start) != 20*time.Second {
			t.Errorf("it took %v", time.Since(start))
		}
		w.close()
	})
}

// TestRetry shows how waits grow with failures, and how far.
func TestRetry(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 6: 32 * time.Second, 7: time.Minute, 1000: time.Minute} {
		if got := retry(failures, 20*time.Second); got != want {
			t.Errorf("after %d failures: %v, want %v", failures, got, want)
		}
	}
	if got := retry(1000, time.Hour); got != 1024*time.Second {
		t.Errorf("with a long period: %v", got)
	}
	for range 1000 {
		if got := jitter(time.Minute); got < 54*time.Second || got > 66*time.Second {
			t.Fatalf("with jitter: %v", got)
		}
	}
}
