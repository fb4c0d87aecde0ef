package agent_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	. "github.com/podmill/podmill/podmilltest"
)

// What a container can run for ever, and what it can run for a while.
var (
	forever = []string{
		"sleep inf",
		"trap '' TERM; sleep inf",
		"trap 'exit 0' TERM; sleep inf & wait",
		"trap 'sleep 3; exit 3' TERM; sleep inf & wait",
	}
	finite = []string{"exit 0", "sleep 2; exit 0", "sleep 20; exit 0", "exit 3", "sleep 5; exit 1", "sleep 1; oom", "trap '' TERM; sleep 8; exit 0"}
	good   = []string{"busybox:1", "busybox:2", "slow:1"}
)

func pick[T any](rng *rand.Rand, from []T) T { return from[rng.IntN(len(from))] }

func chance(rng *rand.Rand, oneIn int) bool { return rng.IntN(oneIn) == 0 }

// randomPod makes a pod of all that pods are made of.
func randomPod(rng *rand.Rand, name string, uid types.UID, source string) *corev1.Pod {
	policy := pick(rng, []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever})
	opts := []PodOption{
		UID(uid), Annotation(podmill.AnnotationConfigSource, source), Restart(policy),
		Grace(pick(rng, []time.Duration{0, time.Second, 5 * time.Second, 20 * time.Second, 40 * time.Second})),
	}
	var mounts []ContainerOption
	for i := range rng.IntN(3) {
		volume := fmt.Sprint("v", i)
		opts = append(opts, Volume(volume, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}))
		mounts = append(mounts, VolumeMount(volume, "/"+volume))
	}
	if chance(rng, 10) {
		opts = append(opts, activeFor(pick(rng, []time.Duration{10 * time.Second, time.Minute, 20 * time.Minute})))
	}
	with := func(script string) []ContainerOption {
		return append([]ContainerOption{Runs(script), watched(rng)}, mounts...)
	}
	for i := range rng.IntN(3) {
		switch rng.IntN(5) {
		case 0, 1:
			opts = append(opts, Sidecar(fmt.Sprint("side", i), pick(rng, good), with(pick(rng, forever))...))
		case 2:
			opts = append(opts, InitContainer("flaky", "busybox:1", mounts...))
		default:
			script := pick(rng, []string{"exit 0", "sleep 2; exit 0", "sleep 1; exit 0"})
			opts = append(opts, InitContainer(fmt.Sprint("init", i), pick(rng, good), append(slices.Clone(mounts), Runs(script))...))
		}
	}
	if chance(rng, 12) {
		opts = append(opts, InitContainer("never", "busybox:1", append(slices.Clone(mounts), Runs("sleep 1; exit 1"))...))
	}
	if chance(rng, 8) {
		opts = append(opts, HostNetwork())
	}
	job := chance(rng, 3)
	for i := range 1 + rng.IntN(2) {
		script, image := pick(rng, forever), pick(rng, good)
		if job {
			script = pick(rng, finite)
		}
		name := fmt.Sprint("app", i)
		switch {
		case chance(rng, 15):
			image = "absent:1"
		case i == 0 && chance(rng, 10):
			name = "shaky"
		}
		of := with(script)
		if chance(rng, 10) {
			of = append(of, ruled(rng))
		}
		opts = append(opts, Container(name, image, of...))
	}
	pod := Pod(name, opts...)
	unique(pod)
	asks(&pod.Spec.Containers[0], 10) // so that it is burstable, whatever it asks for later
	return pod
}

// asks has a container request so many thousandths of a CPU.
func asks(c *corev1.Container, milli int64) {
	c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI)}
}

// unique takes out a second container of one name.
func unique(pod *corev1.Pod) {
	seen := map[string]bool{}
	var kept []corev1.Container
	for _, c := range pod.Spec.InitContainers {
		if !seen[c.Name] {
			kept = append(kept, c)
		}
		seen[c.Name] = true
	}
	pod.Spec.InitContainers = kept
}

// want makes a source want a pod: a new one, or one that it had.
func (s *sim) want(source int, pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.pods[pod.UID]
	now := &life{since: time.Now()}
	switch {
	case sp == nil:
		sp = &simPod{pod: pod, source: source, lives: []*life{now}}
		s.pods[pod.UID] = sp
	case s.process != nil && sp.noticed == s.process && (sp.knows == s.process || s.heldOf(pod.UID).Empty()):
		sp.lives = append(sp.lives, now)
	default: // nobody who is there is sure to have seen that it was there, and was away
		l := sp.life()
		l.until, l.limit = time.Time{}, time.Time{}
		s.adopt(sp)
		sp.unsure = true
	}
	sp.wanted, sp.pod = true, pod
	sp.wants++
	s.note("source %s wants %s: %s", s.sources()[source], sp.ref(), describe(pod))
	s.deliver(source, podmill.UpsertPods, sp)
}

// unwant makes its source drop a pod.
func (s *sim) unwant(sp *simPod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp.wanted, sp.noticed = false, nil
	if s.hears(sp.source) {
		sp.noticed = s.process
	}
	sp.life().end(graceOf(sp.pod))
	if s.isAPI(sp.source) {
		s.history(sp.pod.UID).gone = true
	}
	s.note("source %s does not want %s any more", s.sources()[sp.source], sp.ref())
	s.deliver(sp.source, podmill.DeletePods, sp)
}

// remove has a pod deleted in the API, within a grace period.
func (s *sim) remove(sp *simPod, grace time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp.pod = Edit(sp.pod, Deleted(grace))
	sp.life().end(grace)
	if s.hears(sp.source) {
		sp.noticed = s.process
	}
	s.note("%s is deleted in the API, grace %v", sp.ref(), grace)
	s.deliver(sp.source, podmill.UpsertPods, sp)
}

// edit changes a pod.
func (s *sim) edit(sp *simPod, opts ...PodOption) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp.pod, sp.edited = Edit(sp.pod, opts...), time.Now()
	s.note("%s is edited: %s", sp.ref(), describe(sp.pod))
	s.deliver(sp.source, podmill.UpsertPods, sp)
}

// deliver tells the agent of a change, if one is there that has heard the source.
func (s *sim) deliver(source int, op podmill.PodOp, sp *simPod) {
	if s.process == nil || s.process.heard[source].IsZero() {
		return
	}
	if s.hears(source) {
		sp.knows = s.process
	}
	if op == podmill.DeletePods {
		s.process.sources[source].Delete(sp.pod)
		return
	}
	pod := sp.pod
	if s.isAPI(source) {
		pod = s.known(sp)
	}
	s.process.sources[source].Upsert(pod)
}

// hears reports that an agent runs that has heard a source.
func (s *sim) hears(source int) bool { return s.process != nil && s.process.hears(source) }

func (p *process) hears(source int) bool { return p.follows[source] && !p.heard[source].IsZero() }

// known is a pod with its last status: as an API has it, and as a source of static pods gives it to an agent that starts. One that was put
// back has no past.
func (s *sim) known(sp *simPod) *corev1.Pod {
	pod := sp.pod.DeepCopy()
	h := s.histories[pod.UID]
	if h != nil && h.last != nil && !s.files && (s.isAPI(sp.source) || !ended(pod, h.last)) {
		pod.Status = *h.last.DeepCopy()
	}
	return pod
}

// speak lets a source be heard that was silent.
func (s *sim) speak(source int) {
	p := s.process
	s.mu.Lock()
	defer s.mu.Unlock()
	if p == nil || !p.heard[source].IsZero() {
		return
	}
	p.heard[source] = time.Now()
	var pods []*corev1.Pod
	for _, sp := range s.pods {
		if sp.source == source && sp.wanted {
			pods = append(pods, s.known(sp))
		}
	}
	s.note("source %s is heard", s.sources()[source])
	p.sources[source].Replace(pods...)
	p.learn(source)
}

// learn says that the agent knows what a source wants, if it has heard it. Callers hold mu.
func (p *process) learn(source int) {
	for _, sp := range p.pods {
		switch {
		case sp.source != source || !p.hears(source):
		case sp.wanted:
			sp.knows = p
		default:
			sp.noticed = p
		}
	}
}

// simSource is a source that an agent runs when it is ready to.
type simSource struct {
	*PodSource
	p      *process
	source int
}

// Run implements [podmill.PodSource].
func (f *simSource) Run(ctx context.Context, deliver func(podmill.PodUpdate)) error {
	f.p.mu.Lock()
	f.p.follows[f.source] = true
	f.p.learn(f.source)
	f.p.mu.Unlock()
	return f.PodSource.Run(ctx, deliver)
}

// ended reports that a pod was ended, as its status has it, and did not end by itself.
func ended(pod *corev1.Pod, told *corev1.PodStatus) bool {
	switch policy := pod.Spec.RestartPolicy; {
	case ownPolicy(pod):
		return false
	case policy == corev1.RestartPolicyAlways:
		return told.Phase == corev1.PodFailed || told.Phase == corev1.PodSucceeded
	case policy == corev1.RestartPolicyOnFailure:
		return told.Phase == corev1.PodFailed
	default:
		return false
	}
}

func graceOf(pod *corev1.Pod) time.Duration {
	grace := time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	if pod.DeletionGracePeriodSeconds != nil {
		grace = min(grace, time.Duration(*pod.DeletionGracePeriodSeconds)*time.Second)
	}
	return grace
}

// describe says what a pod is, in a line.
func describe(pod *corev1.Pod) string {
	line := fmt.Sprintf("%s, grace %v, %d volumes", pod.Spec.RestartPolicy, graceOf(pod), len(pod.Spec.Volumes))
	tell := func(kind string, c *corev1.Container) {
		script := ""
		if len(c.Command) > 0 {
			script = c.Command[len(c.Command)-1]
		}
		line += fmt.Sprintf("; %s %s %s %q", kind, c.Name, c.Image, script)
		for as, p := range map[string]*corev1.Probe{asStartup: c.StartupProbe, asLiveness: c.LivenessProbe, asReadiness: c.ReadinessProbe} {
			if p != nil {
				line += fmt.Sprintf(" %s(every %d s, %d times)", as, p.PeriodSeconds, p.FailureThreshold)
			}
		}
		if c.Lifecycle != nil {
			line += fmt.Sprintf(" postStart %v, preStop %v", c.Lifecycle.PostStart, c.Lifecycle.PreStop)
		}
		if c.RestartPolicy != nil && kind == "app" {
			line += fmt.Sprintf(" %s %v", *c.RestartPolicy, c.RestartPolicyRules)
		}
	}
	for i := range pod.Spec.InitContainers {
		kind := "init"
		if pod.Spec.InitContainers[i].RestartPolicy != nil {
			kind = "sidecar"
		}
		tell(kind, &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		tell("app", &pod.Spec.Containers[i])
	}
	return line
}
