package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// settleWithin is how long everything may take to be as it should once nothing goes wrong any more. An inspection that hangs is given up
// after 2 minutes and what was missed meanwhile is found by a listing within another minute and a half (package pleg); a container or a pull
// that has failed again and again waits for up to 5 minutes, and a pod may have to wait for one and then for the other; 90 s are for
// grace periods, retries of syncs and statuses, and the run of a job.
const settleWithin = 120*time.Second + 90*time.Second + 2*300*time.Second + 90*time.Second

// goneWithin is how long pods may take to go that nobody wants any more, when nothing goes wrong: the longest grace period of 40 s, a
// retry after 10 s, and the two rounds of housekeeping that find what is left. No back-off of a container comes into it.
const goneWithin = 60 * time.Second

// calm ends all that goes wrong. The agent runs, and hears every source.
func (s *sim) calm() {
	s.note("from now on nothing goes wrong")
	s.mu.Lock()
	s.troubled = false
	s.mu.Unlock()
	close(s.free)
	ready := podmill.Condition{OK: true}
	s.rt.SetStatus(podmill.RuntimeStatus{Name: "podmilltest", RuntimeReady: ready, NetworkReady: ready})
	if s.process == nil {
		s.start(-1)
	}
	s.process.faulty.Clear()
	for i := range s.sources() {
		s.speak(i)
	}
	synctest.Wait()
}

// settles fails unless everything is as it should be within a time, and stays so. It returns how long that took.
func (s *sim) settles(within time.Duration, left func() []string) time.Duration {
	s.Helper()
	began := time.Now()
	for {
		s.pass(time.Second)
		s.poll()
		wrong := left()
		if took := time.Since(began); len(wrong) == 0 {
			return took
		} else if took > within {
			s.mu.Lock()
			for _, w := range wrong {
				s.breach(12, "after %v, %s", within, w)
			}
			s.mu.Unlock()
			s.check()
		}
	}
}

// unsettled says what is not as the sources want it.
func (s *sim) unsettled() (wrong []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	held := s.held()
	shown := map[string]bool{}
	pods, synced := s.process.agent.Pods()
	for _, pod := range pods {
		shown[string(pod.UID)] = true
		if sp := s.pods[pod.UID]; !sp.wanted {
			say("the agent shows %s, which nobody wants", sp.ref())
		}
	}
	if err := s.process.agent.Healthy(); err != nil || !synced {
		say("the agent is not healthy: %v, synced %v", err, synced)
	}
	for uid, sp := range s.pods {
		seen := held[uid]
		switch {
		case !sp.wanted:
			if seen != nil {
				say("the runtime holds %s, which nobody wants", sp.ref())
			}
			if mounted := s.mounted(uid); len(mounted) > 0 {
				say("volumes %v of %s are mounted, which nobody wants", mounted, sp.ref())
			}
		case sp.pod.DeletionTimestamp != nil:
			say("the deletion of %s is not confirmed", sp.ref())
		case s.histories[uid] == nil || s.histories[uid].last == nil || !shown[string(uid)]:
			say("nothing was told of %s", sp.ref())
		default:
			if seen == nil {
				seen = &podmill.RuntimePod{}
			}
			s.unsettledPod(sp, seen, s.histories[uid].last, func(format string, args ...any) {
				say(sp.ref()+": "+format, args...)
			})
		}
	}
	return append(wrong, s.leftOnDisk()...)
}

// unsettledPod says what is wrong with a pod that is wanted.
func (s *sim) unsettledPod(sp *simPod, seen *podmill.RuntimePod, told *corev1.PodStatus, say func(string, ...any)) {
	if told.Phase == corev1.PodSucceeded || told.Phase == corev1.PodFailed {
		s.unsettledEnd(sp, seen, told, say)
		return
	}
	ready := 0
	for _, b := range seen.Sandboxes {
		if b.Ready {
			ready++
		}
	}
	if ready != 1 || len(seen.Sandboxes) > 3 {
		say("%d sandboxes, of which %d are ready", len(seen.Sandboxes), ready)
	}
	if mounted := s.mounted(sp.pod.UID); len(mounted) != len(sp.pod.Spec.Volumes) {
		say("mounted volumes: %v", mounted)
	}
	for _, c := range seen.Containers {
		spec := s.spec(sp, c.Name)
		switch {
		case c.State == podmill.StateCreated || c.State == podmill.StateUnknown:
			say("container %s#%d is %v", c.Name, c.Attempt, c.State)
		case c.State == podmill.StateRunning && (spec == nil || seen.Container(c.Name).ID != c.ID):
			say("container %s#%d should not run", c.Name, c.Attempt)
		}
	}
	all := s.unsettledContainers(sp, seen, told, say)
	switch expect := expectation(sp.pod); {
	case expect == ends:
		say("it should have ended, and is %s", told.Phase)
	case expect == runs && (!all || told.Phase != corev1.PodRunning || !podReady(told)):
		say("it should run and be ready, and is %s: %+v", told.Phase, told.ContainerStatuses)
	case expect == waits && told.Phase != corev1.PodPending:
		say("it should wait, and is %s", told.Phase)
	}
}

// unsettledContainers says what is wrong with the containers of a pod that should run, and reports whether all do.
func (s *sim) unsettledContainers(sp *simPod, seen *podmill.RuntimePod, told *corev1.PodStatus, say func(string, ...any)) (all bool) {
	all = true
	statuses := append(slices.Clone(told.InitContainerStatuses), told.ContainerStatuses...)
	i := -1
	for c, kind := range lifecycle.Containers(sp.pod) {
		i++
		newest := seen.Container(c.Name)
		runs := newest != nil && newest.State == podmill.StateRunning
		if kind != lifecycle.Init && !runs {
			all = false
		}
		if newest == nil || kind == lifecycle.Init {
			continue
		}
		if runs && s.instances[newest.ID].image != c.Image {
			say("container %s runs %s", c.Name, newest.Image)
		}
		if want := c.Resources.Requests.Cpu().MilliValue(); runs && newest.Resources.CPURequest != want {
			say("container %s has %dm of CPU, and wants %dm", c.Name, newest.Resources.CPURequest, want)
		}
		if got := statuses[i]; runs && (got.State.Running == nil || got.ContainerID != "podmilltest://"+newest.ID || got.RestartCount < int32(newest.Attempt)) {
			say("container %s runs, and it is said: %+v", c.Name, got)
		}
	}
	return all
}

// unsettledEnd says what is wrong with a pod that is said to be over.
func (s *sim) unsettledEnd(sp *simPod, seen *podmill.RuntimePod, told *corev1.PodStatus, say func(string, ...any)) {
	if !seen.Empty() {
		say("it is %s, and the runtime holds %d containers and %d sandboxes", told.Phase, len(seen.Containers), len(seen.Sandboxes))
	}
	if mounted := s.mounted(sp.pod.UID); len(mounted) > 0 {
		say("it is %s, and volumes are mounted: %v", told.Phase, mounted)
	}
	if ended(sp.pod, told) {
		say("it is %s, and its restart policy is %s", told.Phase, sp.pod.Spec.RestartPolicy)
	}
}

// outlook is what becomes of a pod that nobody disturbs.
type outlook int

const (
	changes outlook = iota // it crashes again and again, or one of its containers does
	runs                   // all run, and go on to
	ends
	waits // for an image, or for an init container that never succeeds
)

// willRun is the label of a pod that is known to run and go on to.
const willRun = "will-run"

func expectation(pod *corev1.Pod) outlook {
	if pod.Labels[willRun] != "" {
		return runs
	}
	if ownPolicy(pod) {
		return changes
	}
	never := pod.Spec.RestartPolicy == corev1.RestartPolicyNever
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == "never" || c.Name == "flaky" {
			if never {
				return changes // flaky: by the luck of its attempts
			}
			if c.Name == "never" {
				return waits
			}
		}
	}
	out := runs
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		script := ""
		if len(c.Command) > 0 {
			script = c.Command[len(c.Command)-1]
		}
		switch {
		case c.Image == "absent:1":
			return changes // the others run
		case !slices.Contains(finite, script) || c.Name == "shaky":
			if pod.Spec.RestartPolicy != corev1.RestartPolicyAlways {
				return changes // it may have been ended by a hand, and then it is over
			}
		case never || pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && strings.HasSuffix(script, "exit 0"):
			out = ends
		default:
			return changes
		}
	}
	return out
}

func podReady(status *corev1.PodStatus) bool {
	return slices.ContainsFunc(status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
}

// leftOnDisk names what is on disk of pods that nobody wants.
func (s *sim) leftOnDisk() (left []string) {
	for _, dir := range []string{"pods", "status", "log/pods", "log/containers"} {
		entries, err := os.ReadDir(filepath.Join(s.root, dir))
		if err != nil && !os.IsNotExist(err) {
			left = append(left, err.Error())
		}
		for _, e := range entries {
			if !s.ownedByWanted(dir, e.Name()) {
				left = append(left, fmt.Sprintf("%s/%s is left on disk", dir, e.Name()))
			}
		}
	}
	return left
}

func (s *sim) ownedByWanted(dir, name string) bool {
	for uid, sp := range s.pods {
		if !sp.wanted {
			continue
		}
		owned := map[string]bool{
			"pods": name == string(uid), "status": name == string(uid)+".json", "log/pods": name == fmt.Sprintf("default_%s_%s", sp.pod.Name, uid),
			"log/containers": strings.HasPrefix(name, sp.pod.Name+"_default_"),
		}
		if owned[dir] {
			return true
		}
	}
	return false
}

// stacks are the stacks of all goroutines.
func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}
