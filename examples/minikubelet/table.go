package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
)

const header = "POD\tPHASE\tREADY\tRESTARTS\tNOW"

// table shows pods, one line each: redrawn in place on a terminal, and elsewhere a line for each pod that changed.
type table struct {
	out      io.Writer
	terminal bool
	width    func() int       // of the terminal
	drawn    int              // lines on the terminal that the next drawing replaces
	last     map[string]shown // by pod
}

// shown is a line and what it was made of. An agent gives out the same pod for as long as nothing of it changes, and then the line is the same too: of many
// pods few have changed since the last look, and a look costs little.
type shown struct {
	pod  *corev1.Pod
	line string
}

// show brings the table up to date.
func (t *table) show(pods []*corev1.Pod) {
	now := make(map[string]shown, len(pods))
	for _, pod := range pods {
		name := pod.Namespace + "/" + pod.Name
		if was := t.last[name]; was.pod == pod {
			now[name] = was
		} else {
			now[name] = shown{pod, row(pod)}
		}
	}
	before := t.last
	t.last = now
	if t.terminal {
		t.draw()
		return
	}
	news := map[string]string{}
	for name, s := range now {
		if s.line != before[name].line {
			news[name] = strings.ReplaceAll(s.line, "\t", "  ")
		}
	}
	for name := range before {
		if _, ok := now[name]; !ok {
			news[name] = name + "  gone"
		}
	}
	for _, name := range sorted(news) {
		_, _ = fmt.Fprintln(t.out, news[name])
	}
}

// final prints the table once more, for what has scrolled away.
func (t *table) final(pods []*corev1.Pod) {
	if t.terminal {
		return
	}
	lines := map[string]string{}
	for _, pod := range pods {
		lines[pod.Namespace+"/"+pod.Name] = row(pod)
	}
	write(t.out, lines)
}

// draw writes the whole table over the one before.
func (t *table) draw() {
	lines := map[string]string{}
	for name, pod := range t.last {
		lines[name] = pod.line
	}
	var text strings.Builder
	write(&text, lines)
	if t.drawn > 0 {
		_, _ = fmt.Fprintf(t.out, "\x1b[%dA\x1b[J", t.drawn)
	}
	width := t.width()
	t.drawn = 0
	for line := range strings.Lines(text.String()) {
		_, _ = fmt.Fprintln(t.out, cut(strings.TrimSuffix(line, "\n"), width))
		t.drawn++
	}
}

// cut shortens a line to a row of a terminal, so that a line is one row; a width of 0 is not known.
func cut(line string, width int) string {
	runes := []rune(line)
	if width <= 0 || len(runes) <= width {
		return line
	}
	return string(runes[:width-1]) + "…"
}

// write writes a table with aligned columns.
func write(out io.Writer, lines map[string]string) {
	columns := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(columns, header)
	for _, name := range sorted(lines) {
		_, _ = fmt.Fprintln(columns, lines[name])
	}
	_ = columns.Flush()
}

func sorted(lines map[string]string) []string {
	names := make([]string, 0, len(lines))
	for name := range lines {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func row(pod *corev1.Pod) string {
	var ready, restarts int
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		restarts += int(s.RestartCount)
		if s.Ready {
			ready++
		}
	}
	phase := pod.Status.Phase
	if phase == "" {
		phase = corev1.PodPending
	}
	return fmt.Sprintf("%s/%s\t%s\t%d/%d\t%d\t%s", pod.Namespace, pod.Name, phase, ready, len(pod.Spec.Containers), restarts, now(pod))
}

// now says in a few words what a pod is doing.
func now(pod *corev1.Pod) string {
	status := &pod.Status
	if pod.DeletionTimestamp != nil {
		return "stopping"
	}
	for _, s := range append(slices.Clone(status.InitContainerStatuses), status.ContainerStatuses...) {
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Message != "":
			return s.Name + ": " + s.State.Waiting.Reason + ", " + s.State.Waiting.Message
		case s.State.Waiting != nil:
			return s.Name + ": " + s.State.Waiting.Reason
		case s.State.Terminated != nil && s.State.Terminated.ExitCode != 0:
			return fmt.Sprintf("%s: %s, exit code %d", s.Name, s.State.Terminated.Reason, s.State.Terminated.ExitCode)
		}
	}
	switch status.Phase {
	case corev1.PodSucceeded:
		return "done"
	case corev1.PodFailed:
		return strings.TrimSuffix("failed: "+status.Reason, ": ")
	case corev1.PodRunning:
		return "running at " + status.PodIP
	default:
		return "waiting"
	}
}

// reached reports whether every pod is where its kind should get: one that restarts always is running and ready, any other has succeeded.
func reached(pods []*corev1.Pod) bool {
	for _, pod := range pods {
		ok := pod.Status.Phase == corev1.PodSucceeded
		if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
			ok = pod.Status.Phase == corev1.PodRunning && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			})
		}
		if !ok {
			return false
		}
	}
	return len(pods) > 0
}
