package syncpod

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
	"github.com/podmill/podmill/podmilltest"
)

// world is a small model of a runtime, in which plans are carried out and things happen by themselves. It knows the truth: what was
// started where, and how it ended.
type world struct {
	t       *rapid.T
	pod     *corev1.Pod
	now     time.Time
	seen    *podmill.RuntimePod
	mem     *memory
	used    map[string]uint32          // one more than the highest attempt of a container
	initsOK map[string]map[string]bool // by sandbox, the init containers that have succeeded there
	seq     int
}

func newWorld(t *rapid.T) *world {
	w := &world{
		t: t, pod: randomPod(t), now: now, seen: &podmill.RuntimePod{},
		used: map[string]uint32{}, initsOK: map[string]map[string]bool{},
	}
	w.mem = &memory{
		known: map[string]Record{}, ended: map[string]time.Time{}, backoff: map[string]Backoff{}, adopted: map[string]string{},
		failed: map[string]corev1.ContainerStateWaiting{}, told: map[string]uint32{},
	}
	return w
}

func randomPod(t *rapid.T) *corev1.Pod {
	policies := []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}
	mods := []podmilltest.PodOption{podmilltest.Restart(rapid.SampledFrom(policies).Draw(t, "policy"))}
	for i, sidecar := range rapid.SliceOfN(rapid.Bool(), 0, 3).Draw(t, "sidecars among the init containers") {
		if name := fmt.Sprint("i", i); sidecar {
			mods = append(mods, podmilltest.Sidecar(name, "img:1"))
		} else {
			mods = append(mods, podmilltest.InitContainer(name, "img:1"))
		}
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "apps") {
		mods = append(mods, podmilltest.Container(fmt.Sprint("a", i), "img:1"))
	}
	pod := podmilltest.Pod("shop/cart", mods...)
	for c := range lifecycle.Containers(pod) {
		if rapid.IntRange(0, 3).Draw(t, "all restart with it at 0") == 0 {
			c.RestartPolicyRules = []corev1.ContainerRestartRule{{
				Action: corev1.ContainerRestartRuleActionRestartAllContainers,
				ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
					Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{88},
				},
			}}
		}
	}
	if rapid.Bool().Draw(t, "somebody looks into it") {
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "e", Image: "img:1"}},
		}
	}
	return pod
}

// current chooses a sandbox as the real chooser does.
func (w *world) current() (s *podmill.Sandbox, attempt uint32) {
	var ready []*podmill.Sandbox
	for i := range w.seen.Sandboxes {
		attempt = max(attempt, w.seen.Sandboxes[i].Attempt+1)
		if w.seen.Sandboxes[i].Ready {
			ready = append(ready, &w.seen.Sandboxes[i])
		}
	}
	if len(ready) == 1 {
		return ready[0], ready[0].Attempt
	}
	return nil, attempt
}

func (w *world) plan() Actions {
	w.mem.learn(w.pod, w.seen, w.now)
	s, attempt := w.current()
	in := Input{
		Pod: w.pod, Seen: w.seen, Sandbox: s, SandboxAttempt: attempt, SandboxWhy: "so",
		Known: w.mem.known, Ended: w.mem.ended, Backoff: w.mem.backoff, Adopted: w.mem.adopted,
	}
	a := Plan(in, w.now)
	if again := Plan(in, w.now); again.String() != a.String() {
		w.t.Fatalf("the same input gave\n%s\nand then\n%s", &a, &again)
	}
	return a
}

// carryOut does what a plan says, as a perfect runtime would, and checks on the way what must always hold.
func (w *world) carryOut(a Actions) {
	for _, k := range a.Kill {
		c := w.byID(k.ID)
		if k.Remove != (c.State == podmill.StateCreated) {
			w.t.Fatalf("%s#%d is %s, and is killed with remove=%v", k.Name, k.Attempt, c.State, k.Remove)
		}
		if k.Remove {
			w.used[k.Name]-- // it never ran and left no log
			w.remove(k.ID)
		} else {
			w.exit(c, 137)
		}
	}
	if a.StopSandboxes {
		for i := range w.seen.Containers {
			if c := &w.seen.Containers[i]; c.State == podmill.StateRunning {
				w.t.Fatalf("the sandboxes are stopped while %s#%d runs", c.Name, c.Attempt)
			}
		}
		for i := range w.seen.Sandboxes {
			w.seen.Sandboxes[i].Ready = false
		}
	}
	if a.RunSandbox != nil {
		if s, _ := w.current(); s != nil {
			w.t.Fatal("a second live sandbox")
		}
		w.seq++
		s := podmill.Sandbox{ID: fmt.Sprint("s", w.seq), Attempt: a.RunSandbox.Attempt, Ready: true}
		w.seen.Sandboxes = slices.Insert(w.seen.Sandboxes, 0, s)
		w.initsOK[s.ID] = map[string]bool{}
	}
	for i := range a.Start {
		w.start(&a.Start[i])
	}
	if a.Reset {
		w.mem.reset(w.pod)
		for _, ok := range w.initsOK {
			clear(ok) // they have to run again
		}
	}
	for _, r := range a.Remove {
		if c := w.byID(r.ID); c.State != podmill.StateExited && c.State != podmill.StateUnknown {
			w.t.Fatalf("%s#%d is removed and %s", r.Name, r.Attempt, c.State)
		}
		w.remove(r.ID)
	}
}

func (w *world) start(start *Start) {
	c := start.Container
	sandbox, _ := w.current()
	if sandbox == nil {
		w.t.Fatalf("%s is started without a sandbox", c.Name)
	}
	for i := range w.seen.Containers {
		if o := &w.seen.Containers[i]; o.Name == c.Name && o.State != podmill.StateExited {
			w.t.Fatalf("%s#%d is started while #%d is %s", c.Name, start.Attempt, o.Attempt, o.State)
		}
	}
	if start.Attempt < w.used[c.Name] {
		w.t.Fatalf("%s#%d is started after #%d", c.Name, start.Attempt, w.used[c.Name]-1)
	}
	if start.Kind == lifecycle.Ephemeral && w.used[c.Name] > 0 {
		w.t.Fatalf("%s is started again", c.Name)
	}
	for i := range w.pod.Spec.InitContainers {
		if start.Kind == lifecycle.Ephemeral {
			break
		}
		before := &w.pod.Spec.InitContainers[i]
		if before.Name == c.Name {
			break
		}
		if lifecycle.InitKind(before) == lifecycle.Init && !w.initsOK[sandbox.ID][before.Name] {
			w.t.Fatalf("%s is started, and %s has not succeeded in this sandbox", c.Name, before.Name)
		}
	}
	w.used[c.Name] = start.Attempt + 1
	w.seq++
	w.seen.Containers = slices.Insert(w.seen.Containers, 0, podmill.Container{
		ID: fmt.Sprint("c", w.seq), SandboxID: sandbox.ID, Name: c.Name, Attempt: start.Attempt, State: podmill.StateRunning,
		StartedAt: w.now, Annotations: map[string]string{podmill.AnnotationContainerHash: hashOf(c)},
	})
	_ = w.mem.conclude(start, sandbox.ID, outcome{tried: true})
}

func (w *world) exit(c *podmill.Container, code int32) {
	c.State, c.ExitCode, c.FinishedAt = podmill.StateExited, code, w.now
	if code == 0 {
		w.initsOK[c.SandboxID][c.Name] = true
	}
}

func (w *world) byID(id string) *podmill.Container {
	i := slices.IndexFunc(w.seen.Containers, func(c podmill.Container) bool { return c.ID == id })
	if i < 0 {
		w.t.Fatalf("there is no container %s", id)
	}
	return &w.seen.Containers[i]
}

func (w *world) remove(id string) {
	w.seen.Containers = slices.DeleteFunc(w.seen.Containers, func(c podmill.Container) bool { return c.ID == id })
}

// happen is something that nobody planned.
func (w *world) happen() {
	if len(w.seen.Containers) > 0 {
		c := &w.seen.Containers[rapid.IntRange(0, len(w.seen.Containers)-1).Draw(w.t, "container")]
		switch rapid.SampledFrom([]string{"exit 0", "exit 1", "exit 88", "vanish", "unknown", "created"}).Draw(w.t, "what") {
		case "exit 0":
			if c.State == podmill.StateRunning {
				w.exit(c, 0)
			}
		case "exit 1":
			if c.State == podmill.StateRunning {
				w.exit(c, 1)
			}
		case "exit 88":
			if c.State == podmill.StateRunning {
				w.exit(c, 88)
			}
		case "vanish":
			if c.State != podmill.StateCreated {
				w.remove(c.ID)
			}
		case "unknown":
			if c.State == podmill.StateRunning {
				c.State = podmill.StateUnknown
			}
		case "created":
			// A create whose start never came, in the newest sandbox, dead or not.
			if len(w.seen.Sandboxes) > 0 && c.State == podmill.StateExited && w.seen.Container(c.Name) == c {
				next := *c
				w.seq++
				next.ID, next.SandboxID, next.Attempt, next.State = fmt.Sprint("c", w.seq), w.seen.Sandboxes[0].ID, w.used[c.Name], podmill.StateCreated
				w.used[c.Name]++
				w.seen.Containers = slices.Insert(w.seen.Containers, 0, next)
			}
		}
	}
	if len(w.seen.Sandboxes) > 0 && rapid.IntRange(0, 5).Draw(w.t, "sandbox dies at 0") == 0 {
		w.seen.Sandboxes[0].Ready = false
	}
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 400).Draw(w.t, "seconds")) * time.Second)
}

// Random pods in a random world: whatever happens, plans start nothing twice, nothing out of order and nothing under a used attempt, never
// make a second sandbox, and when nothing more happens they settle.
func TestPlansKeepTheInvariantsAndSettle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(0, 25).Draw(t, "steps") {
			a := w.plan()
			if a.Finished || a.End != nil {
				if !a.Idle() {
					t.Fatalf("finished, and still to do:\n%s", &a)
				}
				return
			}
			w.carryOut(a)
			w.happen()
		}
		w.settle()
	})
}

// settle lets init containers succeed and time pass, and nothing else.
func (w *world) settle() {
	for range 40 {
		a := w.plan()
		inits := w.succeedInits()
		switch {
		case (a.Finished || a.End != nil):
			return
		case a.Idle() && !inits && a.Until.IsZero():
			w.checkSettled()
			return
		case a.Idle() && !inits:
			w.now = a.Until
		case !inits:
			w.carryOut(a)
		}
	}
	a := w.plan()
	w.t.Fatalf("does not settle, still to do:\n%s", &a)
}

func (w *world) succeedInits() (any bool) {
	for i := range w.seen.Containers {
		c := &w.seen.Containers[i]
		spec, kind := (&planner{Input: Input{Pod: w.pod}}).spec(c.Name)
		if spec != nil && kind == lifecycle.Init && c.State == podmill.StateRunning {
			w.exit(c, 0)
			any = true
		}
	}
	return any
}

// checkSettled checks that a pod of which nothing is left to do has what it wants.
func (w *world) checkSettled() {
	for c, kind := range lifecycle.Containers(w.pod) {
		newest := w.seen.Container(c.Name)
		runs := newest != nil && newest.State == podmill.StateRunning
		if kind == lifecycle.Sidecar && !runs {
			w.t.Fatalf("settled without sidecar %s", c.Name)
		}
		if kind == lifecycle.App && !runs && w.pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
			w.t.Fatalf("settled without %s", c.Name)
		}
	}
	dead := map[string]int{}
	for i := range w.seen.Containers {
		if c := &w.seen.Containers[i]; c.State == podmill.StateExited {
			if dead[c.Name]++; dead[c.Name] > 1 {
				w.t.Fatalf("settled with several dead instances of %s", c.Name)
			}
		}
	}
}

// A pod that has to end ends in as many rounds as it has sidecars and two more, and nothing is started on the way.
func TestTerminationEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			a := w.plan()
			if a.Finished || a.End != nil {
				break
			}
			w.carryOut(a)
			w.happen()
		}
		end := podmill.Termination{Deadline: w.now.Add(30 * time.Second), GracePeriodSeconds: 30}
		for range len(w.pod.Spec.InitContainers) + 2 {
			a := Plan(Input{Pod: w.pod, Seen: w.seen, Termination: &end}, w.now)
			if len(a.Start)+len(a.Remove) > 0 || a.RunSandbox != nil {
				t.Fatalf("a pod that has to end does\n%s", &a)
			}
			for _, k := range a.Kill {
				if k.Grace > 30*time.Second || k.Grace < 2*time.Second {
					t.Fatalf("grace %v", k.Grace)
				}
			}
			w.carryOut(a)
			if a.Finished || a.End != nil {
				return
			}
		}
		t.Fatal("does not end")
	})
}
