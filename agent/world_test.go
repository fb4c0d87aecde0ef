package agent_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	. "github.com/podmill/podmill/podmilltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is an agent over the in-memory runtime, in virtual time.
type world struct {
	*testing.T
	rt     *Runtime
	use    podmill.Runtime // what the agent is given: rt or a wrapper of it
	file   *PodSource
	more   []podmill.PodSource
	events *EventRecorder
	root   string
	opts   []agent.Option

	agent *agent.Agent
	stop  func() // ends the agent as a signal does
}

// inWorld runs a test in a world of its own.
func inWorld(t *testing.T, test func(*world)) {
	t.Helper()
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		rt := NewRuntime(WithImages(ScriptImage("busybox:1", "sleep 1000000"), ScriptImage("busybox:2", "sleep 1000000")))
		defer rt.Close()
		w := &world{T: t, rt: rt, use: rt, file: NewPodSource("file"), events: NewEventRecorder(), root: root}
		defer func() { w.end() }()
		test(w)
	})
}

// start starts an agent; where one runs it is ended before, as by a crash of the whole process.
func (w *world) start() {
	w.Helper()
	w.end()
	a, err := agent.New(w.use, w.root, append([]podmill.PodSource{w.file}, w.more...), append(w.opts, agent.WithEvents(w.events))...)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	w.agent = a
	w.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("the agent ended with: %v", err)
		}
	}
}

func (w *world) end() {
	if w.stop != nil {
		w.stop()
	}
	w.stop = nil
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// pod returns the pod as the agent shows it, nil if it does not.
func (w *world) pod(pod *corev1.Pod) *corev1.Pod {
	pods, _ := w.agent.Pods()
	for _, p := range pods {
		if p.UID == pod.UID {
			return p
		}
	}
	return nil
}

func (w *world) wantPhase(pod *corev1.Pod, want corev1.PodPhase) *corev1.Pod {
	w.Helper()
	p := w.pod(pod)
	if p == nil {
		w.Fatalf("the agent does not know pod %s\n%s", pod.Name, w.rt.Log())
	}
	if p.Status.Phase != want {
		w.Fatalf("pod %s is %s, want %s\n%s\n%s", pod.Name, p.Status.Phase, want, w.rt.Log(), w.events)
	}
	return p
}

// wantGone fails unless nothing is left of the pod: not in the runtime, not with the agent.
func (w *world) wantGone(pod *corev1.Pod) {
	w.Helper()
	seen, err := w.rt.InspectPod(w.Context(), pod.UID)
	if err != nil {
		w.Fatal(err)
	}
	if !seen.Empty() || w.pod(pod) != nil {
		w.Fatalf("pod %s is not gone\n%s", pod.Name, w.rt.Log())
	}
}

// wantStory fails unless the calls that change something, and what happened in between, are these, in this order. Each line is the begin of a
// log line without its time.
func (w *world) wantStory(want ...string) {
	w.Helper()
	var got []string
	for _, entry := range w.rt.Log().Entries() {
		_, line, _ := strings.Cut(entry.String(), " ")
		if !strings.HasPrefix(line, "StreamEvents") && !strings.HasPrefix(line, "ListPods") && !strings.HasPrefix(line, "Inspect") && !strings.HasPrefix(line, "RuntimeStatus") {
			got = append(got, line)
		}
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		w.Errorf("the story is\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func static(pod *corev1.Pod) {
	pod.Annotations = map[string]string{podmill.AnnotationConfigSource: "file"}
}
