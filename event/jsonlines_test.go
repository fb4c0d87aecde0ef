package event

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run starts a recorder; stop ends it and waits for it.
func run(ctx context.Context, r *Recorder) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); _ = r.Run(ctx) }()
	return func() { cancel(); <-done }
}

// TestLineIsAnEvent shows that a line is read as a corev1.Event.
func TestLineIsAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := JSONLines(&out, WithWindow(time.Minute))
		stop := run(t.Context(), r)
		about := corev1.ObjectReference{
			Kind: "Pod", APIVersion: "v1", Namespace: "shop", Name: "web", UID: "7d1", FieldPath: "spec.containers{c}",
		}
		start := metav1.NewTime(time.Now().UTC())
		r.Event(about, corev1.EventTypeWarning, "Failed", "Failed to pull image \"a<b\": line 1\nline 2 \xff")
		synctest.Wait()
		if strings.Count(out.String(), "\n") != 1 || !strings.Contains(out.String(), `a<b`) {
			t.Errorf("got %q", out.String())
		}
		time.Sleep(30 * time.Second)
		again := metav1.NewTime(time.Now().UTC())
		r.Event(about, corev1.EventTypeWarning, "Failed", "Failed to pull image \"a<b\": line 1\nline 2 \xff")
		stop()

		var events []corev1.Event
		for dec := json.NewDecoder(&out); ; {
			var e corev1.Event
			dec.DisallowUnknownFields()
			if err := dec.Decode(&e); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			events = append(events, e)
		}
		one := corev1.Event{
			LastTimestamp: start, Type: corev1.EventTypeWarning, Reason: "Failed", InvolvedObject: about, Count: 1,
			Message: "Failed to pull image \"a<b\": line 1\nline 2 \uFFFD",
		}
		two := one
		two.FirstTimestamp, two.LastTimestamp, two.Count = start, again, 2
		if diff := cmp.Diff([]corev1.Event{one, two}, events); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestWindowEnds shows that a count is written when its window ends, also if nothing more is said.
func TestWindowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := JSONLines(&out, WithWindow(time.Minute))
		stop := run(t.Context(), r)
		defer stop()
		for range 5 {
			r.Event(corev1.ObjectReference{Name: "web"}, corev1.EventTypeNormal, "BackOff", "Back-off")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := strings.Count(out.String(), "\n"); got != 2 || !strings.Contains(out.String(), `"count":5`) {
			t.Errorf("%d lines: %s", got, out.String())
		}
		if got := r.Stats(); got != (Stats{Written: 2, Repeated: 4}) {
			t.Errorf("got %+v", got)
		}
	})
}

// blocked is a writer that takes nothing until it is let go.
type blocked struct{ free chan struct{} }

func (w *blocked) Write(p []byte) (int, error) { <-w.free; return len(p), nil }

// TestEventDoesNotBlock shows that a writer that hangs holds up nobody, and that what is too much meanwhile is dropped.
func TestEventDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &blocked{free: make(chan struct{})}
		r := JSONLines(w, WithRate(1e6, 1e6))
		stop := run(t.Context(), r)
		var callers sync.WaitGroup
		for i := range 8 {
			callers.Go(func() {
				for j := range 1000 {
					r.Event(corev1.ObjectReference{Name: fmt.Sprint(i)}, corev1.EventTypeNormal, "Said", fmt.Sprint(j))
				}
			})
		}
		callers.Wait() // no time passes
		close(w.free)
		stop()
		if got := r.Stats(); got.Written+got.Dropped != 8000 || got.Written < maxWaiting || got.Dropped == 0 {
			t.Errorf("got %+v", got)
		}
	})
}

// disk is a writer that has room for so many bytes.
type disk struct {
	bytes.Buffer
	room int
}

func (d *disk) Write(p []byte) (int, error) {
	n, _ := d.Buffer.Write(p[:min(d.room, len(p))])
	d.room -= n
	if n < len(p) {
		return n, errors.New("no space left on device")
	}
	return n, nil
}

// TestFullDisk shows that a disk that is full costs the events that come meanwhile and one line in the log, and that a line of which a part
// was written spoils no other.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{room: 10}
		var logged []string
		log := funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
		r := JSONLines(d)
		stop := run(logr.NewContext(t.Context(), log), r)
		defer stop()
		for _, step := range []struct {
			room int
			says string
		}{{10, "lost"}, {0, "lost too"}, {1000, "kept"}, {1000, "kept too"}} {
			d.room = step.room
			r.Event(corev1.ObjectReference{Name: "web"}, corev1.EventTypeNormal, "Said", step.says)
			synctest.Wait()
		}
		lines := strings.Split(strings.TrimSpace(d.String()), "\n")
		if len(lines) != 3 || !json.Valid([]byte(lines[1])) || !json.Valid([]byte(lines[2])) || !strings.Contains(lines[1], "kept") {
			t.Errorf("got %q", lines)
		}
		if len(logged) != 1 || !strings.Contains(logged[0], "no space left") {
			t.Errorf("logged %q", logged)
		}
		if got := r.Stats(); got != (Stats{Written: 2, Dropped: 2}) {
			t.Errorf("got %+v", got)
		}
	})
}

// TestEventsBeforeRun shows that what is said before Run is written by it, and what is said of the end too.
func TestEventsBeforeRun(t *testing.T) {
	var out bytes.Buffer
	r := JSONLines(&out)
	r.Event(corev1.ObjectReference{}, corev1.EventTypeNormal, "Said", "early")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Run(ctx); err != nil || strings.Count(out.String(), "early") != 1 {
		t.Errorf("got %v, %q", err, out.String())
	}
}

func BenchmarkEvent(b *testing.B) {
	about := corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web", UID: "7d1"}
	const message = `Back-off pulling image "registry.example/web:1"`
	b.Run("baseline=lock+marshal", func(b *testing.B) {
		var mu sync.Mutex
		b.ReportAllocs()
		for b.Loop() {
			mu.Lock()
			_, _ = json.Marshal(line{About: about, Message: message})
			mu.Unlock()
		}
	})
	b.Run("repeat", func(b *testing.B) {
		r := JSONLines(io.Discard)
		b.ReportAllocs()
		for b.Loop() {
			r.Event(about, corev1.EventTypeNormal, "BackOff", message)
		}
	})
}
