package status_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	. "github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/status"
)

func TestFileSink(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "status")
	s, err := status.NewFileSink(dir)
	if err != nil {
		t.Fatal(err)
	}
	p1, p2 := Pod("p1", Container("a", "x")), Pod("p2", Container("a", "x"))
	for _, pod := range []*corev1.Pod{p1, p2} {
		if err := s.UpdateStatus(t.Context(), pod, &corev1.PodStatus{Phase: corev1.PodRunning}); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, string(p1.UID)+".json")
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.UpdateStatus(t.Context(), p1, &corev1.PodStatus{Phase: corev1.PodRunning}); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("a status that says nothing new was written (%v)", err)
	}

	// Somebody's half a file is named, and keeps nobody else's status from being loaded.
	if err := os.WriteFile(filepath.Join(dir, "half.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	known, err := s.Load()
	if err == nil || !strings.Contains(err.Error(), "half.json") {
		t.Errorf("half a file: %v", err)
	}
	if len(known) != 2 || known[p1.UID].Phase != corev1.PodRunning {
		t.Errorf("loaded %v", known)
	}

	for range 2 { // it is idempotent
		if err := s.FinishPod(t.Context(), p1); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, string(p1.UID)+".json.tmp"), []byte("{"), 0o600); err != nil { // its agent was killed
		t.Fatal(err)
	}
	if err := s.Cleanup(t.Context(), func(uid types.UID) bool { return uid == p2.UID }); err != nil {
		t.Fatal(err)
	}
	if known, err = s.Load(); err != nil || len(known) != 1 || known[p2.UID].Phase != corev1.PodRunning {
		t.Errorf("after the clean-up: %v, %v", known, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("after the clean-up there is %v, %v", left, err)
	}
}

// What the sink remembers of its files saves it a look at them, and is never what it goes by alone.
func TestFileSinkWritesWhatItsFileDoesNotSay(t *testing.T) {
	dir := t.TempDir()
	s, err := status.NewFileSink(dir)
	if err != nil {
		t.Fatal(err)
	}
	pod := Pod("p", Container("a", "x"))
	path := filepath.Join(dir, string(pod.UID)+".json")
	says := func(s *status.FileSink, phase corev1.PodPhase) os.FileInfo {
		t.Helper()
		if err := s.UpdateStatus(t.Context(), pod, &corev1.PodStatus{Phase: phase}); err != nil {
			t.Fatal(err)
		}
		if known, err := s.Load(); err != nil || known[pod.UID].Phase != phase {
			t.Fatalf("%s: loaded %v, %v", phase, known, err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	says(s, corev1.PodPending)
	says(s, corev1.PodRunning)
	says(s, corev1.PodPending) // again
	written := says(s, corev1.PodRunning)

	next, err := status.NewFileSink(dir) // of an agent that was started anew
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(written, says(next, corev1.PodRunning)) {
		t.Error("what an earlier sink had written was written again")
	}
	if err := os.Remove(path); err != nil { // somebody's hand
		t.Fatal(err)
	}
	says(s, corev1.PodRunning)
	if err := s.FinishPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	says(s, corev1.PodRunning)
}

func TestFileSinkRefusesAUIDThatIsNoFileName(t *testing.T) {
	dir := t.TempDir()
	s, err := status.NewFileSink(filepath.Join(dir, "status"))
	if err != nil {
		t.Fatal(err)
	}
	for _, uid := range []types.UID{"", "../escape", ".hidden", "a/b", types.UID(strings.Repeat("x", 300))} {
		if err := s.UpdateStatus(t.Context(), Pod("p", UID(uid)), &corev1.PodStatus{}); err == nil {
			t.Errorf("UID %q was taken", uid)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", "*")); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

func TestFileSinkSaysThatItCannotWrite(t *testing.T) {
	s, err := status.NewFileSink(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pod := Pod("default/p", Container("a", "x"))
	dir := t.TempDir()
	broken, err := status.NewFileSink(filepath.Join(dir, "status"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "status")); err != nil {
		t.Fatal(err)
	}
	if err := broken.UpdateStatus(t.Context(), pod, &corev1.PodStatus{}); err == nil || !strings.Contains(err.Error(), "default/p") {
		t.Errorf("got %v", err)
	}
	if err := s.UpdateStatus(t.Context(), pod, &corev1.PodStatus{}); err != nil {
		t.Error(err)
	}
}

func TestFileSinkKeepsTheContract(t *testing.T) {
	StatusSinkTest(t, func(t *testing.T) StatusSinkEnv {
		s, err := status.NewFileSink(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return StatusSinkEnv{Sink: s, Status: func(t *testing.T, pod *corev1.Pod) *corev1.PodStatus {
			known, err := s.Load()
			if err != nil {
				t.Error(err)
			}
			if status, ok := known[pod.UID]; ok {
				return &status
			}
			return nil
		}}
	})
}
