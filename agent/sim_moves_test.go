package agent_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
	. "github.com/podmill/podmill/podmilltest"
)

// maxPods is how many pods are wanted at a time.
const maxPods = 5

// move makes one thing happen in the world.
func (s *sim) move() {
	switch n := s.rng.IntN(100); {
	case n < 18:
		s.moveAdd()
	case n < 24:
		s.moveEdit()
	case n < 32:
		s.moveReplace()
	case n < 44:
		s.moveRemove()
	case n < 49:
		s.moveFlip()
	case n < 70:
		s.moveHand()
	case n < 72:
		s.moveReboot()
	case n < 80:
		s.moveCrash()
	case n < 92:
		s.moveFaults()
	case n < 96:
		s.moveTrouble()
	case n < 98:
		s.moveNetwork()
	default:
		s.rt.BreakStreams(errors.New("the runtime restarts"))
	}
	if s.process == nil && chance(s.rng, 2) {
		s.start(s.silent(), s.faults()...)
	} else if chance(s.rng, 4) {
		s.speak(s.rng.IntN(len(s.sources())))
	}
}

// the pods that are wanted, in order.
func (s *sim) wanted() []*simPod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pods []*simPod
	for _, sp := range s.pods {
		if sp.wanted {
			pods = append(pods, sp)
		}
	}
	slices.SortFunc(pods, func(a, b *simPod) int { return cmp.Compare(a.pod.UID, b.pod.UID) })
	return pods
}

// any returns a wanted pod that meets the condition, nil if there is none.
func (s *sim) any(is func(*simPod) bool) *simPod {
	pods := slices.DeleteFunc(s.wanted(), func(sp *simPod) bool { return !is(sp) })
	if len(pods) == 0 {
		return nil
	}
	return pick(s.rng, pods)
}

func (s *sim) newUID(name string) types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return types.UID(fmt.Sprintf("%s-%d", name, len(s.pods)))
}

func (s *sim) moveAdd() {
	pods := s.wanted()
	if len(pods) >= maxPods {
		return
	}
	source := s.rng.IntN(len(s.sources()))
	name := fmt.Sprintf("%s%d", s.sources()[source], s.rng.IntN(maxPods))
	if slices.ContainsFunc(pods, func(sp *simPod) bool { return sp.pod.Name == name }) {
		return
	}
	if !s.isAPI(source) && chance(s.rng, 2) { // one that was there before: the same manifest has the same UID
		s.mu.Lock()
		var former []*simPod
		for _, uid := range slices.Sorted(maps.Keys(s.pods)) {
			if sp := s.pods[uid]; sp.pod.Name == name && !sp.wanted {
				former = append(former, sp)
			}
		}
		s.mu.Unlock()
		if len(former) > 0 {
			s.want(source, pick(s.rng, former).pod)
			return
		}
	}
	s.want(source, randomPod(s.rng, name, s.newUID(name), s.sources()[source]))
}

func (s *sim) moveEdit() {
	sp := s.any((*simPod).desired)
	if sp == nil {
		return
	}
	s.edit(sp, func(pod *corev1.Pod) {
		c := &pod.Spec.Containers[s.rng.IntN(len(pod.Spec.Containers))]
		if chance(s.rng, 2) {
			asks(c, 10+s.rng.Int64N(500))
		} else {
			c.Image = pick(s.rng, good)
		}
	}, Label("edited", fmt.Sprint(time.Now().Unix())))
}

// moveReplace has a new pod in place of one of the same name.
func (s *sim) moveReplace() {
	sp := s.any((*simPod).desired)
	if sp == nil {
		return
	}
	next := randomPod(s.rng, sp.pod.Name, s.newUID(sp.pod.Name), s.sources()[sp.source])
	s.unwant(sp)
	s.want(sp.source, next)
}

func (s *sim) moveRemove() {
	sp := s.any(func(*simPod) bool { return true })
	switch {
	case sp == nil:
	case !s.isAPI(sp.source) || chance(s.rng, 6):
		s.unwant(sp)
	case sp.desired():
		s.remove(sp, pick(s.rng, []time.Duration{graceOf(sp.pod), graceOf(sp.pod), time.Second, 0}))
	default:
		s.remove(sp, min(graceOf(sp.pod), time.Second))
	}
}

// moveFlip has a static pod taken away and put back, again and again.
func (s *sim) moveFlip() {
	sp := s.any(func(sp *simPod) bool { return !s.isAPI(sp.source) })
	if sp == nil {
		return
	}
	for range 1 + s.rng.IntN(3) {
		s.unwant(sp)
		s.pass(s.pause(time.Second))
		s.want(sp.source, sp.pod)
		s.pass(s.pause(time.Second))
	}
}

func (s *sim) moveHand() {
	sp := s.any(func(*simPod) bool { return true })
	if sp == nil {
		return
	}
	var names []string
	for c := range lifecycle.Containers(sp.pod) {
		names = append(names, c.Name)
	}
	uid, name := sp.pod.UID, pick(s.rng, names)
	s.look()
	switch s.rng.IntN(9) {
	case 0, 1:
		s.rt.KillProcess(uid, name, 1)
	case 2:
		s.rt.KillProcess(uid, name, 0)
	case 3:
		s.rt.OOM(uid, name)
	case 4, 5:
		s.rt.RemoveBehindBack(uid, name)
	case 6:
		s.touch(func() { s.rt.KillSandbox(uid) })
	case 7:
		s.touch(func() { s.rt.RemovePodBehindBack(uid) })
	case 8:
		s.touch(func() { s.lose(uid, name) })
	}
}

// lose makes the runtime lose track of a container that ever ran.
func (s *sim) lose(uid types.UID, name string) {
	if c := s.heldOf(uid).Container(name); c != nil && !c.StartedAt.IsZero() && c.FinishedAt.IsZero() {
		s.rt.LoseTrack(uid, name)
	}
}

func (s *sim) moveReboot() {
	s.crash(true)
	s.touch(s.rt.Reboot)
}

// touch does something for which the agent may stop whatever runs.
func (s *sim) touch(do func()) {
	s.mu.Lock()
	for _, sp := range s.pods {
		sp.touched = time.Now()
	}
	s.mu.Unlock()
	do()
}

func (s *sim) moveCrash() {
	s.crash(chance(s.rng, 2))
	s.pass(s.pause(pick(s.rng, []time.Duration{0, time.Second, time.Minute})))
	if chance(s.rng, 2) {
		s.start(s.silent(), s.faults()...)
	}
}

// silent is a source that is not heard at first, -1 for none.
func (s *sim) silent() int { return pick(s.rng, []int{-1, -1, -1, -1, fromFile, other}) }

func (s *sim) moveTrouble() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.troubled = !s.troubled; s.troubled {
		s.note("volumes, statuses and strays make trouble")
	} else {
		s.note("the trouble is over")
	}
}

// moveNetwork takes the network away, or gives it back.
func (s *sim) moveNetwork() {
	status := podmill.RuntimeStatus{Name: "podmilltest", RuntimeReady: podmill.Condition{OK: true}}
	if status.NetworkReady.OK = chance(s.rng, 2); !status.NetworkReady.OK {
		status.NetworkReady = podmill.Condition{Reason: "NetworkPluginNotReady", Message: "cni plugin not initialized"}
	}
	s.note("network ready: %v", status.NetworkReady.OK)
	s.rt.SetStatus(status)
}

func (s *sim) moveFaults() {
	if s.process == nil {
		return
	}
	s.process.faulty.Clear()
	s.process.faulty.Add(s.faults()...)
}

// faults are some that go wrong from now on.
func (s *sim) faults() []Fault {
	var faults []Fault
	for range s.rng.IntN(5) {
		f := Fault{On: pick(s.rng, simOps), OneIn: pick(s.rng, []int{1, 2, 2, 3, 5}), Seed: s.rng.Uint64()}
		d := s.pause(10 * time.Second)
		effects := []Effect{Fail(errReply), LoseReply(errReply), Slow(d), Late(d), Hang(s.free)}
		switch f.On {
		case OpListPods:
			effects = append(effects, Stale(), Omit(), Stale(), Omit())
		case OpStreamEvents:
			effects = []Effect{Fail(errReply), Omit(), Omit(), Slow(d)}
		case OpInspectPod:
			if !s.honest {
				effects = []Effect{Stale(), Omit(), Fail(errReply)}
			}
		}
		f.Effect = pick(s.rng, effects)
		if f.On == OpListPods || f.On == OpInspectPod {
			f.Times = 1 + s.rng.IntN(20)
		}
		if pods := s.wanted(); len(pods) > 0 && chance(s.rng, 3) && f.On != OpStreamEvents {
			f.Pod = pick(s.rng, pods).pod.UID
		}
		faults = append(faults, f)
		s.note("from now on %s of %q %s, one in %d", f.On, f.Pod, f.Name, f.OneIn)
	}
	return faults
}

var simOps = []Op{
	OpListPods, OpInspectPod, OpInspectPod, OpRunSandbox, OpStopSandbox, OpRemoveSandbox, OpCreateContainer, OpCreateContainer,
	OpStartContainer, OpStartContainer, OpStopContainer, OpStopContainer, OpRemoveContainer, OpPullImage, OpInspectImage, OpStreamEvents, OpStreamEvents, OpRuntimeStatus, OpExec,
}

// pause is a random time, mostly much shorter than most.
func (s *sim) pause(most time.Duration) time.Duration {
	if most == 0 {
		return 0
	}
	d := time.Duration(s.rng.Int64N(int64(most)))
	return d >> s.rng.IntN(12)
}
