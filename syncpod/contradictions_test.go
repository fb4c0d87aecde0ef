package syncpod

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

// Whatever a runtime shows, contradictions among it, a plan starts no container of which an instance runs that it does not kill, none twice, and nothing in a
// pod that ends; and it kills and removes only what was shown.
func TestPlanOfContradictions(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	hooks := []PostStart{"", PostStartRuns, PostStartFailed, PostStartLost}
	rapid.Check(t, func(t *rapid.T) {
		at := func(what string) time.Time {
			return rapid.SampledFrom([]time.Time{{}, now.Add(-time.Hour), now.Add(-time.Second), now.Add(time.Hour)}).Draw(t, what)
		}
		in := Input{
			Pod: podmilltest.Pod("default/p", podmilltest.InitContainer("i", "x"), podmilltest.Sidecar("s", "x"), podmilltest.Container("a", "x"), podmilltest.Container("b", "x"),
				podmilltest.Restart(rapid.SampledFrom([]corev1.RestartPolicy{"Always", "OnFailure", "Never"}).Draw(t, "policy"))),
			Seen: &podmill.RuntimePod{}, Known: map[string]Record{}, Ended: map[string]time.Time{}, Health: map[string]podmill.Health{}, Hooks: map[string]Hooks{},
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "sandboxes") {
			in.Seen.Sandboxes = append(in.Seen.Sandboxes, podmill.Sandbox{ID: fmt.Sprint("s", i), Ready: rapid.Bool().Draw(t, "ready")})
			if rapid.Bool().Draw(t, "chosen") {
				in.Sandbox = &in.Seen.Sandboxes[i]
			}
		}
		shown := map[string]*podmill.Container{}
		for i := range rapid.IntRange(0, 8).Draw(t, "containers") {
			c := podmill.Container{
				ID: fmt.Sprint("c", i), Name: rapid.SampledFrom([]string{"i", "s", "a", "b", "stranger"}).Draw(t, "name"),
				SandboxID: rapid.SampledFrom([]string{"s0", "s1", "nowhere"}).Draw(t, "in"), Attempt: rapid.Uint32Range(0, 2).Draw(t, "attempt"),
				State:     rapid.SampledFrom([]podmill.State{podmill.StateUnknown, podmill.StateCreated, podmill.StateRunning, podmill.StateExited}).Draw(t, "state"),
				StartedAt: at("started"), FinishedAt: at("finished"), ExitCode: rapid.Int32Range(-1, 1).Draw(t, "code"),
			}
			in.Health[c.ID] = podmill.Health{Started: rapid.Bool().Draw(t, "healthy"), Failed: rapid.SampledFrom([]podmill.ProbeType{"", podmill.ProbeLiveness}).Draw(t, "failed")}
			in.Hooks[c.ID] = Hooks{PostStart: rapid.SampledFrom(hooks).Draw(t, "hook")}
			shown[c.ID] = &c
			in.Seen.Containers = append(in.Seen.Containers, c)
			if rapid.Bool().Draw(t, "known") {
				in.Known[c.Name] = Record{Attempt: rapid.Uint32Range(0, 3).Draw(t, "known attempt"), FinishedAt: at("known end"), SandboxID: c.SandboxID}
			}
		}
		if rapid.Bool().Draw(t, "ends") {
			in.Termination = &podmill.Termination{Deadline: at("deadline"), GracePeriodSeconds: rapid.Int64Range(0, 30).Draw(t, "grace")}
		}
		judgeContradictions(t, in, Plan(in, now), shown)
	})
}

func judgeContradictions(t *rapid.T, in Input, a Actions, shown map[string]*podmill.Container) {
	gone := map[string]bool{}
	for _, k := range a.Kill {
		if shown[k.ID] == nil || gone[k.ID] {
			t.Fatalf("%s is killed, which is not there, or twice\n%s", k.ID, &a)
		}
		gone[k.ID] = true
	}
	for _, r := range a.Remove {
		if c := shown[r.ID]; c == nil || c.State == podmill.StateRunning {
			t.Fatalf("%s is removed, which is not there, or runs\n%s", r.ID, &a)
		}
	}
	if in.Termination != nil && (len(a.Start) > 0 || a.RunSandbox != nil) {
		t.Fatalf("something starts in a pod that ends\n%s", &a)
	}
	begun := map[string]bool{}
	for _, s := range a.Start {
		if begun[s.Container.Name] {
			t.Fatalf("%s starts twice\n%s", s.Container.Name, &a)
		}
		begun[s.Container.Name] = true
		for id, c := range shown {
			if c.Name == s.Container.Name && c.State == podmill.StateRunning && !gone[id] {
				t.Fatalf("%s starts beside %s, which runs\n%s", c.Name, id, &a)
			}
			if c.Name == s.Container.Name && c.Attempt >= s.Attempt {
				t.Fatalf("%s starts with attempt %d, and there is %d\n%s", c.Name, s.Attempt, c.Attempt, &a)
			}
		}
	}
}
