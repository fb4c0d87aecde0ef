package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/podmilltest"
)

// On a terminal a pod is one row, however much there is to say of it: drawing over it needs to know the rows.
func TestALineIsCutToARow(t *testing.T) {
	var out strings.Builder
	pod := podmilltest.Pod("web", podmilltest.Container("server", "busybox:1"))
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "server", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: strings.Repeat("é", 200)},
	}}}
	table := &table{out: &out, terminal: true, width: func() int { return 60 }}
	table.show([]*corev1.Pod{pod})
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 60 {
			t.Errorf("a row of %d characters: %s", n, line)
		}
	}
	if table.drawn != 2 || !strings.HasSuffix(out.String(), "…\n") {
		t.Errorf("%d rows:\n%s", table.drawn, &out)
	}
}

// Away from a terminal a pod has a line when something of it has changed, and no other.
func TestALineIsShownWhenItIsNew(t *testing.T) {
	var out strings.Builder
	table := &table{out: &out}
	pod := func(name string, phase corev1.PodPhase) *corev1.Pod {
		p := podmilltest.Pod(name, podmilltest.Container("server", "busybox:1"))
		p.Status.Phase = phase
		return p
	}
	web, db := pod("web", corev1.PodPending), pod("db", corev1.PodRunning)
	for _, look := range []struct {
		pods []*corev1.Pod
		want string
	}{
		{[]*corev1.Pod{web, db}, "default/db  Running  0/1  0  running at \ndefault/web  Pending  0/1  0  waiting\n"},
		{[]*corev1.Pod{db, web}, ""},
		{[]*corev1.Pod{db, pod("web", corev1.PodPending)}, ""}, // another object that says the same
		{[]*corev1.Pod{pod("web", corev1.PodSucceeded)}, "default/db  gone\ndefault/web  Succeeded  0/1  0  done\n"},
	} {
		out.Reset()
		if table.show(look.pods); out.String() != look.want {
			t.Errorf("shown:\n%s, want:\n%s", out.String(), look.want)
		}
	}
}

func TestAJournalIsBounded(t *testing.T) {
	name := filepath.Join(t.TempDir(), "events.jsonl")
	j, err := appendTo(name)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	line := []byte(strings.Repeat("x", 1<<20-1) + "\n")
	for range 25 {
		if n, err := j.Write(line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	for name, want := range map[string]int64{name: 3 << 20, name + ".1": 11 << 20} {
		if info, err := os.Stat(name); err != nil || info.Size() != want {
			t.Errorf("%s: %v, %v, want %d bytes", filepath.Base(name), info, err, want)
		}
	}
}
