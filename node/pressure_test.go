package node_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/node"
)

// A condition turns True at once, and back only when the transition period is over since its threshold was met last.
func TestAPressureLastsForItsTransition(t *testing.T) {
	p := node.NewPressures(node.DefaultThresholds(), 5*time.Minute)
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		at        time.Duration
		available int64 // MiB of memory
		under     corev1.ConditionStatus
	}{
		{0, 1000, corev1.ConditionFalse},
		{10 * time.Second, 100, corev1.ConditionFalse},
		{20 * time.Second, 99, corev1.ConditionTrue},
		{30 * time.Second, 1000, corev1.ConditionTrue},
		{time.Minute, 99, corev1.ConditionTrue},
		{6*time.Minute - time.Second, 1000, corev1.ConditionTrue},
		{6 * time.Minute, 1000, corev1.ConditionFalse},
	} {
		all := p.Conditions(map[node.Signal]node.Reading{node.MemoryAvailable: {Available: step.available << 20, Capacity: 8 << 30}}, noon.Add(step.at))
		if len(all) != 3 || all[0].Type != corev1.NodeMemoryPressure || all[0].Status != step.under {
			t.Errorf("after %v with %d MiB: %+v, want %s", step.at, step.available, all, step.under)
		}
		if all[1].Status != corev1.ConditionFalse || all[2].Status != corev1.ConditionFalse {
			t.Errorf("after %v another condition is True: %+v", step.at, all)
		}
	}
}

// Any of the signals of a condition makes it True, in the kubelet's words; without a transition period it lasts for one look.
func TestWhatPutsANodeUnderPressure(t *testing.T) {
	thresholds, err := node.ParseThresholds("nodefs.inodesFree<5%, imagefs.available<1Gi,pid.available<10%,memory.available<100%")
	if err != nil {
		t.Fatal(err)
	}
	p := node.NewPressures(thresholds, 0)
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for signal, want := range map[node.Signal]string{
		node.NodefsInodesFree: "KubeletHasDiskPressure", node.ImagefsAvailable: "KubeletHasDiskPressure", node.PIDAvailable: "KubeletHasInsufficientPID",
		node.MemoryAvailable: "", node.NodefsAvailable: "", // the one is no threshold, the other has none
	} {
		got := ""
		now = now.Add(time.Second)
		for _, c := range p.Conditions(map[node.Signal]node.Reading{signal: {Available: 1, Capacity: 100}}, now) {
			if c.Status == corev1.ConditionTrue {
				got += c.Reason
			}
		}
		if got != want {
			t.Errorf("with too little %s: %q, want %q", signal, got, want)
		}
	}
}

func TestThresholdsAreRead(t *testing.T) {
	got, err := node.ParseThresholds("memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%,imagefs.available<15%,imagefs.inodesFree<5%,pid.available<0%")
	if diff := cmp.Diff(node.DefaultThresholds(), got); diff != "" || err != nil {
		t.Errorf("error %v, thresholds (-want +got):\n%s", err, diff)
	}
	if none, err := node.ParseThresholds(""); err != nil || len(none) != 0 {
		t.Errorf("of nothing: %v, %v", none, err)
	}
	for _, wrong := range []string{
		"memory.available", "memory.available>1Gi", "memory<1Gi", "memory.available<", "memory.available<-1Gi", "memory.available<0",
		"memory.available<101%", "memory.available<-1%", "memory.available<NaN%", "memory.available<much", "pid.available<1%,pid.available<2%",
	} {
		_, err := node.ParseThresholds(wrong)
		if err == nil || !strings.Contains(err.Error(), "available") {
			t.Errorf("%q is taken, or the error does not name it: %v", wrong, err)
		}
	}
}
