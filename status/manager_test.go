package status_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	. "github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink records what is delivered, takes its time, and fails as long as it is told to.
type sink struct {
	took   time.Duration
	begin  time.Time
	mu     sync.Mutex
	fail   map[types.UID]error
	got    []string // "time name message"
	inside map[types.UID]int
	worst  int // most calls for one pod at a time
}

func newSink(took time.Duration) *sink {
	return &sink{took: took, begin: time.Now(), fail: map[types.UID]error{}, inside: map[types.UID]int{}}
}

func (s *sink) call(ctx context.Context, pod *corev1.Pod, what string) error {
	s.mu.Lock()
	s.inside[pod.UID]++
	s.worst = max(s.worst, s.inside[pod.UID])
	s.mu.Unlock()
	var err error
	select {
	case <-time.After(s.took):
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inside[pod.UID]--
	if err == nil {
		err = s.fail[pod.UID]
	}
	if err == nil {
		s.got = append(s.got, fmt.Sprintf("%v %s %s", time.Since(s.begin).Round(time.Millisecond), pod.Name, what))
	}
	return err
}

func (s *sink) UpdateStatus(ctx context.Context, pod *corev1.Pod, st *corev1.PodStatus) error {
	return s.call(ctx, pod, st.Message)
}

func (s *sink) FinishPod(ctx context.Context, pod *corev1.Pod) error {
	return s.call(ctx, pod, "finish")
}

func (s *sink) failing(pod *corev1.Pod, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail[pod.UID] = err
}

func (s *sink) want(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if fmt.Sprint(s.got) != fmt.Sprint(want) {
		t.Errorf("delivered\n%q, want\n%q", s.got, want)
	}
	if s.worst > 1 {
		t.Errorf("%d calls for one pod at a time", s.worst)
	}
}

// run runs a manager in virtual time until the test ends it.
func run(t *testing.T, s *sink, opts ...status.Option) (m *status.Manager, stop func()) {
	t.Helper()
	m = status.New(s, opts...)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := m.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	return m, func() { cancel(); <-ended }
}

func saying(message string) corev1.PodStatus { return corev1.PodStatus{Message: message} }

func endsSaying(message string) corev1.PodStatus {
	return corev1.PodStatus{Message: message, Phase: corev1.PodFailed}
}

func TestTheNewestWinsAndOneGoesAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(100 * time.Millisecond)
		m, stop := run(t, s)
		defer stop()
		pod := Pod("p", Container("a", "x"))
		m.Set(pod, saying("1")) // debounced into 2
		m.Set(pod, saying("2"))
		time.Sleep(50 * time.Millisecond)
		m.Set(pod, saying("3")) // while 2 is under way; 4 takes its place
		m.Set(pod, saying("4"))
		time.Sleep(time.Second)
		m.Set(pod, saying("4")) // says nothing new
		time.Sleep(time.Second)
		s.want(t, "120ms p 2", "240ms p 4")
	})
}

// Whoever shows pods again and again sees by the object alone that nothing has changed.
func TestAPodThatHasNotChangedIsTheSameObject(t *testing.T) {
	m := status.New(newSink(0))
	pod := Pod("p", Container("a", "x"))
	look := func() *corev1.Pod {
		pods := m.Pods()
		if len(pods) != 1 {
			t.Fatalf("%d pods", len(pods))
		}
		return pods[0]
	}
	m.Set(pod, saying("1"))
	first := look()
	m.Set(pod, saying("1"))
	if look() != first || first.Status.Message != "1" || pod.Status.Message != "" {
		t.Errorf("after nothing new: %v, then %v", first.Status, look().Status)
	}
	m.Set(pod, saying("2"))
	second := look()
	if second == first || second.Status.Message != "2" || first.Status.Message != "1" {
		t.Errorf("after a change: %v, then %v", first.Status, second.Status)
	}
	newer := Edit(pod, func(pod *corev1.Pod) { pod.Labels = map[string]string{"a": "b"} })
	m.Set(newer, saying("2"))
	if third := look(); third.Labels["a"] != "b" {
		t.Errorf("the newer version is not told: %v", third.Labels)
	}
}

func TestAnEndGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(10 * time.Millisecond)
		m, stop := run(t, s, status.WithParallel(1))
		defer stop()
		for _, name := range []string{"p1", "p2"} {
			m.Set(Pod(name, Container("a", "x")), saying("hello"))
		}
		m.Set(Pod("p3", Container("a", "x")), endsSaying("end"))
		time.Sleep(time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.got) != 3 || s.got[0] != "10ms p3 end" {
			t.Errorf("delivered %q", s.got)
		}
	})
}

func TestAHundredPodsAtTwentyMilliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(20 * time.Millisecond)
		m, stop := run(t, s)
		defer stop()
		for i := range 100 {
			m.Set(Pod(fmt.Sprintf("p%d", i), Container("a", "x")), saying("hello"))
		}
		time.Sleep(150 * time.Millisecond)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.got) != 100 {
			t.Errorf("%d of 100 after 150 ms", len(s.got))
		}
	})
}

func TestFailuresAreTriedAgainAndDelayNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(time.Millisecond)
		m, stop := run(t, s, status.WithParallel(1))
		defer stop()
		bad, good := Pod("bad", Container("a", "x")), Pod("good", Container("a", "x"))
		s.failing(bad, errors.New("disk full"))
		m.Set(bad, endsSaying("end"))
		time.Sleep(time.Hour)
		m.Set(good, endsSaying("end"))
		time.Sleep(10 * time.Millisecond)
		s.want(t, "1h0m0.001s good end")
		s.failing(bad, nil)
		time.Sleep(2 * time.Minute) // the back-off is at most a minute
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.got) != 2 {
			t.Errorf("delivered %q", s.got)
		}
	})
}

func TestFinishComesAfterTheLastStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(time.Millisecond)
		m, stop := run(t, s)
		defer stop()
		pod, gone := Pod("p", Container("a", "x")), Pod("gone", Container("a", "x"))
		m.Set(pod, endsSaying("end"))
		m.Finish(pod)
		time.Sleep(time.Second)
		s.want(t, "1ms p end", "2ms p finish")
		if _, ok := m.Status(pod.UID); ok {
			t.Error("a finished pod is remembered")
		}

		s.failing(gone, podmill.ErrGone)
		m.Set(gone, endsSaying("end"))
		time.Sleep(time.Second)
		if err := m.Cleanup(t.Context(), func(types.UID) bool { return false }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, ok := m.Status(gone.UID); ok {
			t.Error("a pod that is gone is remembered")
		}
	})
}

func TestAPodThatComesBackIsNotFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(10 * time.Millisecond)
		m, stop := run(t, s)
		defer stop()
		pod := Pod("p", Container("a", "x"))
		m.Set(pod, endsSaying("end"))
		time.Sleep(5 * time.Millisecond) // it is under way
		m.Finish(pod)
		m.Set(pod, saying("again"))
		time.Sleep(time.Second)
		s.want(t, "10ms p end", "20ms p again")
	})
}

func TestAPodThatComesBackWhileItsEndIsToldIsNotFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(10 * time.Millisecond)
		m, stop := run(t, s)
		defer stop()
		pod := Pod("p", Container("a", "x"))
		m.Set(pod, endsSaying("end"))
		m.Finish(pod)
		time.Sleep(5 * time.Millisecond)
		m.Set(pod, saying("again"))
		time.Sleep(time.Second)
		s.want(t, "10ms p end", "20ms p again")
	})
}

func TestTheLastFlushIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(50 * time.Millisecond)
		m, stop := run(t, s)
		m.Set(Pod("p", Container("a", "x")), saying("1"))
		stop()
		s.want(t, "50ms p 1")

		hanging := newSink(time.Hour)
		m, stop = run(t, hanging)
		m.Set(Pod("p", Container("a", "x")), endsSaying("1"))
		time.Sleep(time.Millisecond)
		begin := time.Now()
		stop()
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("Run returned after %v, want 2s", took)
		}
	})
}

func ExampleManager() {
	sink := status.FuncSink(func(_ context.Context, pod *corev1.Pod, s *corev1.PodStatus) error {
		fmt.Println(pod.Name, s.Phase)
		return nil
	})
	m := status.New(sink)
	ctx, cancel := context.WithCancel(context.Background())
	pod := Pod("default/web", Container("server", "httpd"))
	m.Set(pod, status.Generate(status.Input{Pod: pod}, time.Now()))
	cancel() // what waits is delivered before Run returns
	_ = m.Run(ctx)
	// Output: web Pending
}
