package status_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/podmill/podmill"
	. "github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/status"
)

// TestAnyHistory holds, whatever a runtime says in whatever order, contradictions among it: a phase never leaves Succeeded or Failed,
// restart counts never fall, and nobody is told of an end that nobody saw.
func TestAnyHistory(t *testing.T) {
	states := []podmill.State{podmill.StateUnknown, podmill.StateCreated, podmill.StateRunning, podmill.StateExited}
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom([]corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}).Draw(t, "policy")
		pod := Pod("default/p", InitContainer("i", "x"), Sidecar("s", "x"), Container("a", "x"), Container("b", "x"), Restart(policy))
		codes := map[string]map[int32]bool{} // by container, the exit codes that the runtime has shown
		var last corev1.PodStatus
		at := now
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			at = at.Add(time.Duration(rapid.IntRange(-100, 100).Draw(t, "clock")) * time.Second)
			var shown []podmill.Container
			for _, name := range []string{"i", "s", "a", "b"} {
				if !rapid.Bool().Draw(t, "held") {
					continue
				}
				c := in(name, uint32(rapid.IntRange(0, 4).Draw(t, "attempt")), rapid.SampledFrom(states).Draw(t, "state"), int32(rapid.IntRange(-1, 2).Draw(t, "code")))
				shown = append(shown, c)
				if c.State == podmill.StateExited {
					if codes[name] == nil {
						codes[name] = map[int32]bool{}
					}
					codes[name][c.ExitCode] = true
				}
			}
			p := podmill.Progress{Stopped: rapid.Bool().Draw(t, "stopped"), Health: map[string]podmill.Health{}}
			for _, c := range shown {
				p.Health[c.ID] = podmill.Health{Started: rapid.Bool().Draw(t, "started"), Ready: rapid.Bool().Draw(t, "ready")}
			}
			next := status.Generate(status.Input{Pod: pod, Seen: seen(shown...), Progress: p, Last: &last}, at)
			if (last.Phase == corev1.PodSucceeded || last.Phase == corev1.PodFailed) && next.Phase != last.Phase {
				t.Fatalf("phase went from %s to %s", last.Phase, next.Phase)
			}
			old := slices.Concat(last.InitContainerStatuses, last.ContainerStatuses)
			for i, s := range slices.Concat(next.InitContainerStatuses, next.ContainerStatuses) {
				if len(old) > 0 && s.RestartCount < old[i].RestartCount {
					t.Fatalf("restart count of %s fell from %d to %d", s.Name, old[i].RestartCount, s.RestartCount)
				}
				for _, end := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
					if end != nil && !codes[s.Name][end.ExitCode] && (end.ExitCode != 137 || end.Reason != "ContainerStatusUnknown") {
						t.Fatalf("%s is said to have ended with %d (%s), which nobody saw", s.Name, end.ExitCode, end.Reason)
					}
				}
			}
			consistent(t, &last, &next, at)
			last = next
		}
	})
}

// consistent fails where a status contradicts itself, or a condition's history contradicts what was told before.
func consistent(t *rapid.T, last, next *corev1.PodStatus, at time.Time) {
	unready := false
	for _, s := range slices.Concat(next.InitContainerStatuses, next.ContainerStatuses) {
		if states := count(s.State.Running != nil, s.State.Waiting != nil, s.State.Terminated != nil); states != 1 {
			t.Fatalf("%s is in %d states: %+v", s.Name, states, s.State)
		}
		if *s.Started && s.State.Running == nil || s.Ready && s.Name != "i" && !*s.Started {
			t.Fatalf("%s: started %v, ready %v, %+v", s.Name, *s.Started, s.Ready, s.State)
		}
		unready = unready || !s.Ready && s.Name != "i"
	}
	if last.StartTime != nil && !next.StartTime.Equal(last.StartTime) {
		t.Fatalf("the start time went from %v to %v", last.StartTime, next.StartTime)
	}
	over := next.Phase == corev1.PodSucceeded || next.Phase == corev1.PodFailed
	for i, c := range next.Conditions {
		if (c.Type == corev1.PodReady || c.Type == corev1.ContainersReady) && c.Status == corev1.ConditionTrue && (unready || over) {
			t.Fatalf("%s is True in phase %s of %+v", c.Type, next.Phase, next.ContainerStatuses)
		}
		if len(last.Conditions) == 0 {
			continue
		}
		was, want := last.Conditions[i], last.Conditions[i].LastTransitionTime.Time
		if was.Status != c.Status {
			want = at.Truncate(time.Second)
		}
		if !c.LastTransitionTime.Time.Equal(want) { // whichever way the clock has jumped
			t.Fatalf("%s went from %s to %s; its time is %v, want %v", c.Type, was.Status, c.Status, c.LastTransitionTime, want)
		}
	}
}

func count(all ...bool) (n int) {
	for _, is := range all {
		if is {
			n++
		}
	}
	return n
}
