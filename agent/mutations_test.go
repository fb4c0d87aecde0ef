package agent_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutations are small wrongs, each of which some story or test must notice. The last column says which is meant to.
var mutations = []struct{ file, right, wrong, caughtBy string }{
	{"syncpod/plan.go", "if p.initContainers() {", "if p.initContainers() || true {", "init-order"},
	{"syncpod/plan.go", "next = max(next, c.Attempt+1)", "next = max(next, c.Attempt)", "restart-always"},
	{"syncpod/plan.go", "if !p.anythingToStart() {", "if false {", "sandbox-of-a-finished-pod-dies"},
	{"syncpod/plan.go", "\tp.removeDead()\n\tp.tellReset()", "\tp.tellReset()", "restart-always"},
	{"syncpod/plan.go", "case ok && known.Attempt > newest.Attempt:", "case false && ok:", "TestPlan in syncpod"},
	{"syncpod/plan.go", "\tp.killStrays()\n\tif p.Sandbox", "\tif p.Sandbox", "image-changes"},
	{"syncpod/plan.go", "return limited && !p.now.Before(at)", "return false", "deadline"},
	{"syncpod/backoff.go", "return min(max(0, finished.Add(b.Delay).Sub(now)), b.Delay)", "return 0", "restart-always"},
	{"syncpod/backoff.go", "return finished.Sub(b.Since) > backoffReset", "return false", "backoff-is-forgotten"},
	{"syncpod/plan_kill.go", "const minimumGrace = 2 * time.Second", "const minimumGrace = 0", "sidecar-has-no-time-left"},
	{"syncpod/sync.go", "if err := m.keepResets(); err != nil {", "if err := error(nil); err != nil {", "TestNoRestartOfAllIsUnrecorded in syncpod"},
	{"syncpod/kept.go", "t.Deadline = now.Add(min(left, most))", "t.Deadline = now.Add(left)", "TestAKeptDeadlineTrustsNoClock in syncpod"},
	{"syncpod/memory.go", "} else if newest != nil && m.unhealthy[newest.ID]", "} else if false && m.unhealthy[newest.ID]", "probe-liveness-exits-with-0"},
	{"internal/lifecycle/restart.go", "return code != 0", "return true", "restart-on-failure"},
	{"syncpod/message.go", "if text == \"\" && fallback && c.ExitCode != 0", "if text == \"\" && fallback", "termination-message"},
	{"syncpod/message.go", "errors.New(\"not a regular file\")\n\t}\n\tf, err", "errors.New(\"no file\")\n\t}\n\tf, err", "TestMessage in syncpod"},
	{"status/phase.go", "\tif final(in.Last.Phase) {\n\t\treturn in.Last.Phase\n\t}\n", "", "TestAnyHistory in status"},
	{"status/phase.go", "} else if final(phase) && mayRun(in.Seen) {", "} else if false {", "TestPhase in status"},
	{"status/phase.go", "if t := in.Progress.Termination; t != nil && t.Reason != \"\" {", "if false {", "evicted"},
	{"status/containers.go", "max(old.RestartCount, int32(", "max(0, int32(", "TestAnyHistory in status"},
	{"status/containers.go", "h.Started, h.Started && h.Ready", "h.Started, h.Ready", "TestHealth in status"},
	{"status/containers.go", "case c.ExitCode == 0:\n\t\tt.Reason", "case false:\n\t\tt.Reason", "TestContainerStatus in status"},
	{"status/containers.go", "share := min(maxMessage, maxPodMessage/", "share := max(maxMessage, maxPodMessage/", "TestTerminationMessages in status"},
	{"status/containers.go", "ready = status.State.Terminated != nil && status.State.Terminated.ExitCode == 0", "ready = false", "init-order"},
	{"status/conditions.go", "case corev1.PodReadyToStartContainers, corev1.PodInitialized", "case corev1.PodInitialized", "TestAnyHistory in status"},
	{"status/conditions.go", "last.Type == kind && last.Status == c.Status", "last.Type == kind", "TestTransitionTimes in status"},
	{"status/conditions.go", "case others[at].Status != corev1.ConditionTrue:", "case false:", "readiness-gate"},
	{"status/conditions.go", "case status.Phase == corev1.PodFailed, t != nil && t.Reason != \"\":", "case status.Phase == corev1.PodFailed, t != nil && t.Reason == \"none\":", "evicted"},
	{"status/conditions.go", "case initialized, was(in, corev1.PodInitialized):", "case initialized:", "init-runs-again-in-a-new-sandbox"},
	{"status/conditions.go", "{corev1.PodReadyToStartContainers, verdict{ok: sandboxReady(in) && !final(status.Phase)}}", "{corev1.PodReadyToStartContainers, verdict{ok: sandboxReady(in)}}", "delete-with-grace"},
	{"podworkers/pace.go", "d = p.backoff << doublings", "d = p.backoff", "sandbox-cannot-be-made"},
	{"podworkers/lifecycle.go", "if phase := pod.Status.Phase; phase == corev1.PodSucceeded || phase == corev1.PodFailed {", "if phase := pod.Status.Phase; phase == corev1.PodSucceeded && phase == corev1.PodFailed {", "TestAFinishedPod in podworkers"},
	{"podworkers/pace.go", "return now.Add(p.resync + ", "return now.Add(", "TestPace in podworkers"},
}

// TestEveryMutationHasItsPlace keeps the table true: what it changes is there, once.
func TestEveryMutationHasItsPlace(t *testing.T) {
	for _, m := range mutations {
		if text, err := os.ReadFile(filepath.Join("..", m.file)); err != nil || strings.Count(string(text), m.right) != 1 {
			t.Errorf("%s does not have %q exactly once: %v", m.file, m.right, err)
		}
	}
}

// TestMutations shows that each is caught. It builds the tests anew for each, which takes minutes:
//
//	PODMILL_MUTATIONS=1 go test ./agent -run TestMutations -timeout 30m
func TestMutations(t *testing.T) {
	if os.Getenv("PODMILL_MUTATIONS") == "" {
		t.Skip("PODMILL_MUTATIONS is not set")
	}
	for _, m := range mutations {
		t.Run(m.caughtBy+" "+filepath.Base(m.file), func(t *testing.T) {
			path, err := filepath.Abs(filepath.Join("..", m.file))
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			mutant, overlay := filepath.Join(t.TempDir(), "mutant.go"), filepath.Join(t.TempDir(), "overlay.json")
			list, _ := json.Marshal(map[string]map[string]string{"Replace": {path: mutant}})
			if os.WriteFile(mutant, []byte(strings.Replace(string(text), m.right, m.wrong, 1)), 0o600) != nil || os.WriteFile(overlay, list, 0o600) != nil {
				t.Fatal("the mutant could not be written")
			}
			run := func(args ...string) ([]byte, error) {
				cmd := exec.Command("go", append([]string{"test", "-vet=off", "-overlay=" + overlay, "-timeout=60s"}, args...)...) //nolint:gosec // a test of tests
				cmd.Dir = ".."
				return cmd.CombinedOutput()
			}
			out, err := run("-run=TestStories", "./agent")
			if err == nil {
				out, err = run("./"+filepath.Dir(m.file), "./syncpod")
			}
			if err == nil || strings.Contains(string(out), "[build failed]") {
				t.Errorf("%s with %q survives:\n%s", m.file, m.wrong, out)
			}
		})
	}
}
