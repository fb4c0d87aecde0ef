package agent_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// said is one line of a story.
type said struct {
	at                        time.Duration
	kind, pod, container, say string
}

// tell returns all that happened, as people read it. What happens in the same moment to different containers, or different pods, has no order of
// its own and gets one; the status is told at a moment's end.
func (s *story) tell() string {
	var all []said
	for _, e := range s.rt.Log().Entries() {
		line := said{at: e.At, kind: "runtime"}
		if parts := strings.SplitN(e.About, "\x00", 4); len(parts) == 4 {
			line.kind, line.pod, line.container, line.say = parts[0], parts[1], parts[2], parts[3]
		} else {
			e.At = 0
			_, line.say, _ = strings.Cut(e.String(), " ")
			line.pod, line.container, line.say = s.whose(line.say)
		}
		if !strings.HasPrefix(line.say, "StreamEvents") && !strings.HasPrefix(line.say, "RuntimeStatus") {
			all = append(all, line)
		}
	}
	b := &strings.Builder{}
	teller := &teller{Builder: b, story: s, statuses: map[string]*corev1.PodStatus{}}
	for len(all) > 0 {
		end := slices.IndexFunc(all, func(l said) bool { return l.at != all[0].at || l.kind == "world" })
		switch {
		case all[0].kind == "world":
			end = 1
		case end < 0:
			end = len(all)
		}
		moment := slices.Clone(all[:end])
		all = all[end:]
		teller.moment(ordered(moment))
	}
	return b.String()
}

// whose takes a line of the runtime's log apart. The pod's namespace goes: there is only one.
func (s *story) whose(line string) (pod, container, say string) {
	for name, w := range s.versions {
		line = strings.ReplaceAll(line, string(w[0].UID), name)
	}
	fields := strings.Fields(line)
	for i, f := range fields {
		name, ok := strings.CutPrefix(f, "default/")
		if !ok {
			continue
		}
		pod = name
		if i+1 < len(fields) {
			if c, _, ok := strings.Cut(fields[i+1], "#"); ok {
				container = c
			}
		}
		if container == "" {
			return pod, "", strings.Replace(line, f, name, 1)
		}
		if len(s.versions) > 1 {
			return pod, container, strings.Replace(line, f, name, 1)
		}
		return pod, container, strings.Replace(line, f+" ", "", 1)
	}
	if len(fields) > 3 && fields[0] == "fault:" {
		return fields[2], fields[3], line
	}
	return "", "", line
}

// ordered orders what happened in one moment: by pod, and of each by container between the lines that are about the whole pod.
func ordered(lines []said) []said {
	late := map[string]said{}
	lines = slices.DeleteFunc(lines, func(l said) bool {
		if l.kind == "status" || l.kind == "finished" {
			late[l.pod+" "+l.kind[:1]] = l
		}
		return l.kind == "status" || l.kind == "finished"
	})
	slices.SortStableFunc(lines, func(a, b said) int { return strings.Compare(a.pod, b.pod) })
	for i := len(lines) - 1; i >= 0; i-- {
		sink(lines[i:])
	}
	for i := 1; i < len(lines); i++ { // a preStop hook goes over a real network, beside the event of the stop
		hook, stop := &lines[i-1], &lines[i]
		if hook.pod == stop.pod && strings.HasPrefix(hook.say, "Warning LifecycleHTTPFallback") && strings.HasPrefix(stop.say, "Normal Killing") {
			*hook, *stop = *stop, *hook
		}
	}
	for from := 0; from < len(lines); {
		to := from + 1
		for lines[from].container != "" && to < len(lines) && lines[to].container != "" && lines[to].pod == lines[from].pod {
			to++
		}
		slices.SortStableFunc(lines[from:to], func(a, b said) int { return strings.Compare(a.container, b.container) })
		for i := from + 1; i < to; i++ {
			hoist(lines[from : i+1])
		}
		from = to
	}
	var pods []said
	for _, l := range late {
		pods = append(pods, l)
	}
	slices.SortFunc(pods, func(a, b said) int {
		return cmp.Or(cmp.Compare(a.pod, b.pod), -cmp.Compare(a.kind, b.kind))
	})
	return append(lines, pods...)
}

// sink moves the first of these lines down, if it tells of a container's image, to behind what is told of the pod's sandbox: they come side by side.
func sink(lines []said) {
	about := []string{"Normal Pull", "Normal BackOff: Back-off pulling", "Warning InspectFailed", "Warning ErrImageNeverPull"}
	if !slices.ContainsFunc(about, func(s string) bool { return strings.HasPrefix(lines[0].say, s) }) {
		return
	}
	for i := 1; i < len(lines) && lines[i].pod == lines[0].pod && lines[i].container == ""; i++ {
		lines[i-1], lines[i] = lines[i], lines[i-1]
	}
}

// hoist moves the last of these lines up, if it is an event that comes from beside what the others tell of: the event of a stop goes to before
// what is told of the preStop hook, and that of a probe to behind the probe, of which nothing is told where it
// goes over the network, or the start.
func hoist(lines []said) {
	for i := len(lines) - 1; i > 0; i-- {
		a, b := &lines[i-1], &lines[i]
		before := false
		switch {
		case strings.HasPrefix(b.say, "Normal Killing: Stopping"):
			before = strings.HasPrefix(a.say, "Exec ") || strings.HasPrefix(a.say, "Warning FailedPreStopHook")
		case strings.HasPrefix(b.say, "Warning Unhealthy"):
			before = !strings.HasPrefix(a.say, "Exec ") && !strings.HasPrefix(a.say, "fault: ") && !strings.HasPrefix(a.say, "Normal Started")
		}
		if !before || a.container != b.container {
			return
		}
		*a, *b = *b, *a
	}
}

// teller writes a story down.
type teller struct {
	*strings.Builder
	story    *story
	statuses map[string]*corev1.PodStatus // that were told last
	at       string
}

func (t *teller) moment(lines []said) {
	for _, l := range lines {
		if l.kind == "world" {
			fmt.Fprintf(t, "\n> %s\n", l.say)
			t.at = ""
			continue
		}
		for _, text := range t.texts(l) {
			at := fmt.Sprintf("%.3fs", l.at.Seconds())
			if at == t.at {
				at = ""
			} else {
				t.at = at
			}
			fmt.Fprintf(t, "%10s  %-8s %s\n", at, l.kind, text)
		}
	}
}

func (t *teller) texts(l said) []string {
	many := len(t.story.versions) > 1
	prefix := ""
	if many && l.kind != "runtime" {
		prefix = l.pod + ": "
	}
	switch {
	case l.kind == "status":
		n, _ := strconv.Atoi(l.say)
		next := &t.story.told[n]
		texts := statusChanges(t.statuses[l.pod], next)
		t.statuses[l.pod] = next
		for i := range texts {
			texts[i] = prefix + texts[i]
		}
		return texts
	case l.kind == "finished":
		t.statuses[l.pod] = nil
		return []string{prefix + "its end is confirmed, and it is forgotten"}
	case l.kind == "event" && l.container != "":
		return []string{prefix + "{" + l.container + "} " + l.say}
	}
	return []string{prefix + l.say}
}

// statusChanges says what is new in a status.
func statusChanges(last, next *corev1.PodStatus) (out []string) {
	if last == nil {
		last = &corev1.PodStatus{}
	}
	phase := func(s *corev1.PodStatus) string {
		return strings.TrimRight(fmt.Sprintf("%s %s %s", s.Phase, s.Reason, s.Message), " ")
	}
	if phase(last) != phase(next) {
		out = append(out, phase(next))
	}
	was := map[string]string{}
	containers := func(s *corev1.PodStatus) []corev1.ContainerStatus {
		return slices.Concat(s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses)
	}
	for _, c := range containers(last) {
		was[c.Name] = stateOf(&c)
	}
	for _, c := range containers(next) {
		if is := stateOf(&c); is != was[c.Name] {
			out = append(out, "  "+c.Name+": "+is)
		}
	}
	condition := func(c *corev1.PodCondition) string {
		return strings.TrimRight(fmt.Sprintf("%s=%s %s %s", c.Type, c.Status, c.Reason, c.Message), " ")
	}
	for _, c := range last.Conditions {
		was[string(c.Type)] = condition(&c)
	}
	for _, c := range next.Conditions {
		if is := condition(&c); is != was[string(c.Type)] {
			out = append(out, "  "+is)
		}
	}
	for _, c := range last.Conditions {
		if !slices.ContainsFunc(next.Conditions, func(n corev1.PodCondition) bool { return n.Type == c.Type }) {
			out = append(out, "  "+string(c.Type)+" is told no more")
		}
	}
	if len(out) == 0 {
		out = append(out, "(the same, as far as it is shown here)")
	}
	return out
}

// stateOf says a container's status in a line.
func stateOf(c *corev1.ContainerStatus) string {
	ended := func(e *corev1.ContainerStateTerminated) string {
		text := fmt.Sprintf("ended with %d %s", e.ExitCode, e.Reason)
		if e.Message != "" {
			text += " " + strconv.Quote(e.Message)
		}
		return text
	}
	var text string
	switch {
	case c.State.Running != nil && c.Ready:
		text = "runs, ready"
	case c.State.Running != nil && c.Started != nil && !*c.Started:
		text = "runs, not started"
	case c.State.Running != nil:
		text = "runs, not ready"
	case c.State.Waiting != nil:
		text = strings.TrimRight("waits: "+c.State.Waiting.Reason+" "+c.State.Waiting.Message, " ")
	case c.State.Terminated != nil:
		text = ended(c.State.Terminated)
	}
	if c.RestartCount > 0 {
		text += fmt.Sprintf("; restarts: %d", c.RestartCount)
	}
	if last := c.LastTerminationState.Terminated; last != nil {
		text += "; before: " + ended(last)
	}
	return text
}
