package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	. "github.com/podmill/podmill/podmilltest"
)

// A runtime may have other users: a kubelet, a second agent, a person. Their pods are none of this agent's business, dead or alive.
func TestPodsOfOthersAreLeftAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		theirs := Pod("theirs", Container("server", "busybox:1"))
		for attempt := range uint32(2) {
			spec := &podmill.SandboxSpec{Pod: theirs, Attempt: attempt, Labels: map[string]string{podmill.LabelPodUID: string(theirs.UID)}}
			if _, err := w.rt.RunSandbox(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			w.rt.KillSandbox(theirs.UID)
		}
		w.start()
		mine := Pod("mine", static, Container("server", "busybox:1"))
		w.file.Replace(mine)
		w.pass(10 * time.Minute)
		w.wantPhase(mine, corev1.PodRunning)
		if seen, _ := w.rt.InspectPod(t.Context(), theirs.UID); len(seen.Sandboxes) != 2 {
			t.Errorf("a pod of somebody else was touched\n%s", w.rt.Log())
		}
	})
}

// A pod that was listed, and could not be inspected yet, has no name of an agent on it. It runs, and nothing may be taken from it.
func TestAPodThatIsNotKnownYetKeepsItsVolumes(t *testing.T) {
	inWorld(t, func(w *world) {
		pod := Pod("web", static, Container("server", "busybox:1", VolumeMount("data", "/data")), Volume("data", corev1.VolumeSource{}))
		w.start()
		w.file.Replace(pod)
		w.pass(time.Second)
		w.end()
		w.file.Replace()
		data := filepath.Join(w.root, "pods", string(pod.UID), "volumes", "kubernetes.io~empty-dir", "data")
		w.use = Faulty(w.rt, Fault{On: OpInspectPod, Effect: Fail(errors.New("not now"))})
		w.start()
		w.pass(time.Minute)
		if _, err := os.Stat(data); err != nil {
			t.Errorf("%v\n%s", err, w.rt.Log())
		}

		// A listing that leaves it out is no proof that it is gone. It is looked for, found, and ends as it should.
		w.use = Faulty(w.rt, Fault{On: OpListPods, Effect: Omit()})
		w.start()
		w.pass(3 * time.Second)
		if _, err := os.Stat(data); err != nil {
			t.Errorf("%v\n%s", err, w.rt.Log())
		}
		w.pass(time.Minute)
		if _, err := os.Stat(data); err == nil || w.rt.Log().Count("StopContainer") != 1 {
			t.Errorf("%v\n%s", err, w.rt.Log())
		}
	})
}

// B014, after a restart: a manifest that was changed while no agent ran is another pod, which starts when the one that still runs is gone.
func TestAPodOfTheSameNameWaitsForTheOneBeforeTheRestart(t *testing.T) {
	for what, faults := range map[string][]Fault{
		"at once":                  nil,
		"when it can be looked at": {{On: OpInspectPod, Times: 5, Effect: Fail(errors.New("not now"))}},
		"when it is listed":        {{On: OpListPods, Times: 3, Effect: Fail(errors.New("not now"))}},
	} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, func(w *world) {
				version := func(uid types.UID) *corev1.Pod {
					pod := Pod("web", static, Container("server", "busybox:1"), Grace(10*time.Second))
					pod.UID = uid
					return pod
				}
				old, new := version("old"), version("new")
				w.start()
				w.file.Replace(old)
				w.pass(time.Second)
				w.end()
				w.use = Faulty(w.rt, faults...)
				w.file.Replace(new)
				w.start()
				w.pass(time.Minute)
				w.wantPhase(new, corev1.PodRunning)
				gone := strings.Index(w.rt.Log().String(), "RemoveSandbox")
				begun := strings.LastIndex(w.rt.Log().String(), "RunSandbox")
				if gone < 0 || begun < gone {
					t.Errorf("they ran beside each other\n%s", w.rt.Log())
				}
			})
		})
	}
}
