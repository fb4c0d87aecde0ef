package syncpod_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/syncpod"
)

// cgroups keeps one pod's cgroup.
type cgroups struct {
	err     error
	removed bool
}

func (c *cgroups) EnsureCgroup(context.Context, *corev1.Pod) (string, error) {
	return "/kubepods/pod", c.err
}

func (c *cgroups) RemoveCgroup(context.Context, types.UID) error {
	c.removed = c.err == nil
	return c.err
}

// bubble runs a test over a rig in virtual time.
func bubble(t *testing.T, test func(t *testing.T, r *rig), opts ...podmilltest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newRig(t, append(opts, quiet...)...)) })
}

func TestAStartMakesNoCallThatItDoesNotNeed(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("a", "img:1"), podmilltest.Container("b", "img:1"), podmilltest.Container("c", "img:1"))
		if _, err := r.SyncPod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		want := map[podmilltest.Op]int{
			podmilltest.OpRunSandbox: 1, podmilltest.OpCreateContainer: 3, podmilltest.OpStartContainer: 3,
			podmilltest.OpInspectImage: 3, // one check of the image for each container
			podmilltest.OpInspectPod:   2, // before it begins, and when all has been done
		}
		if diff := cmp.Diff(want, r.rt.Log().Counts()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestASyncThatFindsNothingToDoAsksTheRuntimeNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
		r.work(pod, 10*time.Second)
		r.rt.Log().Reset()
		for range 3 {
			if end, err := r.SyncPod(t.Context(), pod); end != nil || err != nil {
				t.Fatal(end, err)
			}
		}
		if counts := r.rt.Log().Counts(); len(counts) > 0 {
			t.Errorf("calls: %v", counts)
		}
		if n := len(r.rt.Log().Entries()); n > 0 {
			t.Errorf("something was told:\n%s", r.story())
		}
	})
}

// What is known says what to stop. That nothing runs says only a look, whatever was known before.
func TestAnEndLooksOnceItHasStopped(t *testing.T) {
	for name, known := range map[string]bool{"the container is known": true, "nothing is known": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
				r.work(pod, 10*time.Second)
				looks := 1
				if !known {
					r.mu.Lock()
					r.known[pod.UID] = &podmill.RuntimePod{PodRef: podmill.RefOf(pod)}
					r.mu.Unlock()
					looks = 2
				}
				r.rt.Log().Reset()
				if err := r.SyncTerminatingPod(t.Context(), pod, end(30*time.Second)); err != nil {
					t.Fatal(err)
				}
				counts := r.rt.Log().Counts()
				if counts[podmilltest.OpStopContainer] != 1 || counts[podmilltest.OpInspectPod] != looks {
					t.Errorf("calls: %v, want one stop and %d looks", counts, looks)
				}
			})
		})
	}
}

// B017: a pod that is deleted while its image is pulled, and while its sandbox is still on its way or later, never starts, even if the pull goes on and succeeds.
func TestAPodThatWasDeletedDuringAPullStartsNothing(t *testing.T) {
	t.Run("without a sandbox", func(t *testing.T) { deletedDuringAPull(t, 100*time.Millisecond) })
	t.Run("in its sandbox", func(t *testing.T) { deletedDuringAPull(t, 5*time.Second) })
}

func deletedDuringAPull(t *testing.T, after time.Duration) {
	t.Helper()
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
		r.pulling = make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		synced := make(chan error)
		go func() {
			_, err := r.SyncPod(ctx, pod)
			synced <- err
		}()
		time.Sleep(after)
		cancel()
		time.Sleep(1700 * time.Second)
		close(r.pulling)
		if err := <-synced; !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v", err)
		}
		r.finish(pod, end(30*time.Second))
		if n := r.rt.Log().Count(podmilltest.OpCreateContainer); n > 0 {
			t.Errorf("%d containers were created", n)
		}
		if r.has("event Warning") {
			t.Errorf("the end of a pod was told as a failure:\n%s", r.story())
		}
	})
}

// B017: nor does one that is deleted while its container is created, whether that succeeds or not; and that is no failure to tell of.
func TestAPodThatWasDeletedDuringACreateIsNotStarted(t *testing.T) {
	for _, created := range []bool{true, false} {
		bubble(t, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithCancel(t.Context())
			r.faulty.Add(podmilltest.Fault{On: podmilltest.OpCreateContainer, Effect: podmilltest.Effect{
				Name: "is the last", Call: func(_ context.Context, call func() error) error {
					if !created {
						cancel()
					}
					defer cancel()
					return call()
				},
			}})
			pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
			if _, err := r.SyncPod(ctx, pod); !errors.Is(err, context.Canceled) {
				t.Errorf("error = %v", err)
			}
			if n := r.rt.Log().Count(podmilltest.OpStartContainer); n > 0 {
				t.Error("the container was started")
			}
			if r.has("event Warning") {
				t.Errorf("the end of a pod was told as a failure:\n%s", r.story())
			}
			r.finish(pod, end(30*time.Second))
			if left := r.states(pod); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// B071: a container that is gone before anyone has looked has run all the same: it is started again by its policy, under another attempt, and waits.
func TestAContainerThatCameAndWentHasRun(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
		r.faulty.Add(podmilltest.Fault{On: podmilltest.OpStartContainer, Effect: podmilltest.Effect{
			Name: "comes and goes", Call: func(_ context.Context, call func() error) error {
				defer r.rt.RemoveBehindBack(pod.UID, "web")
				return call()
			},
		}})
		r.work(pod, 5*time.Second)
		if !r.has("StartContainer shop/cart web#0") || !r.has("StartContainer shop/cart web#1") || r.has("web#2") {
			t.Error(r.story())
		}
		if r.progress.Waiting["web"].Reason != "CrashLoopBackOff" {
			t.Errorf("waiting: %v", r.progress.Waiting)
		}
	})
}

// While a container cannot be stopped, neither its next instance nor another sandbox is started.
func TestNothingTakesThePlaceOfWhatStillRuns(t *testing.T) {
	stuck := podmilltest.Fault{On: podmilltest.OpStopContainer, Container: "web", Effect: podmilltest.Fail(errors.New("shim is stuck"))}
	pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"), podmilltest.Container("log", "img:1"))
	bubble(t, func(t *testing.T, r *rig) {
		r.work(pod, 10*time.Second)
		r.faulty.Add(stuck)
		r.work(podmilltest.Edit(pod, func(p *corev1.Pod) {
			p.Spec.Containers[0].Image, p.Spec.Containers[1].Image = "img:2", "img:2"
		}), 1500*time.Millisecond)
		if diff := cmp.Diff([]string{"log#0 exited", "log#1 running", "web#0 running"}, r.states(pod)); diff != "" {
			t.Errorf("%s\n%s", diff, r.story())
		}
	})
	bubble(t, func(t *testing.T, r *rig) {
		r.work(pod, 10*time.Second)
		r.faulty.Add(stuck)
		r.rt.KillSandbox(pod.UID)
		r.work(pod, 1500*time.Millisecond)
		if n := r.rt.Log().Count(podmilltest.OpRunSandbox); n != 1 {
			t.Error(r.story())
		}
	})
}

// B013: the pod is reported as stopped only when every container has, and a container that never started is not waited for or invented.
func TestStoppedIsToldWhenAllHaveStopped(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/job", podmilltest.InitContainer("migrate", "img:1"), podmilltest.Container("web", "img:1"),
			podmilltest.Restart(corev1.RestartPolicyNever))
		if !r.work(pod, time.Minute) {
			t.Fatal("the pod does not finish")
		}
		if r.progress.Stopped {
			t.Error("reported as stopped before it was terminated")
		}
		r.finish(pod, end(30*time.Second))
		if !r.progress.Stopped || !r.progress.Removed {
			t.Errorf("last report: %+v", r.progress)
		}
		if len(r.progress.Waiting) > 0 || r.seen.Container("web") != nil {
			t.Errorf("something is told of a container that never was: %+v", r.progress)
		}
	}, podmilltest.WithScript("migrate", "exit 1"))
}

// B015: whoever thinks that a pod has stopped is wrong where it has not. Nothing is taken away from it before it has, and it does: it has no other
// way to its end.
func TestNothingIsTakenFromAPodThatRuns(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"), podmilltest.Volume("data", corev1.VolumeSource{}),
			podmilltest.Grace(20*time.Second))
		r.work(pod, 10*time.Second)
		r.faulty.Add(podmilltest.Fault{On: podmilltest.OpStopContainer, Effect: podmilltest.Fail(errors.New("no"))})
		if err := r.SyncTerminatedPod(t.Context(), pod); err == nil || !strings.Contains(err.Error(), "stop what still runs") {
			t.Errorf("error = %v", err)
		}
		if got := r.states(pod); len(got) != 1 || got[0] != "web#0 running" {
			t.Errorf("containers: %v", got)
		}
		if _, err := os.Stat(filepath.Join(r.root, "lib", "pods", string(pod.UID))); err != nil {
			t.Error(err)
		}
		r.faulty.Clear()
		if err := r.SyncTerminatedPod(t.Context(), pod); err != nil || !r.has("StopContainer shop/cart web#0 grace=20s") {
			t.Errorf("error = %v\n%s", err, r.story())
		}
		if got := r.states(pod); len(got) != 0 {
			t.Errorf("containers: %v", got)
		}
	})
}

// What went wrong with a start is told until the next start, and not as the reason for a later one.
func TestAFailureIsForgottenWhenItIsOver(t *testing.T) {
	told := func(r *rig, reason string) (n int) {
		for _, line := range r.reports {
			n += strings.Count(line, reason)
		}
		return n
	}
	bubble(t, func(t *testing.T, r *rig) { // it was started, and has ended before anyone looked
		r.faulty.Add(podmilltest.Fault{On: podmilltest.OpCreateContainer, Times: 1, Effect: podmilltest.Fail(errors.New("no space"))})
		r.work(podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", podmilltest.Runs("exit 1"))), 5*time.Second)
		if n := told(r, "CreateContainerError"); n != 2 { // at once, and by the sync that then creates it
			t.Errorf("told %d times:\n%s", n, strings.Join(r.reports, "\n"))
		}
	})
	bubble(t, func(t *testing.T, r *rig) { // it was started, and only the reply was lost
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
		r.faulty.Add(podmilltest.Fault{On: podmilltest.OpStartContainer, Times: 1, Effect: podmilltest.LoseReply(errors.New("reset"))})
		r.work(pod, time.Second)
		r.rt.KillProcess(pod.UID, "web", 1)
		r.work(pod, 5*time.Second)
		if n := told(r, "RunContainerError"); n != 0 {
			t.Errorf("told %d times:\n%s", n, strings.Join(r.reports, "\n"))
		}
	})
}

// A clock that is set, back or ahead, makes no container wait longer or shorter for its restart.
func TestBackoffDoesNotHeedAClockThatJumps(t *testing.T) {
	starts := func(t *testing.T, jump func(r *rig)) (at string) {
		bubble(t, func(t *testing.T, r *rig) {
			pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", podmilltest.Runs("exit 1")))
			r.work(pod, 15*time.Second)
			jump(r)
			r.work(pod, 5*time.Minute)
			for _, e := range r.rt.Log().Entries() {
				if line := e.String(); strings.Contains(line, "StartContainer") {
					at += line + "\n"
				}
			}
		})
		return at
	}
	want := starts(t, func(*rig) {})
	for _, jump := range []time.Duration{time.Hour, -time.Hour} {
		if got := starts(t, func(r *rig) { r.jumped, r.ahead = time.Now(), jump }); got != want {
			t.Errorf("with a jump of %v\n%swithout\n%s", jump, got, want)
		}
	}
}

// A container that cannot be started is in a crash loop like one that ends at once.
func TestAContainerThatCannotStartBacksOff(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.work(podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", podmilltest.Command("nosuch"))), 65*time.Second)
		if n := r.rt.Log().Count(podmilltest.OpStartContainer); n != 4 { // at once, at once, after 10 s, after 20 s
			t.Errorf("tried %d times\n%s", n, r.story())
		}
	})
}

func TestVolumesOfARunningPodAreBroughtUpToDate(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"), podmilltest.Volume("conf", corev1.VolumeSource{}))
		r.work(pod, 10*time.Second)
		r.volumes.Fail(func(types.UID, string) error { return errors.New("the disk is full") })
		if _, err := r.SyncPod(t.Context(), pod); err == nil || !strings.Contains(err.Error(), "the disk is full") {
			t.Errorf("error = %v", err)
		}
	})
}

// B001: a pod of the same UID that comes back is another one: it does not wait for what the first one did, and runs what that has done.
func TestAUIDThatComesBackStartsWithoutAPast(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/job", podmilltest.Container("job", "img:1"), podmilltest.Restart(corev1.RestartPolicyNever))
		for range 2 {
			if !r.work(pod, time.Minute) {
				t.Fatal("the job does not finish")
			}
			r.finish(pod, end(30*time.Second))
		}
		if n := r.rt.Log().Count(podmilltest.OpStartContainer); n != 2 {
			t.Errorf("started %d times", n)
		}
	}, podmilltest.WithScript("job", "sleep 1"))
}

// A runtime that never says what became of a container keeps no pod from ending.
func TestAnUnknownContainerThatWasStoppedIsTakenForStopped(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
		r.work(pod, 10*time.Second)
		r.rt.LoseTrack(pod.UID, "web")
		r.faulty.Add(podmilltest.Fault{On: podmilltest.OpStopContainer, Effect: podmilltest.Fail(nil)})
		r.finish(pod, end(30*time.Second))
		if n := r.rt.Log().Count(podmilltest.OpStopSandbox); n != 1 {
			t.Error(r.story())
		}
	})
}

func TestAPodWithoutANetworkWaits(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		down := errors.New("cni plugin not initialized")
		r.restart(syncpod.WithNetworkReady(func(context.Context) error { return down }))
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
		r.work(pod, 2500*time.Millisecond)
		if !r.has("event Warning NetworkNotReady shop/cart: network is not ready: cni plugin not initialized") {
			t.Errorf("nobody was told:\n%s", r.story())
		}
		if n := r.rt.Log().Count(podmilltest.OpRunSandbox); n > 0 {
			t.Error("a sandbox was run")
		}
		host := podmilltest.Pod("shop/host", podmilltest.Container("web", "img:1"), podmilltest.HostNetwork())
		r.work(host, 10*time.Second)
		if got := r.states(host); len(got) != 1 {
			t.Errorf("a pod in the host's network waits too: %v", got)
		}
		down = nil
		r.work(pod, 10*time.Second)
		if got := r.states(pod); len(got) != 1 || got[0] != "web#0 running" {
			t.Errorf("the network is there: %v", got)
		}
	})
}

// B119
func TestANameTooLongForItsLogsIsToldAndDisturbsNobody(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod(strings.Repeat("n", 20)+"/"+strings.Repeat("p", 230), podmilltest.Container("web", "img:1"))
		if _, err := r.SyncPod(t.Context(), pod); err == nil || !strings.Contains(err.Error(), "too long") {
			t.Errorf("error = %v", err)
		}
		if !r.has("event Warning FailedCreatePodSandBox", "too long a name") {
			t.Errorf("nobody was told:\n%s", r.story())
		}
		r.finish(pod, end(0))
		other := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
		r.work(other, 10*time.Second)
		if got := r.states(other); len(got) != 1 {
			t.Errorf("another pod: %v", got)
		}
	})
}

// B033, with the logs of an earlier life on disk.
func TestCountsGoOnWhereTheLogsEnd(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"), podmilltest.Container("log", "img:1"))
		dir := filepath.Join(r.root, "log", "pods", fmt.Sprintf("shop_cart_%s", pod.UID), "web")
		must(t, os.MkdirAll(filepath.Join(dir, "9.log"), 0o755))
		for _, name := range []string{"0.log", "1.log", "2.log.20240101-000000.gz", "notes.txt", "7abc.log", "99999999999.log"} {
			must(t, os.WriteFile(filepath.Join(dir, name), []byte("earlier"), 0o600))
		}
		r.work(pod, 10*time.Second)
		if diff := cmp.Diff([]string{"log#0 running", "web#3 running"}, r.states(pod)); diff != "" {
			t.Error(diff)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "1.log")); err != nil || string(b) != "earlier" {
			t.Errorf("an earlier log: %q, %v", b, err)
		}
		other := podmilltest.Pod("shop/other", podmilltest.Container("web", "img:1"))
		must(t, os.WriteFile(filepath.Join(r.root, "log", "pods", fmt.Sprintf("shop_other_%s", other.UID)), nil, 0o600))
		if _, err := r.SyncPod(t.Context(), other); err == nil || !strings.Contains(err.Error(), "look for earlier logs of container web") {
			t.Errorf("a directory that cannot be read: %v", err)
		}
	})
}

// B024: the runtime has lost everything, the source remembers.
func TestCountsGoOnWhereTheLastStatusEnds(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"), podmilltest.Container("done", "img:1"),
			podmilltest.Restart(corev1.RestartPolicyOnFailure))
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{
			{Name: "web", RestartCount: 6, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			{Name: "done", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 0}}},
		}
		r.work(pod, 10*time.Second)
		if diff := cmp.Diff([]string{"web#7 running"}, r.states(pod)); diff != "" {
			t.Error(diff)
		}
	})
}

// An agent that starts is told that there is nothing, by a listing that was too old. Its pod runs, and must not be taken for lost: one that is
// never restarted would have failed for good.
func TestAPodThatRanIsLookedAtBeforeItIsTakenForGone(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"), podmilltest.Restart(corev1.RestartPolicyNever))
		r.work(pod, 10*time.Second)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{
			{Name: "web", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		}
		r.restart()
		r.known[pod.UID] = &podmill.RuntimePod{PodRef: podmill.RefOf(pod)}
		if end, err := r.SyncPod(t.Context(), pod); end != nil || err != nil {
			t.Errorf("end %v, %v\n%s", end, err, r.story())
		}
		if diff := cmp.Diff([]string{"web#0 running"}, r.states(pod)); diff != "" {
			t.Error(diff)
		}
	})
}

// A runtime that says it has stopped a container, and has not, must not make the syncer spin.
func TestARuntimeThatLiesIsLeftAlone(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
		r.work(pod, 10*time.Second)
		r.faulty.Add(podmilltest.Fault{On: podmilltest.OpStopContainer, Effect: podmilltest.Fail(nil)})
		err := r.SyncTerminatingPod(t.Context(), pod, end(30*time.Second))
		if err == nil || !strings.Contains(err.Error(), "containers do not stop, there is still to do: kill web#0") {
			t.Errorf("error = %v", err)
		}
		if !r.has("event Warning FailedKillPod") {
			t.Errorf("nobody was told:\n%s", r.story())
		}
		if r.progress.Stopped {
			t.Error("reported as stopped")
		}
	})
}

func TestAPodThatDoesNotSettleIsLeftAlone(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
		r.work(pod, 10*time.Second)
		r.faulty.Add(podmilltest.Fault{On: podmilltest.OpStopContainer, Effect: podmilltest.Fail(nil)})
		_, err := r.SyncPod(t.Context(), podmilltest.Edit(pod, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "img:2" }))
		if err == nil || !strings.Contains(err.Error(), "the pod does not settle, there is still to do: kill web#0") {
			t.Errorf("error = %v", err)
		}
	})
}

// B038: what is not there is stopped.
func TestNotFoundIsDone(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
		r.work(pod, 10*time.Second)
		r.faulty.Add(podmilltest.Fault{On: podmilltest.OpStopContainer, Effect: podmilltest.Effect{
			Name: "it is gone", Call: func(ctx context.Context, call func() error) error {
				_ = r.rt.RemoveBehindBack(pod.UID, "web")
				return fmt.Errorf("stop: %w", podmill.ErrNotFound)
			},
		}})
		r.finish(pod, end(30*time.Second))
		if !r.progress.Removed {
			t.Errorf("last report: %+v", r.progress)
		}
	})
}

// Every failure around the runtime has its event, and heals.
func TestFailuresOfTheSurroundingsAreTold(t *testing.T) {
	for _, tt := range []struct {
		name, event string
		spoil       func(r *rig) (heal func())
	}{
		{"volume", `event Warning FailedMount shop/cart: mount volumes of pod`, func(r *rig) func() {
			r.volumes.Fail(func(_ types.UID, volume string) error { return errors.New("no such configmap") })
			return func() { r.volumes.Fail(nil) }
		}},
		{"cgroup", `event Warning FailedCreatePodContainer shop/cart: unable to ensure pod container exists: read-only`, func(r *rig) func() {
			c := &cgroups{err: errors.New("read-only")}
			r.restart(syncpod.WithCgroups(c))
			return func() { c.err = nil }
		}},
		{"directory", `event Warning FailedToMakePodDataDirectories shop/cart: error making pod data directories: `, func(r *rig) func() {
			must(r.t, os.WriteFile(filepath.Join(r.root, "lib"), nil, 0o600))
			return func() { must(r.t, os.Remove(filepath.Join(r.root, "lib"))) }
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				heal := tt.spoil(r)
				pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"), podmilltest.Volume("data", corev1.VolumeSource{}))
				if _, err := r.SyncPod(t.Context(), pod); err == nil {
					t.Error("no error")
				}
				if !r.has(tt.event) {
					t.Errorf("not told:\n%s", r.story())
				}
				if n := r.rt.Log().Count(podmilltest.OpRunSandbox); n > 0 {
					t.Error("a sandbox was run all the same")
				}
				heal()
				r.work(pod, 10*time.Second)
				if got := r.states(pod); len(got) != 1 || got[0] != "web#0 running" {
					t.Errorf("containers: %v", got)
				}
			})
		})
	}
}

// The steps of taking a pod away come in the order in which one may need what the next one removes, and each may fail and be repeated.
func TestTheOrderOfTakingAway(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c := &cgroups{}
		r.restart(syncpod.WithCgroups(c))
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"), podmilltest.Volume("data", corev1.VolumeSource{}))
		r.work(pod, 10*time.Second)
		must(t, r.SyncTerminatingPod(t.Context(), pod, end(30*time.Second)))
		dir := filepath.Join(r.root, "lib", "pods", string(pod.UID))

		busy := errors.New("device busy")
		r.faulty.Add(podmilltest.Fault{On: podmilltest.OpRemoveSandbox, Times: 1, Effect: podmilltest.Fail(busy)})
		r.volumes.Fail(func(types.UID, string) error {
			t.Error("volumes are unmounted before the containers are gone")
			return nil
		})
		if err := r.SyncTerminatedPod(t.Context(), pod); !errors.Is(err, busy) {
			t.Errorf("error = %v", err)
		}
		r.volumes.Fail(func(types.UID, string) error { return busy })
		if err := r.SyncTerminatedPod(t.Context(), pod); !errors.Is(err, busy) || c.removed {
			t.Errorf("error = %v, cgroup removed: %v", err, c.removed)
		}
		r.volumes.Fail(nil)
		c.err = busy
		if err := r.SyncTerminatedPod(t.Context(), pod); !errors.Is(err, busy) {
			t.Errorf("error = %v", err)
		}
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("the directory went before the cgroup: %v", err)
		}
		c.err = nil
		for range 2 {
			must(t, r.SyncTerminatedPod(t.Context(), pod))
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) || !c.removed {
			t.Errorf("directory: %v, cgroup removed: %v", err, c.removed)
		}
	})
}

// A manifest that was removed, and put back while no agent ran: the end that was under way is called off, and its deadline with it.
func TestADeadlineThatWasCalledOffIsForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("deaf", "img:1"))
		r.work(pod, 10*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = r.SyncTerminatingPod(ctx, pod, end(2*time.Second))
		r.restart()
		r.work(pod, time.Minute)
		r.rt.Log().Reset()
		r.finish(pod, end(30*time.Second))
		if !r.has("StopContainer shop/cart deaf#0 grace=30s") {
			t.Error(r.story())
		}
	}, podmilltest.WithScript("deaf", "trap '' TERM; sleep inf"))
}

func TestContainersThatHaveLostTheirSandboxAreRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
		r.work(pod, 10*time.Second)
		r.blind = true
		r.finish(pod, end(30*time.Second))
		if left := r.states(pod); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

func TestADeletedPodsGraceIsInItsContainers(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
		pod.DeletionGracePeriodSeconds = new(int64)
		*pod.DeletionGracePeriodSeconds = 3
		pod.ObjectMeta.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		r.work(pod, 10*time.Second)
		r.restart()
		seen, _ := r.rt.InspectPod(t.Context(), pod.UID)
		must(t, r.SyncTerminatingRuntimePod(t.Context(), seen))
		if !r.has("StopContainer shop/cart web#0 grace=3s") {
			t.Error(r.story())
		}
	})
}

func TestObserverIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var plans int
		steps := make(chan string, 100)
		r.restart(syncpod.WithObserver(syncpod.Observer{
			Planned: func(podmill.PodRef, *syncpod.Actions) { plans++ },
			Did: func(_ podmill.PodRef, step, container string, _ time.Duration, _ error) {
				steps <- step + " " + container
			},
		}))
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"))
		r.work(pod, 10*time.Second)
		r.finish(pod, end(time.Second))
		close(steps)
		seen := map[string]bool{}
		for s := range steps {
			seen[s] = true
		}
		for _, want := range []string{"directories ", "volumes ", "pull secrets ", "sandbox ", "image web", "create web", "start web", "kill web"} {
			if !seen[want] {
				t.Errorf("not told of %q", want)
			}
		}
		if plans != 2 {
			t.Errorf("told of %d plans, want the start and the end", plans)
		}
	})
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	if _, err := syncpod.New(syncpod.Config{}); err == nil {
		t.Error("an empty Config is taken")
	}
	r := newRig(t)
	cfg := syncpod.Config{Runtime: r.rt, Cache: r, Sandboxes: r, Images: r, Reporter: r}
	if _, err := syncpod.New(cfg, syncpod.WithDirectories("lib", "/log")); err == nil {
		t.Error("a relative directory is taken")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
