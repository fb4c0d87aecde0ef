package agent_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// TestSimulation runs the whole agent, again and again, in a world where everything goes wrong: calls fail, hang, lose their replies and take
// effect when their caller has gone; listings are stale and leave things out, event streams break and lose events; processes die, sandboxes
// and containers vanish, the machine reboots; sources want other things all the time, one of them is silent; the sink is slow; the agent
// crashes at any moment. All the while what must hold is checked of each call that reaches the runtime and each status that is told, and when
// the faults stop everything has to become what the sources want, and then, when they want nothing any more, nothing.
//
// Every choice is made by a seed. What goes on side by side in an agent is not, so that a seed may need a few runs to show what it once showed:
//
//	PODMILL_SIM_SEED=17 PODMILL_SIM_RUNS=1 go test -run TestSimulation ./agent
func TestSimulation(t *testing.T) {
	skipUnderRace(t)
	first, runs := setting(t, "PODMILL_SIM_SEED", 1), setting(t, "PODMILL_SIM_RUNS", 12)
	began := time.Now()
	var total figures
	for seed := first; seed < first+runs; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { inSim(t, seed, func(s *sim) { total.add(simulate(s)) }) })
	}
	t.Logf("%d runs, %v of virtual time in %v; %d calls; everything settled within %v, was gone within %v",
		runs, total.virtual.Round(time.Second), time.Since(began).Round(time.Millisecond), total.calls, total.settled, total.gone)
}

// skipUnderRace skips a simulation under the race detector, unless it is asked for: so many timers of virtual time crash the detector itself now
// and then (golang/go#78156).
func skipUnderRace(t *testing.T) {
	t.Helper()
	if _, asked := os.LookupEnv("PODMILL_SIM_RACE"); underRace && !asked {
		t.Skip("the simulation runs without the race detector, or with PODMILL_SIM_RACE set")
	}
}

// figures are what the runs came to; of times the longest.
type figures struct {
	virtual, settled, gone time.Duration
	calls                  int
}

func (f *figures) add(g figures) {
	f.virtual += g.virtual
	f.calls += g.calls
	f.settled, f.gone = max(f.settled, g.settled), max(f.gone, g.gone)
}

func setting(t *testing.T, name string, otherwise uint64) uint64 {
	value, ok := os.LookupEnv(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// simulate is one run.
func simulate(s *sim) (f figures) {
	began := time.Now()
	s.files = chance(s.rng, 2)
	s.honest = !chance(s.rng, 5)
	s.latency = pick(s.rng, []time.Duration{0, 0, 5 * time.Millisecond, 150 * time.Millisecond})
	s.quiet = chance(s.rng, 4)
	if chance(s.rng, 3) {
		s.onCall = func(p *process) { p.killed(100) }
	}
	s.start(s.silent())
	for range 20 + s.rng.IntN(40) {
		s.pass(s.pause(pick(s.rng, []time.Duration{0, 100 * time.Millisecond, 2 * time.Second, 30 * time.Second, 10 * time.Minute})))
		s.poll()
		s.move()
		if s.honest {
			s.check()
		}
	}
	s.onCall = nil
	s.calm()
	f.settled = s.settles(settleWithin, s.unsettled)
	s.check()
	s.restarts()
	idle := runtime.NumGoroutine()
	s.pass(time.Minute)
	for _, sp := range s.wanted() {
		if s.isAPI(sp.source) {
			s.remove(sp, graceOf(sp.pod))
		} else {
			s.unwant(sp)
		}
	}
	f.gone = s.settles(goneWithin, s.unsettled)
	s.pass(time.Second)
	if n := runtime.NumGoroutine(); n > idle+2 {
		s.Errorf("%d goroutines for no pod, and %d were enough for all that ran\n%s", n, idle, stacks())
	}
	s.crash(false)
	f.virtual = time.Since(began)
	for _, n := range s.rt.Log().Counts() {
		f.calls += n
	}
	return f
}

// restarts has the agent restarted when all is as it should be: nothing may be touched, and everything stays as it should be.
func (s *sim) restarts() {
	s.pass(goneWithin) // a pod that was put back while it ended looks as it should until its end is through
	s.settles(settleWithin, s.unsettled)
	s.mu.Lock()
	for _, sp := range s.pods {
		sp.strayed, sp.unsure = time.Time{}, sp.unsure && s.histories[sp.pod.UID].over()
	}
	s.mu.Unlock()
	s.crash(chance(s.rng, 2))
	s.start(-1)
	s.settles(5*time.Second, s.unsettled)
	s.check()
}
