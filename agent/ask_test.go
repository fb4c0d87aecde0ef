package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	. "github.com/podmill/podmill/podmilltest"
)

// A container that has crashed and waits to be started again shows how it ended, whichever of the two logs is asked for: that is when people look.
func TestTheLogOfAContainerThatCrashes(t *testing.T) {
	inWorld(t, func(w *world) {
		pod := Pod("web", static, Container("server", "busybox:1"), Container("none", "no.such/image:1", func(c *corev1.Container) { c.ImagePullPolicy = corev1.PullNever }))
		w.start()
		w.file.Replace(pod)
		w.pass(time.Second)
		log := func(previous bool) string {
			path, _, err := w.agent.Log(t.Context(), "default", "web", "server", previous)
			if err != nil {
				return err.Error()
			}
			return filepath.Base(path)
		}
		want := func(when, current, previous string) {
			t.Helper()
			if is, was := log(false), log(true); is != current || was != previous {
				t.Errorf("%s the log is %s, the previous one %s; want %s and %s", when, is, was, current, previous)
			}
		}
		want("at first", "0.log", `previous terminated container "server" in pod "web" not found`)
		_, running, err := w.agent.Log(t.Context(), "default", "web", "server", false)
		if err != nil || !running() {
			t.Errorf("the container does not run: %v", err)
		}
		w.rt.KillProcess(pod.UID, "server", 1)
		w.pass(time.Second)
		if running() {
			t.Error("the instance that was killed still runs")
		}
		want("after a crash", "1.log", "0.log")
		w.rt.KillProcess(pod.UID, "server", 1)
		w.pass(time.Second)
		want("in back-off", "1.log", "1.log")
		w.pass(20 * time.Second)
		want("after the back-off", "2.log", "1.log")

		_, _, err = w.agent.Log(t.Context(), "default", "web", "none", false)
		if err == nil || err.Error() != `container "none" in pod "web" is waiting to start: ErrImageNeverPull` {
			t.Errorf("the log of a container whose image is not there: %v", err)
		}
		if _, _, err := w.agent.Log(t.Context(), "default", "web", "other", false); !errors.Is(err, podmill.ErrNotFound) {
			t.Errorf("the log of no container: %v", err)
		}
	})
}

// Of a pod that is over the runtime has nothing any more; what it said is there for as long as the pod is wanted.
func TestTheLogOfAPodThatIsOver(t *testing.T) {
	inWorld(t, func(w *world) {
		pod := Pod("job", static, Container("work", "busybox:1", Runs("echo done; exit 0")), Restart(corev1.RestartPolicyNever))
		w.start()
		w.file.Replace(pod)
		w.pass(10 * time.Second)
		w.wantPhase(pod, corev1.PodSucceeded)
		if seen, err := w.rt.InspectPod(t.Context(), pod.UID); err != nil || !seen.Empty() {
			t.Fatalf("the runtime holds %+v, %v", seen, err)
		}
		path, running, err := w.agent.Log(t.Context(), "default", "job", "work", false)
		if err != nil || running() {
			t.Fatalf("the log: %v", err)
		}
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "done") {
			t.Errorf("the log is %q, %v", text, err)
		}
		if _, _, err := w.agent.Log(t.Context(), "default", "job", "work", true); err == nil {
			t.Error("there is a log of an instance before the first")
		}
	})
}

// Of two pods of one name the one that is wanted is asked, however long the other takes to go.
func TestOfOneNameTheWantedPodIsAsked(t *testing.T) {
	inWorld(t, func(w *world) {
		first := Pod("web", static, Container("server", "busybox:1", func(c *corev1.Container) { c.Command = ShellCommands().Stubborn(time.Hour) }))
		w.start()
		w.file.Replace(first)
		w.pass(time.Second)
		second := Pod("web", static, Container("server", "busybox:1"), func(pod *corev1.Pod) { pod.UID = "another" })
		w.file.Replace(second)
		w.pass(2 * time.Second)
		for range 20 { // the order of pods is that of a map
			if path, _, err := w.agent.Log(t.Context(), "default", "web", "server", false); err == nil && !strings.Contains(path, "another") {
				t.Fatalf("the log is %s", path)
			}
		}
	})
}
