package syncpod_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/syncpod"
)

func script(s string) *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: podmilltest.Script(s)}}
}

func sleeps(seconds int64) *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: seconds}}
}

func hooked(postStart, preStop *corev1.LifecycleHandler) podmilltest.ContainerOption {
	return func(c *corev1.Container) { c.Lifecycle = &corev1.Lifecycle{PostStart: postStart, PreStop: preStop} }
}

// deaf ignores the signal to stop.
var deaf = podmilltest.Runs("trap '' TERM; sleep inf")

// tells fails the test unless the story has each of these lines, by their words.
func (r *rig) tells(lines ...string) {
	r.t.Helper()
	for _, line := range lines {
		if !r.has(strings.Split(line, " ... ")...) {
			r.t.Errorf("the story lacks %q:\n%s", line, r.story())
			return
		}
	}
}

// While a postStart hook runs its container is not told as running or started, and the rest of the pod goes on.
func TestAContainerHasNotStartedBeforeItsPostStartHookHas(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Sidecar("proxy", "img:1", hooked(script("sleep 20"), nil)),
			podmilltest.Container("web", "img:1"))
		done := make(chan struct{})
		go func() {
			r.work(pod, 10*time.Second)
			close(done)
		}()
		time.Sleep(10 * time.Second)
		r.mu.Lock()
		p, id := r.progress, r.seen.Container("proxy").ID
		r.mu.Unlock()
		if h, ok := p.Health[id]; p.Waiting["proxy"].Reason != "PodInitializing" || !ok || h.Started || h.Ready {
			t.Errorf("during the hook: %+v", p)
		}
		<-done
		r.tells("0.410s Exec", "20.410s CreateContainer ... web#0")
		if len(r.progress.Waiting)+len(r.progress.Health) > 0 {
			t.Errorf("after the hook: %+v", r.progress)
		}
	})
}

// A postStart hook that hangs holds up neither the other containers nor their restarts.
func TestAHangingPostStartHookHoldsUpNobodyElse(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", hooked(script("sleep inf"), nil)),
			podmilltest.Container("log", "img:1", podmilltest.Runs("sleep 5; exit 1")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			_ = r.rt.StreamEvents(ctx, func() {}, func(e podmill.RuntimeEvent) { r.forget(e.Pod) })
		}()
		if _, err := r.SyncPod(ctx, pod); err != nil {
			t.Error(err)
		}
		r.tells("StartContainer ... log#2")
		if r.has("web#1") || r.has("Warning", "FailedPostStartHook") {
			t.Error(r.story())
		}
	})
}

func TestAFailedPostStartHookKillsItsContainer(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", hooked(script("sleep 1; echo secret >&2; exit 3"), script("sleep 2")), deaf),
			podmilltest.Container("log", "img:1"), podmilltest.Grace(5*time.Second))
		r.work(pod, 5*time.Second) // and until the hook has failed a second time
		r.tells("1.410s event Warning FailedPostStartHook ... web}: PostStartHook failed",
			"1.410s event Normal Killing ... FailedPostStartHook", "1.410s Exec ... sleep 2", "3.410s StopContainer shop/cart web#0 grace=3s",
			"6.410s CreateContainer shop/cart web#1", "1.410s report ... web waits: PostStartHookError", "web waits: CrashLoopBackOff")
		if r.has("event", "secret") || r.has("web#2") || r.has("StopContainer shop/cart log#0") {
			t.Error(r.story())
		}
	})
}

func TestAFailedPostStartHookIsWhyItsContainerWaits(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", hooked(script("echo oh; echo no >&2; exit 3"), nil), deaf))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, _ = r.SyncPod(ctx, pod)
		want := corev1.ContainerStateWaiting{
			Reason: "PostStartHookError",
			Message: `Exec lifecycle hook ([sh -c echo oh; echo no >&2; exit 3]) for Container "web" in Pod "cart_shop(` + string(pod.UID) +
				`)" failed - error: command 'sh -c echo oh; echo no >&2; exit 3' exited with 3: no` + "\n" + `, message: "oh\nno\n"`,
		}
		if diff := cmp.Diff(want, r.progress.Waiting["web"]); diff != "" {
			t.Error(diff)
		}
	})
}

// A pod that is told to end while a postStart hook runs ends at once.
func TestThePostStartHookEndsWithItsPod(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", hooked(script("sleep inf"), nil), deaf))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if _, err := r.SyncPod(ctx, pod); err != nil {
			t.Error(err)
		}
		ending, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		_ = r.SyncTerminatingPod(ending, pod, end(35*time.Second))
		if h, ok := r.progress.Health[r.seen.Container("web").ID]; !ok || h.Started || h.Ready {
			t.Errorf("at the end it is told of a container that has never started: %+v", r.progress)
		}
		r.finish(pod, end(30*time.Second))
		r.tells("30.000s StopContainer shop/cart web#0 grace=35s")
		if r.has("FailedPostStartHook") {
			t.Error(r.story())
		}
	})
}

// A container that ends while its postStart hook sleeps does not wait for that to be restarted.
func TestThePostStartHookEndsWithItsContainer(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", hooked(sleeps(3600), nil), podmilltest.Runs("sleep 5; exit 1")))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		go func() { _ = r.rt.StreamEvents(ctx, func() {}, func(e podmill.RuntimeEvent) { r.forget(e.Pod) }) }()
		_, _ = r.SyncPod(ctx, pod)
		r.tells("CreateContainer shop/cart web#1")
	})
}

// A container that ends while its preStop hook sleeps, or asks a server that never answers, keeps its pod no longer.
func TestThePreStopHookEndsWithItsContainer(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", hooked(nil, sleeps(3600)), podmilltest.Runs("sleep 13; exit 1")))
		r.work(pod, 10*time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = r.rt.StreamEvents(ctx, func() {}, func(e podmill.RuntimeEvent) { r.forget(e.Pod) }) }()
		began := time.Now()
		r.finish(pod, end(600*time.Second))
		if took := time.Since(began); took > 5*time.Second || r.has("FailedPreStopHook") {
			t.Errorf("its end took %v\n%s", took, r.story())
		}
	})
}

// A postStart hook that hangs does not keep its pod from ending when its time is up.
func TestAPostStartHookEndsWithTheActiveDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", mayRun(20*time.Second), podmilltest.Container("web", "img:1", hooked(script("sleep inf"), nil)))
		began := time.Now()
		if finished := r.work(pod, time.Minute); !finished || time.Since(began).Round(time.Second) != 20*time.Second || !r.has("end: DeadlineExceeded") {
			t.Errorf("after %v\n%s", time.Since(began), r.story())
		}
	})
}

// A container whose agent was killed during its postStart hook is restarted by the next one; one whose hook had succeeded is not touched.
func TestAPostStartHookWithoutARecordedEndRestartsItsContainer(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", hooked(sleeps(60), nil)),
			podmilltest.Container("log", "img:1", hooked(sleeps(1), nil)), podmilltest.Container("old", "img:1"))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, _ = r.SyncPod(ctx, pod)
		r.restart()
		r.work(pod, 70*time.Second)
		r.tells("Killing ... Nobody knows how the postStart hook of container web ended", "StartContainer shop/cart web#1")
		if r.has("web#2") || r.has("log#1") || r.has("old#1") {
			t.Error(r.story())
		}
	})
}

// B108: a container whose start was not answered does not count as started without its postStart hook.
func TestAnUnansweredStartIsNotAStartWithoutItsHook(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.faulty.Add(podmilltest.Fault{On: podmilltest.OpStartContainer, Times: 1, Effect: podmilltest.LoseReply(context.DeadlineExceeded)})
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", hooked(script("echo hook"), nil)))
		r.work(pod, 20*time.Second)
		r.tells("StopContainer shop/cart web#0", "StartContainer shop/cart web#1", "Exec shop/cart web#1")
	})
}

// Where it cannot be kept that a hook begins, its container is not started.
func TestNoHookBeginsUnrecorded(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", hooked(script("echo hook"), nil)))
		if err := os.MkdirAll(filepath.Join(r.root, "lib", "pods", string(pod.UID), "lifecycle.json", "x"), 0o750); err != nil {
			t.Fatal(err)
		}
		if _, err := r.SyncPod(t.Context(), pod); err == nil || r.has("StartContainer") {
			t.Error(r.story())
		}
		if w := r.progress.Waiting["web"]; w.Reason != "RunContainerError" {
			t.Errorf("it waits with %+v", w)
		}
	})
}

func TestPreStop(t *testing.T) {
	preStop := func(h *corev1.LifecycleHandler) []podmilltest.PodOption {
		return []podmilltest.PodOption{podmilltest.Container("web", "img:1", hooked(nil, h), deaf)}
	}
	for _, tt := range []struct {
		name   string
		pod    []podmilltest.PodOption
		grace  time.Duration
		tells  []string
		denies []string
	}{
		{"exec", preStop(script("sleep 4")), 10 * time.Second,
			[]string{"10.000s Exec", "14.000s StopContainer ... grace=6s took=6s"}, []string{"FailedPreStopHook"}},
		{"exec fails", preStop(script("exit 1")), 10 * time.Second,
			[]string{"10.000s event Warning FailedPreStopHook ... PreStopHook failed", "10.000s StopContainer ... grace=10s"}, nil},
		{"B057: a hook that hangs is cut at the end of the grace", preStop(script("sleep inf")), 5 * time.Second,
			[]string{"15.000s event Warning FailedPreStopHook", "15.000s StopContainer ... grace=2s took=2s"}, nil},
		{"B077: the override bounds the hook", preStop(script("sleep 60")), time.Second,
			[]string{"10.000s Exec", "11.000s StopContainer ... grace=2s took=2s"}, nil},
		{"B103a: without grace there is no hook", preStop(script("sleep 60")), 0,
			[]string{"10.000s StopContainer ... grace=0s"}, []string{"Exec"}},
		{"B103b: a sleep of zero", preStop(sleeps(0)), 10 * time.Second, []string{"10.000s StopContainer ... grace=10s"}, []string{"FailedPreStopHook"}},
		{"B103c: a sleep that is cut is no failure", preStop(sleeps(60)), 10 * time.Second,
			[]string{"20.000s StopContainer ... grace=2s took=2s"}, []string{"FailedPreStopHook"}},
		{"tcpSocket", preStop(&corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(1)}}), 10 * time.Second,
			[]string{"FailedPreStopHook", "10.000s StopContainer ... grace=10s"}, nil},
		{"httpGet of a port that is not there", preStop(&corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")}}),
			10 * time.Second, []string{"FailedPreStopHook", "10.000s StopContainer ... grace=10s"}, nil},
		{"ended by itself", []podmilltest.PodOption{podmilltest.Container("web", "img:1", hooked(nil, script("sleep 4")), podmilltest.Runs("sleep 5")),
			podmilltest.Restart(corev1.RestartPolicyNever)}, 10 * time.Second, nil, []string{"Exec", "StopContainer"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				pod := podmilltest.Pod("shop/cart", append(tt.pod, podmilltest.Grace(600*time.Second))...)
				r.work(pod, 10*time.Second)
				r.finish(pod, end(tt.grace))
				r.tells(tt.tells...)
				for _, words := range tt.denies {
					if r.has(words) {
						t.Errorf("the story has %q:\n%s", words, r.story())
					}
				}
			})
		})
	}
}

// B062, B074: all preStop hooks begin at once, those of sidecars too, which stop in their turn; and the sandbox when all have stopped.
func TestAllPreStopHooksBeginAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		stops := func(after string) podmilltest.ContainerOption {
			return podmilltest.Runs("trap 'sleep " + after + "; exit 0' TERM; sleep inf & wait")
		}
		pod := podmilltest.Pod("shop/cart", podmilltest.Sidecar("s1", "img:1", hooked(nil, script("sleep 12")), stops("1")),
			podmilltest.Sidecar("s2", "img:1", hooked(nil, script("sleep 1")), stops("3")),
			podmilltest.Container("a", "img:1", hooked(nil, script("sleep 2")), stops("3")), podmilltest.Container("b", "img:1"))
		r.work(pod, 10*time.Second)
		r.finish(pod, end(30*time.Second))
		r.tells("10.000s Exec shop/cart s1#0", "10.000s Exec shop/cart s2#0", "10.000s Exec shop/cart a#0",
			"10.000s StopContainer shop/cart b#0 grace=30s", "12.000s StopContainer shop/cart a#0 grace=28s",
			"15.000s StopContainer shop/cart s2#0 grace=25s", "22.000s StopContainer shop/cart s1#0 grace=18s", "23.000s StopSandbox")
		if n := r.rt.Log().Count(podmilltest.OpExec); n != 3 {
			t.Errorf("%d hooks ran:\n%s", n, r.story())
		}
	})
}

// B062: when the time is up, what is left is stopped with the floor.
func TestSidecarsStopWhenTheTimeIsUp(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Sidecar("s1", "img:1", hooked(nil, script("sleep inf")), deaf),
			podmilltest.Container("a", "img:1", deaf))
		r.work(pod, 10*time.Second)
		r.finish(pod, end(10*time.Second))
		r.tells("10.000s StopContainer shop/cart a#0 grace=10s took=10s", "20.000s StopContainer shop/cart s1#0 grace=2s took=2s", "22.000s StopSandbox")
	})
}

// A second, shorter delete cuts a hook that runs short; one that is over does not run again.
func TestAShorterDeleteShortensPreStop(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", hooked(nil, script("sleep 60")), deaf),
			podmilltest.Container("log", "img:1", hooked(nil, script("sleep 1")), deaf))
		r.work(pod, 10*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := r.SyncTerminatingPod(ctx, pod, end(120*time.Second)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		r.finish(pod, end(5*time.Second))
		r.tells("15.000s Exec shop/cart web#0", "20.000s event Warning FailedPreStopHook", "15.000s StopContainer shop/cart log#0 grace=5s",
			"20.000s StopContainer shop/cart web#0 grace=2s took=2s")
		if r.has("15.000s Exec shop/cart log#0") {
			t.Error(r.story())
		}
	})
}

// After a restart of the agent a preStop hook that was not over runs again, in what is left of the grace, and one that was over does not.
func TestPreStopRunsAgainAfterARestart(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", hooked(nil, script("sleep 60")), deaf),
			podmilltest.Container("log", "img:1", hooked(nil, script("sleep 1")), deaf))
		r.work(pod, 10*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_ = r.SyncTerminatingPod(ctx, pod, end(20*time.Second))
		r.restart()
		time.Sleep(5 * time.Second)
		r.finish(pod, end(20*time.Second))
		r.tells("20.000s Exec shop/cart web#0", "30.000s StopContainer shop/cart web#0 grace=2s", "20.000s StopContainer shop/cart log#0 grace=10s")
		if r.has("20.000s Exec shop/cart log#0") {
			t.Error(r.story())
		}
	})
}

// A pod that was put back while no agent ran, before it had stopped, lives on, and has its preStop hook and its whole grace when it ends another time.
func TestPreStopRunsAgainInTheNextEnd(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", hooked(nil, script("sleep 1")), deaf))
		r.work(pod, 10*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_ = r.SyncTerminatingPod(ctx, pod, end(20*time.Second))
		r.restart()
		r.work(pod, 5*time.Second)
		r.finish(pod, end(20*time.Second))
		r.tells("10.000s Exec shop/cart web#0", "20.000s Exec shop/cart web#0", "21.000s StopContainer shop/cart web#0 grace=19s")
	})
}

// A pod that is known from the runtime alone has its preStop hooks, as the containers' annotations tell them.
func TestAnOrphanHasItsPreStopHooks(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", hooked(nil, script("sleep 3"))), podmilltest.Grace(20*time.Second))
		r.work(pod, 10*time.Second)
		seen, err := r.rt.InspectPod(t.Context(), pod.UID)
		if err != nil {
			t.Fatal(err)
		}
		r.restart()
		if err := r.SyncTerminatingRuntimePod(t.Context(), seen); err != nil {
			t.Error(err)
		}
		r.tells("10.000s Exec", "13.000s StopContainer ... grace=17s")
	})
}

// A container that is replaced or unhealthy has its preStop hook, too, within its probe's grace where that has one. B073
func TestPreStopOfAKillThatIsNotTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", hooked(nil, script("sleep 3")), deaf), podmilltest.Grace(9*time.Second))
		r.work(pod, 10*time.Second)
		r.work(podmilltest.Edit(pod, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "img:2" }), 20*time.Second)
		r.tells("10.000s Exec", "13.000s StopContainer shop/cart web#0 grace=6s", "19.000s CreateContainer shop/cart web#1")
	})
}

// unready is a prober of containers that cease to be ready after a while.
type unready struct {
	at     time.Time
	ending bool
}

func (u *unready) Probe(_ *corev1.Pod, seen *podmill.RuntimePod, ending bool) map[string]podmill.Health {
	u.ending = ending
	health := map[string]podmill.Health{}
	for _, c := range seen.Containers {
		health[c.ID] = podmill.Health{Started: true, Ready: time.Now().Before(u.at)}
	}
	return health
}

// B052: readiness goes on, and is told, while a pod ends.
func TestReadinessIsToldWhileAPodEnds(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		u := &unready{at: time.Now().Add(15 * time.Second)}
		r.restart(syncpod.WithProber(u))
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", hooked(nil, script("sleep 10")), deaf))
		r.work(pod, 10*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		_ = r.SyncTerminatingPod(ctx, pod, end(20*time.Second))
		h := r.progress.Health[r.seen.Container("web").ID]
		if !u.ending || h.Ready || !h.Started || r.progress.Termination == nil {
			t.Errorf("ending %v, %+v", u.ending, r.progress)
		}
	})
}
