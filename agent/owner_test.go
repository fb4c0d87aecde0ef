package agent_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

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
