package agent_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	. "github.com/podmill/podmill/podmilltest"
)

// crashStories are what an agent goes through while it is killed. A pod that is wanted at the end has to be as it should.
var crashStories = []struct {
	name string
	tell func(s *sim)
}{
	{"a start", func(s *sim) {
		s.want(fromFile, s.simPod("web", fromFile, withAll))
		s.pass(10 * time.Second)
	}},
	{"a removal within its grace", func(s *sim) {
		s.want(fromFile, s.simPod("web", fromFile, withAll, Container("deaf", "busybox:1", Runs("trap '' TERM; sleep inf")), Grace(10*time.Second)))
		s.pass(10 * time.Second)
		s.unwant(s.pods["web"])
		s.pass(30 * time.Second)
	}},
	{"a deletion that is hastened", func(s *sim) {
		s.want(other, s.simPod("web", other, Container("deaf", "busybox:1", Runs("trap '' TERM; sleep inf")), Grace(40*time.Second)))
		s.pass(5 * time.Second)
		s.endBy(s.pods["web"], 40*time.Second)
		s.pass(5 * time.Second)
		s.endBy(s.pods["web"], 5*time.Second)
		s.pass(30 * time.Second)
	}},
	{"a crash loop", func(s *sim) {
		s.want(fromFile, s.simPod("web", fromFile, Container("crashes", "busybox:1", Runs("sleep 1; exit 1")), Container("runs", "busybox:1")))
		s.pass(time.Minute)
	}},
	{"an edit", func(s *sim) {
		s.want(fromFile, s.simPod("web", fromFile, withAll))
		s.pass(10 * time.Second)
		s.edit(s.pods["web"], func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "busybox:2" })
		s.pass(10 * time.Second)
	}},
	{"another pod of the name", func(s *sim) {
		s.want(fromFile, s.simPod("web", fromFile, Container("deaf", "busybox:1", Runs("trap '' TERM; sleep inf")), Grace(5*time.Second)))
		s.pass(5 * time.Second)
		s.unwant(s.pods["web"])
		s.want(fromFile, s.simPod("web", fromFile, UID("next"), Container("server", "busybox:2")))
		s.pass(10 * time.Second)
	}},
	{"a pod that is put back", func(s *sim) {
		pod := s.simPod("web", fromFile, Container("deaf", "busybox:1", Runs("trap '' TERM; sleep inf")), Grace(5*time.Second))
		s.want(fromFile, pod)
		for range 2 {
			s.pass(3 * time.Second)
			s.unwant(s.pods["web"])
			s.pass(3 * time.Second)
			s.want(fromFile, pod)
		}
		s.pass(10 * time.Second)
	}},
	{"a job", func(s *sim) {
		s.want(other, s.simPod("web", other, Sidecar("side", "busybox:1", Runs("trap '' TERM; sleep inf")), Grace(3*time.Second),
			InitContainer("init", "busybox:1", Runs("sleep 1; exit 0")), Container("work", "busybox:1", Runs("sleep 2; exit 0")), Restart(corev1.RestartPolicyNever)))
		s.pass(20 * time.Second)
	}},
	{"hooks and probes", func(s *sim) {
		deaf := Runs("trap '' TERM; sleep inf")
		s.want(other, s.simPod("web", other, Sidecar("side", "busybox:1", deaf, hooked), Container("app", "busybox:1", deaf, hooked), Grace(10*time.Second)))
		s.pass(10 * time.Second)
		s.endBy(s.pods["web"], 10*time.Second)
		s.pass(30 * time.Second)
	}},
	{"a restart of all containers", func(s *sim) {
		deaf := Runs("trap '' TERM; sleep inf")
		s.want(other, s.simPod("web", other, Restart(corev1.RestartPolicyNever), Label(willRun, "yes"),
			InitContainer("init", "busybox:1", Runs("sleep 1; exit 0")), Sidecar("side", "busybox:1", deaf), Container("app", "busybox:1", deaf),
			Container("asks", "busybox:1", rule(corev1.ContainerRestartRuleActionRestartAllContainers, 88))))
		s.pass(10 * time.Second)
		s.rt.KillProcess("web", "asks", 88)
		s.pass(20 * time.Second)
	}},
	{"a sandbox that dies, and a reboot", func(s *sim) {
		s.want(fromFile, s.simPod("web", fromFile, withAll))
		s.pass(10 * time.Second)
		s.touch(func() { s.rt.KillSandbox("web") })
		s.pass(20 * time.Second)
		s.moveReboot()
		s.start(-1)
		s.pass(20 * time.Second)
	}},
}

// withAll gives a pod one of everything.
func withAll(pod *corev1.Pod) {
	for _, opt := range []PodOption{
		InitContainer("first", "busybox:1", Runs("sleep 1; exit 0"), VolumeMount("data", "/data")), Sidecar("side", "busybox:1", Runs("trap 'exit 0' TERM; sleep inf & wait")),
		InitContainer("flaky", "busybox:1"), Container("app", "slow:1", VolumeMount("data", "/data")), Container("more", "busybox:1"),
		Volume("data", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}),
	} {
		opt(pod)
	}
}

// simPod makes a pod whose UID is its name, unless it has another.
func (s *sim) simPod(name string, source int, opts ...PodOption) *corev1.Pod {
	return Pod(name, append([]PodOption{UID(types.UID(name)), Annotation(podmill.AnnotationConfigSource, s.sources()[source])}, opts...)...)
}

// endBy ends a pod within a grace period, in the way of its source.
func (s *sim) endBy(sp *simPod, grace time.Duration) {
	switch {
	case !sp.wanted:
	case s.isAPI(sp.source):
		s.remove(sp, grace)
	default:
		s.unwant(sp)
	}
}

// TestACrashAtEveryCall tells each story again and again, and each time kills the agent at another moment: right before a call that
// changes something takes effect, or right after, so that it never hears of that. Another agent starts at once on what is there.
// All that must hold holds, and in the end all is as it should be. Every moment has its turn with PODMILL_SIM_EVERY=1, else every third.
func TestACrashAtEveryCall(t *testing.T) {
	skipUnderRace(t)
	every := int64(setting(t, "PODMILL_SIM_EVERY", 3)) //nolint:gosec // a small number
	for i, story := range crashStories {
		t.Run(story.name, func(t *testing.T) {
			for at, more := 1+int64(i)%every, true; more; at += every {
				t.Run(fmt.Sprint(at), func(t *testing.T) {
					inSim(t, uint64(at), func(s *sim) { more = crashAt(s, at, story.tell) })
				})
			}
		})
	}
}

// crashAt kills the agent at one moment of a story, and reports whether it came to that.
func crashAt(s *sim, at int64, tell func(*sim)) (hit bool) {
	s.files = at%4 < 2 // half of the calls each, before and after
	var moments atomic.Int64
	s.onCall = func(p *process) {
		if moments.Add(1) == at {
			p.dead.Store(true)
			p.hit <- struct{}{}
		}
	}
	s.start(-1)
	tell(s)
	s.settles(settleWithin, s.unsettled)
	for _, sp := range s.wanted() {
		s.endBy(sp, graceOf(sp.pod))
	}
	s.settles(goneWithin, s.unsettled)
	return moments.Load() >= at
}
