package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	. "github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/podworkers"
)

func TestAPodLivesAndIsRemoved(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start()
		pod := Pod("web", static, InitContainer("init", "busybox:1", Runs("exit 0")), Container("server", "busybox:1"), Grace(5*time.Second))
		w.file.Replace(pod)
		w.pass(time.Second)
		w.wantPhase(pod, corev1.PodRunning)
		w.file.Replace()
		w.pass(10 * time.Second)
		w.wantGone(pod)
		w.wantStory(
			"RunSandbox default/web attempt=0",
			"CreateContainer default/web init#0",
			"StartContainer default/web init#0",
			"default/web init#0 exited code=0",
			"CreateContainer default/web server#0",
			"StartContainer default/web server#0",
			"StopContainer default/web server#0 grace=5s",
			"default/web server#0 exited code=143",
			"StopSandbox default/web",
			"RemoveSandbox default/web",
		)
		for _, dir := range []string{"pods", "status", "log/pods", "log/containers"} {
			if left, _ := filepath.Glob(filepath.Join(w.root, dir, "*")); len(left) > 0 {
				t.Errorf("left on disk: %v", left) // B009
			}
		}
	})
}

func TestAnIdleAgentAsksTheRuntimeForNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start()
		pod := Pod("web", static, Container("a", "busybox:1"), Container("b", "busybox:1"))
		w.file.Replace(pod)
		w.pass(time.Minute)
		before := w.rt.Log().Counts()
		w.pass(10 * time.Minute)
		after := w.rt.Log().Counts()
		for op, n := range after {
			if n -= before[op]; n > 0 && (op != "ListPods" || n > 10) {
				t.Errorf("%d calls of %s in ten idle minutes", n, op)
			}
		}
		w.wantPhase(pod, corev1.PodRunning)
	})
}

// B001
func TestAManifestThatIsRemovedAndPutBackRunsAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start()
		pod := Pod("web", static, Container("server", "busybox:1", Runs("trap '' TERM; sleep 1000000")), Grace(20*time.Second))
		w.file.Replace(pod)
		w.pass(time.Second)
		for range 3 { // it flips while it stops
			w.file.Delete(pod)
			w.pass(time.Second)
			w.file.Upsert(pod)
			w.pass(time.Second)
		}
		w.pass(30 * time.Second)
		w.wantPhase(pod, corev1.PodRunning)
		if n := w.rt.Log().Count("RunSandbox"); n != 2 {
			t.Errorf("%d sandboxes for one restart\n%s", n, w.rt.Log())
		}
	})
}

// B005: a source that has been heard drives its pods, whatever the others say; what could be another's is left alone.
func TestASilentSourceHoldsUpNobodyElse(t *testing.T) {
	inWorld(t, func(w *world) {
		theirs := Pod("theirs", Container("server", "busybox:1"))
		w.more = []podmill.PodSource{NewPodSource("api")}
		w.more[0].(*PodSource).Replace(theirs)
		w.start()
		w.pass(time.Second)
		w.wantPhase(theirs, corev1.PodRunning)

		w.more = []podmill.PodSource{NewPodSource("api")} // and now it is silent for ever
		w.start()
		mine := Pod("mine", static, Container("server", "busybox:1"), Grace(time.Second))
		w.file.Replace(mine)
		w.pass(time.Minute)
		w.wantPhase(mine, corev1.PodRunning)
		w.file.Delete(mine)
		w.pass(time.Minute)
		w.wantGone(mine)
		w.file.Upsert(mine)
		w.pass(time.Minute)
		w.wantPhase(mine, corev1.PodRunning)
		if n := w.rt.Log().Count("StopContainer"); n != 1 {
			t.Errorf("%d containers were stopped\n%s", n, w.rt.Log())
		}
		if _, synced := w.agent.Pods(); synced {
			t.Error("the agent says that it has heard every source")
		}
	})
}

// B014: the old pod of a static name is gone before the new one comes.
func TestAnEditedManifestWaitsForTheOldPod(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start()
		old := Pod("web", static, UID("old"), Container("server", "busybox:1", Runs("trap '' TERM; sleep 1000000")), Grace(60*time.Second))
		w.file.Replace(old)
		w.pass(time.Second)
		edited := Pod("web", static, UID("new"), Container("server", "busybox:2"))
		w.file.Replace(edited)
		w.pass(2 * time.Minute)
		w.wantPhase(edited, corev1.PodRunning)
		w.wantStory(
			"RunSandbox default/web attempt=0",
			"CreateContainer default/web server#0",
			"StartContainer default/web server#0",
			"StopContainer default/web server#0 grace=1m0s",
			"default/web server#0 exited code=137",
			"StopSandbox default/web",
			"RemoveSandbox default/web",
			"RunSandbox default/web attempt=0",
			"CreateContainer default/web server#0",
			"StartContainer default/web server#0",
		)
	})
}

// B036: a pod that is made anew under its name while the one before still stops is another pod: each is treated by its own UID, and neither has a status of
// the other's.
func TestAPodThatIsMadeAnewIsNotItsFormerSelf(t *testing.T) {
	inWorld(t, func(w *world) {
		api := NewPodSource("api")
		w.more = []podmill.PodSource{api}
		w.file.Replace()
		api.Replace()
		w.start()
		make := func(uid types.UID, image string) *corev1.Pod {
			return Pod("web", UID(uid), Annotation(podmill.AnnotationConfigSource, "api"), Grace(20*time.Second), Container("server", image, Runs("trap '' TERM; sleep 1000000")))
		}
		first, second := make("first", "busybox:1"), make("second", "busybox:2")
		api.Upsert(first)
		w.pass(time.Second)
		api.Delete(first)
		api.Upsert(second)
		w.pass(5 * time.Second)
		id := w.wantPhase(second, corev1.PodRunning).Status.ContainerStatuses[0].ContainerID
		if old := w.pod(first); old == nil || old.Status.ContainerStatuses[0].ContainerID == id || old.Status.ContainerStatuses[0].State.Running == nil {
			t.Errorf("within its grace the first one is shown as %+v", old)
		}
		w.pass(time.Minute)
		w.wantGone(first)
		if s := w.wantPhase(second, corev1.PodRunning).Status.ContainerStatuses[0]; s.ContainerID != id || s.RestartCount != 0 {
			t.Errorf("status %+v", s)
		}
	})
}

// A pod that has gone is torn down once: when housekeeping comes, nobody takes it for one that is still there.
func TestAPodIsTornDownOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		var mu sync.Mutex
		cleaned := map[string]int{}
		w.opts = []agent.Option{agent.WithObservers(agent.Observers{Workers: podworkers.Observer{
			SyncStarted: func(pod podmill.PodRef, during podworkers.State) {
				mu.Lock()
				defer mu.Unlock()
				if during >= podworkers.Terminating {
					cleaned[pod.Name]++
				}
			},
		}})}
		w.start()
		var pods []*corev1.Pod
		for i := range 20 {
			pods = append(pods, Pod(fmt.Sprint("web", i), static, Container("server", "busybox:1"), Grace(time.Second)))
		}
		w.file.Replace(pods...)
		w.pass(3 * time.Second)
		for _, pod := range pods {
			w.file.Delete(pod)
			w.pass(230 * time.Millisecond)
		}
		w.pass(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for _, pod := range pods {
			if n := cleaned[pod.Name]; n != 2 {
				t.Errorf("pod %s was stopped and cleaned up in %d steps", pod.Name, n)
			}
		}
	})
}

// B017
func TestAPodThatIsRemovedWhileItsImageIsPulledNeverStarts(t *testing.T) {
	inWorld(t, func(w *world) {
		faulty := Faulty(w.rt, Fault{On: "PullImage", Effect: Hang(nil)})
		w.use = faulty
		w.start()
		pod := Pod("web", static, Container("server", "slow:1"), Grace(30*time.Second))
		w.file.Replace(pod)
		w.pass(5 * time.Second)
		w.file.Replace()
		w.pass(5 * time.Second)
		w.wantGone(pod)
		w.pass(time.Hour)
		if n := w.rt.Log().Count("CreateContainer"); n != 0 {
			t.Errorf("%d containers were created", n)
		}
	})
}

func TestARestartOfTheAgentTouchesNoContainer(t *testing.T) {
	inWorld(t, func(w *world) {
		pod := Pod("web", static, Container("server", "busybox:1"), Container("crashed", "busybox:1"))
		w.start()
		w.file.Replace(pod)
		w.pass(time.Second)
		w.rt.KillProcess(pod.UID, "crashed", 1)
		w.pass(time.Second)
		before := w.wantPhase(pod, corev1.PodRunning).Status
		w.rt.Log().Reset()
		w.start()
		w.pass(5 * time.Second)
		w.wantStory()
		after := w.wantPhase(pod, corev1.PodRunning).Status
		if got, want := after.ContainerStatuses[1].RestartCount, before.ContainerStatuses[1].RestartCount; got != want || want != 1 {
			t.Errorf("restart count %d, before the agent's restart %d", got, want)
		}
		if !after.StartTime.Equal(before.StartTime) {
			t.Errorf("start time %v, before the agent's restart %v", after.StartTime, before.StartTime)
		}
	})
}

// The runtime's name is a part of every container ID that is told, and an agent that has nothing to start has no other need to ask for it.
func TestContainersHaveTheSameIDsAfterARestart(t *testing.T) {
	inWorld(t, func(w *world) {
		pod := Pod("web", static, Container("server", "busybox:1"))
		w.start()
		w.file.Replace(pod)
		w.pass(time.Second)
		before := w.wantPhase(pod, corev1.PodRunning).Status.ContainerStatuses[0].ContainerID
		w.use = Faulty(w.rt, Fault{On: OpRuntimeStatus, Times: 2, Effect: Fail(errors.New("not yet"))})
		w.start()
		w.pass(5 * time.Second)
		after := w.wantPhase(pod, corev1.PodRunning).Status.ContainerStatuses[0].ContainerID
		if before != after || !strings.HasPrefix(after, "podmilltest://") {
			t.Errorf("container ID %q, before the agent's restart %q", after, before)
		}
	})
}

// A runtime that has said that it has a network is not asked again, until a sandbox fails; while it has none no other is tried.
func TestTheRuntimeIsAskedForItsNetworkWhenASandboxHasFailed(t *testing.T) {
	inWorld(t, func(w *world) {
		asked := func() int { return w.rt.Log().Count(OpRuntimeStatus) }
		w.start()
		first, second, third := Pod("first", static, Container("a", "busybox:1")), Pod("second", static, Container("a", "busybox:1")), Pod("third", static, Container("a", "busybox:1"))
		w.file.Replace(first)
		w.pass(time.Hour)
		w.wantPhase(first, corev1.PodRunning)
		if n := asked(); n != 1 {
			t.Errorf("the runtime was asked %d times, want once, for its name", n)
		}
		ok := podmill.Condition{OK: true}
		w.rt.SetStatus(podmill.RuntimeStatus{Name: "podmilltest", RuntimeReady: ok, NetworkReady: podmill.Condition{Message: "no CNI configuration"}})
		w.file.Replace(first, second, third)
		w.pass(time.Minute)
		w.wantPhase(second, corev1.PodPending)
		tries := w.rt.Log().Count(OpRunSandbox)
		if asked() < 2 || tries > 3 { // first, and the others once
			t.Errorf("the runtime was asked %d times, and for %d sandboxes", asked(), tries)
		}
		w.rt.SetStatus(podmill.RuntimeStatus{Name: "podmilltest", RuntimeReady: ok, NetworkReady: ok})
		w.pass(time.Minute)
		w.wantPhase(second, corev1.PodRunning)
		w.wantPhase(third, corev1.PodRunning)
	})
}

func TestAPodWhoseManifestWentWhileTheAgentWasDownStopsWithItsGrace(t *testing.T) {
	inWorld(t, func(w *world) {
		pod := Pod("web", static, Container("server", "busybox:1", Runs("trap '' TERM; sleep 1000000")), Grace(40*time.Second))
		w.start()
		w.file.Replace(pod)
		w.pass(time.Second)
		w.end()
		w.rt.Log().Reset()
		w.file.Replace()
		w.start()
		w.pass(30 * time.Second)
		if seen, _ := w.rt.InspectPod(t.Context(), pod.UID); seen.Empty() {
			t.Error("it was killed before its grace was over")
		}
		w.pass(30 * time.Second)
		w.wantGone(pod)
		w.wantStory(
			"StopContainer default/web server#0 grace=40s",
			"default/web server#0 exited code=137",
			"StopSandbox default/web",
			"RemoveSandbox default/web",
		)
	})
}

// B001, B016: a pod that has finished stays so over a restart of the agent, and nothing of it is started.
func TestAFinishedPodStaysFinished(t *testing.T) {
	inWorld(t, func(w *world) {
		pod := Pod("job", static, Container("work", "busybox:1", Runs("sleep 1; exit 0")), Restart(corev1.RestartPolicyNever))
		w.start()
		w.file.Replace(pod)
		w.pass(time.Minute)
		w.wantPhase(pod, corev1.PodSucceeded)
		w.rt.Log().Reset()
		w.start()
		w.pass(time.Minute)
		w.wantPhase(pod, corev1.PodSucceeded)
		w.wantStory()

		w.file.Replace() // and one that is put back is another pod
		w.pass(time.Minute)
		w.file.Replace(pod)
		w.pass(500 * time.Millisecond)
		w.wantPhase(pod, corev1.PodRunning)
	})
}

// A manifest is removed and put back, and the agent dies before it could finish with the former pod, of which it has told the end already.
func TestAPodThatWasPutBackBeforeTheAgentDiedRunsAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		volumes := NewVolumeMounter(w.root)
		w.opts = append(w.opts, agent.WithVolumes(volumes))
		for _, pod := range []*corev1.Pod{
			Pod("always", static, Container("server", "busybox:1")),
			Pod("on-failure", static, Container("server", "busybox:1"), Restart(corev1.RestartPolicyOnFailure)),
		} {
			w.start()
			w.file.Replace(pod)
			w.pass(time.Second)
			volumes.Fail(func(types.UID, string) error { return errors.New("busy") })
			w.file.Replace()
			w.pass(time.Second)
			w.wantPhase(pod, corev1.PodFailed)
			w.file.Replace(pod)
			w.end()
			volumes.Fail(nil)
			w.start()
			w.pass(time.Minute)
			if phase := w.pod(pod).Status.Phase; phase == corev1.PodFailed {
				t.Errorf("pod %s is %s\n%s", pod.Name, phase, w.rt.Log())
			}
		}
	})
}

// The sink is slow to learn that a pod has gone, which so has a past when it is put back. It must not be taken for the new one's.
func TestAPodThatIsPutBackWhileTheSinkIsSlowHasNoPast(t *testing.T) {
	inWorld(t, func(w *world) {
		sink := NewStatusSink()
		w.opts = append(w.opts, agent.WithStatusSink(sink))
		pod := Pod("web", static, Container("server", "busybox:1"))
		w.start()
		w.file.Replace(pod)
		w.pass(time.Second)
		sink.Fail(func(*corev1.Pod) error { return errors.New("not now") })
		w.file.Replace()
		w.pass(10 * time.Second)
		w.file.Replace(pod)
		w.pass(time.Second)
		w.wantPhase(pod, corev1.PodRunning)
	})
}

// B028, B051, B071
func TestWhatGoesBehindTheAgentsBackIsReplaced(t *testing.T) {
	inWorld(t, func(w *world) {
		pod := Pod("web", static, Container("server", "busybox:1"))
		other := Pod("other", static, Container("server", "busybox:1"))
		w.start()
		w.file.Replace(pod, other)
		w.pass(time.Second)
		steps := map[string]func(){
			"container": func() { w.rt.RemoveBehindBack(pod.UID, "server") },
			"sandbox":   func() { w.rt.KillSandbox(pod.UID) },
			"pod":       func() { w.rt.RemovePodBehindBack(pod.UID) },
		}
		for what, step := range steps {
			step()
			w.pass(2 * time.Minute)
			seen, err := w.rt.InspectPod(t.Context(), pod.UID)
			if err != nil {
				t.Fatal(err)
			}
			if c := seen.Container("server"); c == nil || c.State != podmill.StateRunning {
				t.Errorf("%s gone, and not replaced\n%s", what, w.rt.Log())
			}
		}
		if seen, _ := w.rt.InspectPod(t.Context(), other.UID); seen.Containers[0].Attempt != 0 || len(seen.Containers) != 1 {
			t.Errorf("the other pod was touched: %+v", seen)
		}
	})
}

func TestStopPodsOnExit(t *testing.T) {
	inWorld(t, func(w *world) {
		w.opts = append(w.opts, agent.WithStopPodsOnExit())
		pod := Pod("web", static, Container("server", "busybox:1"))
		w.start()
		w.file.Replace(pod)
		w.pass(time.Second)
		w.end()
		if seen, _ := w.rt.InspectPod(t.Context(), pod.UID); !seen.Empty() {
			t.Errorf("the pod is left\n%s", w.rt.Log())
		}
		if left, _ := os.ReadDir(filepath.Join(w.root, "status")); len(left) > 0 {
			t.Errorf("a status is left: %v", left)
		}
	})
}

// Two pods are left of an agent that died, and one of them cannot be inspected: the next agent still stops the other before it exits, and says of which it
// does not know.
func TestStopPodsOnExitDespiteOneThatCannotBeInspected(t *testing.T) {
	for what, effect := range map[string]Effect{"fails": Fail(errors.New("broken")), "hangs": Hang(nil)} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, func(w *world) {
				broken := Pod("broken", static, Container("server", "busybox:1"))
				good := Pod("good", static, Container("server", "busybox:1"))
				w.start()
				w.file.Replace(broken, good)
				w.pass(time.Second)
				w.end()

				w.file.Replace()
				rt := Faulty(w.rt, Fault{On: OpInspectPod, Pod: broken.UID, Effect: effect})
				a, err := agent.New(rt, w.root, []podmill.PodSource{w.file}, agent.WithStopPodsOnExit())
				if err != nil {
					w.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(w.Context(), time.Second)
				defer cancel()
				if err := a.Run(ctx); err == nil || !strings.Contains(err.Error(), "default/broken") {
					w.Errorf("it ended with %v", err)
				}
				if seen, _ := w.rt.InspectPod(w.Context(), good.UID); !seen.Empty() {
					w.Errorf("the other pod is left\n%s", w.rt.Log())
				}
				if seen, _ := w.rt.InspectPod(w.Context(), broken.UID); len(seen.Sandboxes) != 1 || seen.Container("server").State != podmill.StateRunning {
					w.Errorf("the one that nobody knows was touched\n%s", w.rt.Log())
				}
			})
		})
	}
}

func TestLogAndExec(t *testing.T) {
	inWorld(t, func(w *world) {
		pod := Pod("web", static, Container("server", "busybox:1"))
		w.start()
		w.file.Replace(pod)
		w.pass(time.Second)
		path, running, err := w.agent.Log(t.Context(), "default", "web", "server", false)
		if err != nil || !running() || filepath.Base(path) != "0.log" {
			t.Errorf("log %s, %v", path, err)
		}
		if _, _, err := w.agent.Log(t.Context(), "default", "web", "server", true); err == nil || err.Error() != `previous terminated container "server" in pod "web" not found` {
			t.Errorf("the log of an instance that there is not: %v", err)
		}
		if _, err := w.agent.Exec(t.Context(), "default", "web", "other", []string{"true"}); !errors.Is(err, podmill.ErrNotFound) {
			t.Errorf("a container that there is not: %v", err)
		}
		result, err := w.agent.Exec(t.Context(), "default", "web", "server", Script("echo hello; exit 3"))
		if err != nil || string(result.Stdout) != "hello\n" || result.ExitCode != 3 {
			t.Errorf("exec: %+v, %v", result, err)
		}
		if err := w.agent.Healthy(); err != nil {
			t.Error(err)
		}
	})
}
