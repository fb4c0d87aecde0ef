package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

func all() *corev1.Container {
	return with(map[kind]*corev1.Probe{
		startup:   execProbe("startup", func(p *corev1.Probe) { p.PeriodSeconds = 1; p.FailureThreshold = 5 }),
		liveness:  execProbe("liveness", func(p *corev1.Probe) { p.PeriodSeconds = 5; p.InitialDelaySeconds = 2 }),
		readiness: execProbe("readiness"),
	})
}

// B039: the container after a liveness restart is not started, and nothing but its startup probe runs before that has succeeded.
func TestStartupGatesEachInstance(t *testing.T) {
	virtually(t, func(r *rig) {
		pod := podOf("a", all())
		r.pass(time.Second)
		r.says(map[string]int32{"startup": 1})
		first := running(pod, "c1", time.Now())
		r.Probe(pod, nil, false)
		r.is(pod, first, podmill.Health{})
		r.pass(1500 * time.Millisecond)
		r.says(nil)
		r.pass(time.Second)
		r.is(pod, first, podmill.Health{Started: true, Ready: true})
		if diff := cmp.Diff([]string{"1 startup c1", "2 startup c1", "3 startup c1", "3 liveness c1", "3 readiness c1"}, sorted(r.saw())); diff != "" {
			t.Error(diff)
		}
		r.says(map[string]int32{"liveness": 1})
		r.pass(16 * time.Second)
		r.is(pod, first, podmill.Health{Started: true, Ready: true, Failed: podmill.ProbeLiveness, Message: "liveness says so"})
		r.saw()
		r.pass(10 * time.Second)
		if slices.ContainsFunc(r.saw(), func(s string) bool { return !strings.Contains(s, "readiness") }) {
			t.Error("probed while it waits for its end")
		}
		r.says(map[string]int32{"startup": 1})
		second := running(pod, "c2", time.Now())
		r.is(pod, second, podmill.Health{})
		r.pass(3500 * time.Millisecond)
		for _, s := range r.saw() {
			if !strings.HasSuffix(s, "startup c2") {
				t.Error("before it is started:", s)
			}
		}
		r.is(pod, second, podmill.Health{})
	})
}

func sorted(s []string) []string {
	slices.SortStableFunc(s, func(a, b string) int { // by time; what is asked at one time in the order of kinds
		ta, tb := strings.Fields(a), strings.Fields(b)
		order := []string{"startup", "liveness", "readiness"}
		if ta[0] != tb[0] {
			return strings.Compare(ta[0], tb[0])
		}
		return slices.Index(order, ta[1]) - slices.Index(order, tb[1])
	})
	return s
}

// B031, B042: after a restart of the agent a container is as started and ready as was reported of its ID, if it began before.
func TestAgentRestart(t *testing.T) {
	yes := true
	status := func(id string) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main", ContainerID: "containerd://" + id, Started: &yes, Ready: true}}}
	}
	virtually(t, func(r *rig) {
		r.says(map[string]int32{"startup": 1, "readiness": 1, "liveness": 1})
		before := r.t0.Add(-time.Minute)
		for name, tc := range map[types.UID]struct {
			status corev1.PodStatus
			since  time.Time
			want   podmill.Health
		}{
			"reported":     {status("c1"), before, podmill.Health{Started: true, Ready: true}},
			"nothing said": {corev1.PodStatus{}, before, podmill.Health{}},
			"of another":   {status("c0"), before, podmill.Health{}},
			"began later":  {status("c1"), r.t0.Add(time.Minute), podmill.Health{}},
		} {
			pod := podOf(name, all())
			pod.Status = tc.status
			if got := r.Probe(pod, running(pod, "c1", tc.since), false)["c1"]; got != tc.want {
				t.Errorf("%s: %+v", name, got)
			}
		}
		synctest.Wait()
		var at0 []string
		for _, run := range r.results() {
			at0 = append(at0, string(run.Pod.UID)+" "+string(run.Type))
		}
		slices.Sort(at0)
		// What was ready is probed at once, as is what is new; the rest within its period.
		if diff := cmp.Diff([]string{"began later Startup", "reported Readiness"}, at0); diff != "" {
			t.Error(diff)
		}
		r.pass(5 * time.Second)
		n := map[string]int{}
		for _, run := range r.results() {
			n[string(run.Pod.UID)+" "+string(run.Type)]++
		}
		if n["reported Liveness"] == 0 || n["nothing said Startup"] < 4 || n["reported Startup"] > 0 {
			t.Error(n)
		}
	})
}

// B052: at the start of termination liveness and startup stop, and readiness goes on until the container has stopped.
func TestEnding(t *testing.T) {
	virtually(t, func(r *rig) {
		pod := podOf("a", all())
		r.pass(time.Second)
		seen := running(pod, "c1", time.Now())
		r.Probe(pod, seen, false)
		r.pass(5 * time.Second)
		r.says(map[string]int32{"liveness": 1, "readiness": 1})
		r.saw()
		r.Probe(pod, seen, true)
		r.pass(60 * time.Second)
		asked := r.saw()
		if len(asked) < 6 || slices.ContainsFunc(asked, func(s string) bool { return !strings.Contains(s, "readiness") }) {
			t.Error(asked)
		}
		if got := r.Probe(pod, seen, true)["c1"]; got != (podmill.Health{Started: true}) {
			t.Errorf("%+v", got)
		}
		seen.Containers[0].State = podmill.StateExited
		if got := r.Probe(pod, seen, true); len(got) != 0 {
			t.Error(got)
		}
		r.pass(time.Minute)
		if asked := r.saw(); len(asked) > 0 {
			t.Error("probed after its end:", asked)
		}
	})
}

// B060: each run is a failure after its timeout, whether the command obeys its context or not.
func TestExecTimesOut(t *testing.T) {
	for name, answer := range map[string]func(context.Context) error{
		"obeys": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"the runtime's": func(context.Context) error {
			time.Sleep(time.Second)
			return fmt.Errorf("exec: %w", context.DeadlineExceeded)
		},
		"obeys never": func(context.Context) error { time.Sleep(9500 * time.Millisecond); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(r *rig) {
				r.answer = func(ctx context.Context, _, _ string) (*podmill.ExecResult, error) {
					return &podmill.ExecResult{}, answer(ctx)
				}
				pod := podOf("a", with(map[kind]*corev1.Probe{liveness: execProbe("sleep", func(p *corev1.Probe) { p.PeriodSeconds = 5 })}))
				seen := running(pod, "c1", r.t0)
				r.Probe(pod, seen, false)
				r.pass(10 * time.Second)
				r.is(pod, seen, podmill.Health{Started: true, Ready: true})
				r.pass(1100 * time.Millisecond)
				text := `command timed out: "sleep" timed out after 1s`
				r.is(pod, seen, podmill.Health{Started: true, Ready: true, Failed: podmill.ProbeLiveness, Message: text})
				if n := len(r.events.Events()); n != 3 {
					t.Errorf("%d events", n)
				}
				if e := r.events.Events()[0]; e.Reason != "Unhealthy" || e.Message != "Liveness probe failed: "+text || e.About.FieldPath != "spec.containers{main}" {
					t.Error(e)
				}
				r.pass(20 * time.Second)
			})
		})
	}
}

// A command that never returns fails its container, and is never started twice.
func TestHungExecIsNotDoubled(t *testing.T) {
	virtually(t, func(r *rig) {
		release := make(chan struct{})
		r.answer = func(context.Context, string, string) (*podmill.ExecResult, error) {
			<-release
			return &podmill.ExecResult{}, nil
		}
		pod := podOf("a", with(map[kind]*corev1.Probe{readiness: execProbe("hang", func(p *corev1.Probe) { p.PeriodSeconds = 5 })}))
		seen := running(pod, "c1", r.t0)
		r.Probe(pod, seen, false)
		r.pass(61 * time.Second)
		if asked := r.saw(); len(asked) != 1 || len(r.results()) != 13 {
			t.Errorf("asked %d times, %d failures", len(asked), len(r.runs))
		}
		close(release)
		r.pass(5 * time.Second)
		r.is(pod, seen, podmill.Health{Started: true, Ready: true}) // by the next, not by the late answer
		if asked := r.saw(); len(asked) != 1 {
			t.Error(asked)
		}
	})
}

// B116: what cannot be carried out is tried three times, told, and changes nothing.
func TestUnknownIsToldAndChangesNothing(t *testing.T) {
	virtually(t, func(r *rig) {
		r.answer = func(context.Context, string, string) (*podmill.ExecResult, error) {
			return nil, errors.New(`exec: "nosuch": executable file not found in $PATH`)
		}
		pod := podOf("a", with(map[kind]*corev1.Probe{liveness: execProbe("nosuch"), readiness: execProbe("nosuch")}))
		seen := running(pod, "c1", r.t0)
		r.Probe(pod, seen, false)
		r.pass(55 * time.Second)
		r.is(pod, seen, podmill.Health{Started: true})
		if asked := r.saw(); len(asked) != 2*6*3 {
			t.Errorf("asked %d times", len(asked))
		}
		if r.results()[0].Result != Unknown || r.notified != 0 {
			t.Error(r.results()[0], r.notified)
		}
		want := `Warning Unhealthy default/pod-a spec.containers{main}: Liveness probe errored and resulted in unknown state: exec: "nosuch": executable file not found in $PATH`
		if !slices.ContainsFunc(r.events.Events(), func(e podmilltest.Event) bool { return e.String() == want }) {
			t.Error(r.events.Events())
		}
	})
}

// What comes back when the container was replaced, or the pod is gone, is dropped: no verdict, no notice, no event.
func TestLateResultsAreDropped(t *testing.T) {
	for name, leave := range map[string]func(r *rig, pod *corev1.Pod){
		"replaced": func(r *rig, pod *corev1.Pod) { r.Probe(pod, running(pod, "c2", time.Now().Add(time.Hour)), false) },
		"stopped":  func(r *rig, pod *corev1.Pod) { r.Probe(pod, &podmill.RuntimePod{}, false) },
		"gone":     func(r *rig, _ *corev1.Pod) { _ = r.Manager.Cleanup(r.Context(), func(types.UID) bool { return false }) },
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(r *rig) {
				r.answer = func(_ context.Context, id, _ string) (*podmill.ExecResult, error) {
					if id == "c2" {
						return &podmill.ExecResult{}, nil
					}
					time.Sleep(500 * time.Millisecond)
					return &podmill.ExecResult{ExitCode: 1}, nil
				}
				pod := podOf("a", with(map[kind]*corev1.Probe{liveness: execProbe("x", func(p *corev1.Probe) { p.FailureThreshold = 1 })}))
				r.Probe(pod, running(pod, "c1", r.t0), false)
				r.pass(100 * time.Millisecond)
				leave(r, pod)
				r.pass(5 * time.Second)
				if len(r.events.Events()) > 0 || r.notified > 0 {
					t.Error(r.events.Events(), r.notified)
				}
				if asked := r.saw(); name != "replaced" && len(asked) != 1 {
					t.Error(asked)
				}
			})
		})
	}
}

// 200 hung probes, and 100 that are not: theirs begin no more than 5 % of the period late.
func TestHungProbesStarveNobody(t *testing.T) {
	virtually(t, func(r *rig) {
		r.answer = func(_ context.Context, id, _ string) (*podmill.ExecResult, error) {
			if strings.HasPrefix(id, "hung") {
				time.Sleep(40 * time.Second)
			}
			return &podmill.ExecResult{}, nil
		}
		slow := with(map[kind]*corev1.Probe{liveness: execProbe("x", func(p *corev1.Probe) { p.TimeoutSeconds = 300; p.PeriodSeconds = 3 })})
		quick := with(map[kind]*corev1.Probe{liveness: execProbe("x", func(p *corev1.Probe) { p.PeriodSeconds = 1 })})
		for i := range 200 {
			pod := podOf(types.UID(fmt.Sprint("hung", i)), slow)
			r.Probe(pod, running(pod, string(pod.UID), r.t0), false)
		}
		r.pass(2*time.Second + 500*time.Millisecond)
		for i := range 100 {
			pod := podOf(types.UID(fmt.Sprint("quick", i)), quick)
			r.Probe(pod, running(pod, string(pod.UID), time.Now()), false)
		}
		r.pass(20 * time.Second)
		n := 0
		for _, run := range r.results() {
			n++
			if run.Late > 50*time.Millisecond {
				t.Fatal(run.Late)
			}
		}
		if n < 2000 {
			t.Errorf("%d runs", n)
		}
		if err := r.Manager.Cleanup(r.Context(), func(types.UID) bool { return false }); err != nil {
			t.Error(err)
		}
		r.pass(time.Minute)
	}, WithParallel(32))
}
