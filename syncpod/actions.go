package syncpod

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// Actions is what has to be done for a pod now. They are carried out in the order of the fields; what stands in one list goes
// side by side.
type Actions struct {
	// PreStop are the preStop hooks to begin. They run beside what comes next; the kill of a container waits for its own hook.
	PreStop []PreStop
	// Kill are the containers that must not run, or not run on as they are.
	Kill []Kill
	// StopSandboxes says that every sandbox of the pod has to be stopped, once the containers are.
	StopSandboxes bool
	// Resize are the running containers that are given other resources. Where one has to be started anew for that, it is among Kill and Start.
	Resize []Resize
	// Fit says that the containers have what they were allocated: the pod's cgroup is set to that, and the resize is over.
	Fit bool
	// RunSandbox is set where the pod needs a new sandbox, in which all of Start are started.
	RunSandbox *RunSandbox
	// Start are the containers to start: one init container or any number of app containers, and sidecars that have ended.
	Start []Start
	// Remove are dead instances that nobody will ask for any more.
	Remove []Remove

	// Reset says that every container starts again as if none had run, once Remove is done.
	Reset bool

	// Waiting says why containers that should run do not, where the reason is known to the plan.
	Waiting map[string]corev1.ContainerStateWaiting
	// Until is when to plan again although nothing has happened; zero if there is no such time.
	Until time.Time
	// End is set where the pod has to be terminated: it is zero where the pod's work is done, and else has the reason.
	End *podmill.Kill
	// Finished says of a pod that is being terminated that all has stopped.
	Finished bool
}

// PreStop runs the preStop hook of an instance that is going to be stopped.
type PreStop struct {
	ID, Name string
	Attempt  uint32
	// Container has the hook, and the ports that it may name.
	Container *corev1.Container
	// Grace is how long the hook may take.
	Grace time.Duration
}

// Kill stops an instance of a container.
type Kill struct {
	ID, Name string
	Attempt  uint32
	// Grace is how long the instance may take to stop, its preStop hook included. What the hook leaves of it is not less than two seconds, unless it
	// is zero.
	Grace time.Duration
	// Remove says that the instance was never started. Stopping it would not keep it from being started, by a call that is
	// still under way; removing it does.
	Remove bool
	// Failed says that the instance is stopped because it has failed, as a probe or its postStart hook has said, whatever code it will exit with.
	Failed bool
	Why    string // for the event, in the kubelet's words where it has any
}

// Resize gives an instance of a container the resources that its spec says.
type Resize struct {
	ID, Name  string
	Attempt   uint32
	Container *corev1.Container
}

// RunSandbox runs a new sandbox.
type RunSandbox struct {
	Attempt uint32
	Why     string
}

// Start creates and starts the next instance of a container.
type Start struct {
	Container *corev1.Container
	Kind      lifecycle.Kind
	Attempt   uint32
	// Backoff is the container's back-off once it has been started.
	Backoff Backoff
	Why     string
}

// Remove removes a dead instance of a container.
type Remove struct {
	ID, Name string
	Attempt  uint32
}

// String says what is done to which instance, and why.
func (k Kill) String() string {
	if k.Remove {
		return fmt.Sprintf("remove %s#%d: %s", k.Name, k.Attempt, k.Why)
	}
	return fmt.Sprintf("kill %s#%d, grace %v: %s", k.Name, k.Attempt, k.Grace, k.Why)
}

// Idle reports that there is nothing to do now.
func (a *Actions) Idle() bool {
	return len(a.PreStop)+len(a.Kill)+len(a.Resize)+len(a.Start)+len(a.Remove) == 0 && !a.Fit && !a.Reset && !a.StopSandboxes && a.RunSandbox == nil
}

// sizes returns a line for each action that changes a size.
func (a *Actions) sizes() (lines []string) {
	for _, r := range a.Resize {
		lines = append(lines, fmt.Sprintf("resize %s#%d", r.Name, r.Attempt))
	}
	if a.Fit {
		lines = append(lines, "the pod's cgroup fits its containers")
	}
	return lines
}

// String returns a line for each action, in order, with the reason.
func (a *Actions) String() string {
	var lines []string
	line := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, p := range a.PreStop {
		line("preStop %s#%d, at most %v", p.Name, p.Attempt, p.Grace)
	}
	for _, k := range a.Kill {
		line("%s", k)
	}
	if a.StopSandboxes {
		line("stop the sandboxes")
	}
	lines = append(lines, a.sizes()...)
	if a.RunSandbox != nil {
		line("run sandbox#%d: %s", a.RunSandbox.Attempt, a.RunSandbox.Why)
	}
	for _, s := range a.Start {
		line("start %s %s#%d: %s", s.Kind, s.Container.Name, s.Attempt, s.Why)
	}
	for _, r := range a.Remove {
		line("remove dead %s#%d", r.Name, r.Attempt)
	}
	if a.Reset {
		line("reset")
	}
	for _, name := range slices.Sorted(maps.Keys(a.Waiting)) {
		line("wait with %s: %s: %s", name, a.Waiting[name].Reason, a.Waiting[name].Message)
	}
	if !a.Until.IsZero() {
		line("plan again at %s", a.Until.UTC().Format(time.RFC3339))
	}
	if a.End != nil && a.End.Reason != "" {
		line("end: %s: %s", a.End.Reason, a.End.Message)
	} else if a.End != nil || a.Finished {
		line("finished")
	}
	if len(lines) == 0 {
		return "nothing to do"
	}
	return strings.Join(lines, "\n")
}
