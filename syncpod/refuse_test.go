package syncpod_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/syncpod"
)

// A pod that cannot be had says why, once, and costs the runtime nothing; one that can be had after all is started.
func TestARefusedPodStartsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		why := "spec.volumes[0].nfs: Forbidden: no plugin makes such volumes here"
		r.opts = append(r.opts, syncpod.WithRefusal(func(*corev1.Pod) string { return why }))
		r.restart()
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("a", "img:1"), podmilltest.Container("b", "img:1"))
		for range 3 {
			if _, err := r.SyncPod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"a", "b"} {
			if w := r.progress.Waiting[name]; w.Reason != "CreateContainerConfigError" || w.Message != why {
				t.Errorf("container %s waits: %v", name, w)
			}
		}
		if n := strings.Count(r.rt.Log().String(), "Error: "+why); n != 1 {
			t.Errorf("people were told %d times:\n%s", n, r.rt.Log())
		}
		if counts := r.rt.Log().Counts(); counts[podmilltest.OpRunSandbox]+counts[podmilltest.OpCreateContainer] > 0 {
			t.Errorf("calls: %v", counts)
		}
		why = ""
		if _, err := r.SyncPod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		if n := r.rt.Log().Counts()[podmilltest.OpStartContainer]; n != 2 {
			t.Errorf("%d containers were started", n)
		}
	})
}
