package syncpod

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// now is when all plans of the scripts are made.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// TestPlan runs the scripts in testdata/plan: what is wanted, seen and remembered, then "=>", then the actions. In an input line,
//
//	pod Always init:a sidecar:s app:web=img:2 grace=5 phase=Failed   is the pod, with containers in the order of the spec
//	sandbox 1 [dead]                                        is a sandbox, used unless it is dead
//	active 20s                                              is for how long the pod has been active, of its deadline=30
//	new 1 WHY                                               asks for a new one
//	seen web#2 running|exited|created|unknown [exit=1] [ago=3s] [in=0] [image=img:1] [hash=foreign|none]
//	known web#2 [exit=1] [ago=3s] [in=0]                    is remembered, beyond the runtime
//	logged web 3                                            is the next attempt by the logs
//	backoff web 20s since=1m                                was started a minute ago, after 20s
//	adopted web#2 img:1                                     was met with another image
//	rule web 88                                             restarts all when it ends with 88
//	debug shell                                             is an ephemeral container
//	reset web                                               was removed to be started again with all others
//	held web 5s ImagePullBackOff                            cannot start before that
//	probe web liveness|startup grace=5                      is a probe with a grace period of its own
//	health web#2 starting|failing|failing-startup           is what its probes say
//	unhealthy web#2                                         was stopped for that
//	ending left=20s grace=30                                has to end
//	stopped web#2                                           was stopped
//	size web cpu=2 memory=1Gi                               is what a container was allocated
//	policy web memory                                       is a resizePolicy that restarts it
//	resizing [web#2 cpu=1 memory=2Gi]                       is what it has while a resize is under way
func TestPlan(t *testing.T) {
	files, err := filepath.Glob("testdata/plan/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runScript(t, file) })
	}
}

func runScript(t *testing.T, file string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var anew []string
	for _, paragraph := range strings.Split(strings.TrimSpace(string(b)), "\n\n") {
		head, want, _ := strings.Cut(paragraph, "\n=>")
		name, _, _ := strings.Cut(strings.TrimPrefix(head, "# "), "\n")
		t.Run(name, func(t *testing.T) {
			in := parse(t, head)
			actions := Plan(in, now)
			got := actions.String()
			anew = append(anew, head+"\n=>\n"+got)
			if diff := cmp.Diff(strings.TrimSpace(want), got); diff != "" && !*update {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(file, []byte(strings.Join(anew, "\n\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// parse reads the input part of a paragraph of a script.
func parse(t *testing.T, text string) Input {
	t.Helper()
	in := Input{
		Seen: &podmill.RuntimePod{}, Known: map[string]Record{}, Logged: map[string]uint32{}, Backoff: map[string]Backoff{},
		Adopted: map[string]string{}, Stopped: map[string]bool{}, Health: map[string]podmill.Health{}, Unhealthy: map[string]bool{}, Held: map[string]Held{},
	}
	for _, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		opts := map[string]string{}
		for _, w := range words {
			if k, v, ok := strings.Cut(w, "="); ok {
				opts[k] = v
			}
		}
		ago := func(key string) time.Time {
			if opts[key] == "" {
				return time.Time{}
			}
			return now.Add(-duration(t, opts[key]))
		}
		switch words[0] {
		case "#":
		case "pod":
			in.Pod = parsePod(words[1:], opts)
		case "sandbox":
			s := podmill.Sandbox{ID: "s" + words[1], Attempt: number(t, words[1]), Ready: len(words) == 2}
			in.Seen.Sandboxes = append(in.Seen.Sandboxes, s)
			if s.Ready {
				in.Sandbox, in.SandboxAttempt = &s, s.Attempt
			}
		case "new":
			in.Sandbox, in.SandboxAttempt, in.SandboxWhy = nil, number(t, words[1]), strings.Join(words[2:], " ")
		case "active":
			in.Active = now.Add(-duration(t, words[1]))
		case "seen":
			in.Seen.Containers = append(in.Seen.Containers, parseSeen(t, words, opts, ago("ago")))
		case "known":
			name, attempt := instance(t, words[1])
			r := Record{Attempt: attempt, ExitCode: int32(number(t, or(opts["exit"], "137"))), FinishedAt: ago("ago")}
			if opts["in"] != "" {
				r.SandboxID = "s" + opts["in"]
			}
			in.Known[name] = r
		case "logged":
			in.Logged[words[1]] = number(t, words[2])
		case "backoff":
			spec, _ := (&planner{Input: in}).spec(words[1])
			in.Backoff[BackoffKey(spec)] = Backoff{Delay: duration(t, words[2]), Since: ago("since")}
		case "adopted":
			name, _ := instance(t, words[1])
			in.Adopted[words[1]] = hashOf(&corev1.Container{Name: name, Image: words[2]})
		case "rule":
			spec, _ := (&planner{Input: in}).spec(words[1])
			spec.RestartPolicyRules = []corev1.ContainerRestartRule{{
				Action: corev1.ContainerRestartRuleActionRestartAllContainers,
				ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
					Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{int32(number(t, words[2]))},
				},
			}}
		case "debug":
			in.Pod.Spec.EphemeralContainers = append(in.Pod.Spec.EphemeralContainers,
				corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: words[1], Image: "img:1"}})
		case "reset":
			r := in.Known[words[1]]
			r.Reset = true
			in.Known[words[1]] = r
		case "held":
			spec, _ := (&planner{Input: in}).spec(words[1])
			in.Held[BackoffKey(spec)] = Held{Until: now.Add(duration(t, words[2])), Waiting: corev1.ContainerStateWaiting{Reason: words[3]}}
		case "probe":
			spec, _ := (&planner{Input: in}).spec(words[1])
			grace := int64(number(t, opts["grace"]))
			probe := &corev1.Probe{TerminationGracePeriodSeconds: &grace}
			if words[2] == "startup" {
				spec.StartupProbe = probe
			} else {
				spec.LivenessProbe = probe
			}
		case "health":
			in.Health[words[1]] = map[string]podmill.Health{
				"starting": {}, "failing": {Started: true, Failed: podmill.ProbeLiveness}, "failing-startup": {Failed: podmill.ProbeStartup},
			}[words[2]]
		case "unhealthy":
			in.Unhealthy[words[1]] = true
		case "ending":
			in.Termination = &podmill.Termination{Deadline: now.Add(duration(t, opts["left"])), GracePeriodSeconds: int64(number(t, opts["grace"]))}
		case "size":
			spec, _ := (&planner{Input: in}).spec(words[1])
			spec.Resources = limits(opts)
		case "policy":
			spec, _ := (&planner{Input: in}).spec(words[1])
			spec.ResizePolicy = append(spec.ResizePolicy, corev1.ContainerResizePolicy{
				ResourceName: corev1.ResourceName(words[2]), RestartPolicy: corev1.RestartContainer,
			})
		case "resizing":
			if in.Resizing = true; in.Actual == nil {
				in.Actual = map[string]corev1.ResourceRequirements{}
			}
			if len(words) > 1 {
				in.Actual[words[1]] = limits(opts)
			}
		case "stopped":
			in.Stopped[words[1]] = true
		default:
			t.Fatalf("what is %q?", line)
		}
	}
	return in
}

func limits(opts map[string]string) corev1.ResourceRequirements {
	list := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{"cpu", "memory"} {
		if q := opts[string(name)]; q != "" {
			list[name] = resource.MustParse(q)
		}
	}
	return corev1.ResourceRequirements{Limits: list}
}

func parsePod(words []string, opts map[string]string) *corev1.Pod {
	mods := []podmilltest.PodOption{podmilltest.UID("u-1"), podmilltest.Restart(corev1.RestartPolicy(words[0]))}
	for _, w := range words[1:] {
		kind, rest, _ := strings.Cut(w, ":")
		name, image, _ := strings.Cut(rest, "=")
		image = or(image, "img:1")
		switch kind {
		case "init":
			mods = append(mods, podmilltest.InitContainer(name, image))
		case "sidecar":
			mods = append(mods, podmilltest.Sidecar(name, image))
		case "app":
			mods = append(mods, podmilltest.Container(name, image))
		}
	}
	if g, err := strconv.Atoi(opts["grace"]); err == nil {
		mods = append(mods, podmilltest.Grace(time.Duration(g)*time.Second))
	}
	pod := podmilltest.Pod("shop/cart", mods...)
	if s, err := strconv.ParseInt(opts["deadline"], 10, 64); err == nil {
		pod.Spec.ActiveDeadlineSeconds = &s
	}
	pod.Status.Phase = corev1.PodPhase(opts["phase"])
	return pod
}

func parseSeen(t *testing.T, words []string, opts map[string]string, ago time.Time) podmill.Container {
	t.Helper()
	name, attempt := instance(t, words[1])
	state, ok := map[string]podmill.State{
		"running": podmill.StateRunning, "exited": podmill.StateExited, "created": podmill.StateCreated, "unknown": podmill.StateUnknown,
	}[words[2]]
	if !ok {
		t.Fatalf("what is %q?", words)
	}
	hash := hashOf(&corev1.Container{Name: name, Image: or(opts["image"], "img:1")})
	switch opts["hash"] {
	case "foreign":
		hash = "5b3f9a1c"
	case "none":
		hash = ""
	}
	c := podmill.Container{
		ID: words[1], SandboxID: "s" + or(opts["in"], "0"), Name: name, Attempt: attempt, State: state,
		Annotations: map[string]string{podmill.AnnotationContainerHash: hash},
	}
	if state == podmill.StateExited {
		c.ExitCode, c.FinishedAt = int32(number(t, or(opts["exit"], "0"))), ago
	}
	return c
}

func instance(t *testing.T, s string) (name string, attempt uint32) {
	t.Helper()
	name, n, _ := strings.Cut(s, "#")
	return name, number(t, n)
}

func number(t *testing.T, s string) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

func duration(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// B045: crash back-off arithmetic. Exits after a second each time, then one run of eleven minutes, then clean exits after a minute.
func TestBackoff(t *testing.T) {
	var b Backoff
	var waits []string
	at := now
	crash := func(ran time.Duration) {
		finished := at.Add(ran)
		wait := b.Wait(finished, finished)
		waits = append(waits, fmt.Sprint(wait))
		at = finished.Add(wait)
		b = b.Next(finished, at, 0)
	}
	for range 8 {
		crash(time.Second)
	}
	crash(11 * time.Minute)
	for range 3 {
		crash(time.Minute)
	}
	want := "0s 10s 20s 40s 1m20s 2m40s 5m0s 5m0s 0s 10s 20s 40s"
	if got := strings.Join(waits, " "); got != want {
		t.Errorf("waits\n%s, want\n%s", got, want)
	}
}

// B049: a clock that was set back, or forward and back again, does not give a pod more time than it has.
func TestActiveSince(t *testing.T) {
	at := func(d time.Duration) *corev1.PodStatus {
		start := metav1.NewTime(now.Add(d))
		return &corev1.PodStatus{StartTime: &start}
	}
	for name, tt := range map[string]struct {
		status *corev1.PodStatus
		want   time.Duration
	}{
		"never told":      {&corev1.PodStatus{}, 0},
		"a while ago":     {at(-15 * time.Second), -15 * time.Second},
		"in time to come": {at(time.Hour), 0},
	} {
		if got := activeSince(tt.status, now).Sub(now); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// A lower maximum cuts the waits, the first one included (KEP-5593).
func TestBackoffWithALowerMaximum(t *testing.T) {
	for limit, want := range map[time.Duration]string{
		time.Minute:     "10s 20s 40s 1m0s 1m0s",
		2 * time.Second: "2s 2s 2s 2s 2s",
	} {
		var b Backoff
		var waits []string
		for range 5 {
			b = b.Next(now, now, limit)
			waits = append(waits, b.Delay.String())
		}
		if got := strings.Join(waits, " "); got != want {
			t.Errorf("at most %v: %s, want %s", limit, got, want)
		}
	}
}

func TestBackoffCountsFromTheEnd(t *testing.T) {
	b := Backoff{Delay: 40 * time.Second, Since: now.Add(-time.Minute)}
	if wait := b.Wait(now.Add(-30*time.Second), now); wait != 10*time.Second {
		t.Errorf("30 s after the end there are %v left, want 10s", wait)
	}
	if wait := b.Wait(now.Add(-time.Hour), now); wait != 0 {
		t.Errorf("an hour after the end there are %v left", wait)
	}
	// B010: the clock was set back by five minutes, so that the end lies ahead.
	if wait := b.Wait(now.Add(5*time.Minute), now); wait != 40*time.Second {
		t.Errorf("with a clock that was set back there are %v left, want the whole delay and no more", wait)
	}
}
