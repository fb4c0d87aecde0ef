package agent_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	. "github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/sandbox"
)

// sim is a world that an agent has a hard time in: what the sources want, what the runtime truly holds, and what was broken of all that
// must hold. The agent comes and goes; the world stays.
type sim struct {
	*testing.T
	seed   uint64
	rng    *rand.Rand // of the goroutine that moves the world
	rt     *Runtime
	mounts *VolumeMounter
	root   string
	// files says that statuses go to files and volumes are directories, as by default. Else statuses go to an API that keeps them, and that
	// one of the sources is, and volumes are in memory.
	files bool
	// honest says that InspectPod tells the truth, if anything. Where it does not, an agent cannot keep most promises, and has only to
	// find back.
	honest  bool
	quiet   bool             // the runtime has no events
	latency time.Duration    // of each call that changes something, before it takes effect and after
	free    chan struct{}    // closed when what hangs goes on
	process *process         // nil while no agent runs
	started time.Time        // when the last one came
	onCall  func(p *process) // for each call that changes something, before and after it does
	strays  sync.WaitGroup   // calls whose caller may have gone

	mu        sync.Mutex
	troubled  bool // things go wrong around the runtime: volumes, the sink, calls whose caller has gone
	pods      map[types.UID]*simPod
	instances map[string]*instance // of containers, by ID
	histories map[types.UID]*history
	calls     map[string]uint64 // for luck
	broken    []string
}

// The sources, by number.
const (
	fromFile = iota
	// other is the API where there is one, and another source of static pods where there is none.
	other
)

// sources are the sources' names.
func (s *sim) sources() []string {
	if s.files {
		return []string{"file", "http"}
	}
	return []string{"file", "api"}
}

// isAPI reports that a source is the API: it holds a pod until its deletion was confirmed.
func (s *sim) isAPI(source int) bool { return source == other && !s.files }

// process is one life of the agent.
type process struct {
	*sim
	agent   *agent.Agent
	faulty  *FaultyRuntime
	sources []*PodSource
	heard   []time.Time          // when each source was; zero for one that was not; under mu
	follows []bool               // the agent runs the source; under mu
	asked   map[string]time.Time // when a container was last told to stop, by ID; under mu
	dead    atomic.Bool          // nothing that it still does takes effect
	hit     chan struct{}        // holds a token when a call has killed it
	cancel  context.CancelFunc
	ended   chan error
}

var (
	errDead  = errors.New("the process is no more")
	errReply = errors.New("rpc error: code = DeadlineExceeded desc = context deadline exceeded")
)

// inSim runs a test in a world of its own, and fails with the story if anything was broken.
func inSim(t *testing.T, seed uint64, test func(*sim)) {
	t.Helper()
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, seed, root)
		defer s.rt.Close()
		defer s.strays.Wait()
		defer s.crash(false)
		test(s)
		s.check()
	})
}

func newSim(t *testing.T, seed uint64, root string) *sim {
	rt := NewRuntime(
		WithImages(ScriptImage("busybox:1", "sleep inf"), ScriptImage("busybox:2", "sleep inf")),
		WithRegistry(
			RemoteImage{Image: Image{Ref: "slow:1"}, Takes: 3 * time.Second},
			RemoteImage{Image: Image{Ref: "absent:1"}, Err: errors.New("manifest unknown")}),
		WithScript("flaky", "sleep 1; exit 1", "sleep 1; exit 0"),
		WithScript("shaky", "sleep 1; exit 2", "sleep 2; exit 0", "sleep inf"))
	return &sim{
		T: t, seed: seed, root: root, rng: rand.New(rand.NewPCG(seed, 42)), honest: true, free: make(chan struct{}),
		rt: rt, mounts: NewVolumeMounter(filepath.Join(root, "volumes")),
		pods: map[types.UID]*simPod{}, instances: map[string]*instance{}, histories: map[types.UID]*history{}, calls: map[string]uint64{},
	}
}

// start starts an agent. A silent source, by its number, is not heard yet; -1 is none.
func (s *sim) start(silent int, faults ...Fault) {
	s.Helper()
	p := &process{sim: s, heard: make([]time.Time, len(s.sources())), follows: make([]bool, len(s.sources())), hit: make(chan struct{}, 1), ended: make(chan error, 1), asked: map[string]time.Time{}}
	p.faulty = Faulty(&ground{Runtime: s.rt, p: p}, faults...)
	var sources []podmill.PodSource
	for i, name := range s.sources() {
		p.sources = append(p.sources, NewPodSource(name))
		sources = append(sources, &simSource{p.sources[i], p, i})
	}
	opts := []agent.Option{agent.WithSandboxOptions(sandbox.WithResolvConf(""))}
	if !s.files {
		opts = append(opts, agent.WithStatusSink(&simSink{p}), agent.WithVolumes(&simVolumes{p}))
	}
	a, err := agent.New(&facade{p.faulty, p}, s.root, sources, opts...)
	if err != nil {
		s.Fatal(err)
	}
	s.process, p.agent, s.started = p, a, time.Now()
	if silent < 0 {
		s.note("the agent starts")
	} else {
		s.note("the agent starts, and source %s is silent", s.sources()[silent])
	}
	s.mu.Lock()
	for _, sp := range s.pods {
		if sp.wanted {
			s.adopt(sp)
		}
	}
	s.mu.Unlock()
	for i := range s.sources() {
		if i != silent {
			s.speak(i)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() { p.ended <- a.Run(ctx) }()
}

// crash ends the agent: as a signal does or, hard, as kill -9. Then nothing that it still does takes effect.
func (s *sim) crash(hard bool) {
	p := s.process
	if p == nil {
		return
	}
	s.process = nil
	var disk tree
	if hard {
		s.note("the agent is killed")
		p.dead.Store(true)
		disk = readTree(s.T, s.root)
	} else {
		s.note("the agent is told to end")
	}
	p.cancel()
	if err := <-p.ended; err != nil && !hard {
		s.Errorf("the agent ended with: %v", err)
	}
	p.dead.Store(true)
	if hard {
		disk.restore(s.T, s.root)
	}
	s.look()
}

// pass lets time pass. An agent that a call kills meanwhile is followed by another at once.
func (s *sim) pass(d time.Duration) {
	over := time.After(d)
	for {
		var hit chan struct{}
		if s.process != nil {
			hit = s.process.hit
		}
		select {
		case <-hit:
			s.crash(true)
			s.start(-1)
		case <-over:
			synctest.Wait()
			s.look()
			return
		}
	}
}

// note tells the story what the world does.
func (s *sim) note(format string, args ...any) { s.rt.Log().Note("== "+format, args...) }

// breach notes that something was broken that must hold. Callers hold mu.
func (s *sim) breach(invariant int, format string, args ...any) {
	line := fmt.Sprintf("invariant %d: %s", invariant, fmt.Sprintf(format, args...))
	s.rt.Log().Note("!! %s", line)
	if os.Getenv("PODMILL_SIM_STACK") != "" {
		line += "\n" + string(debug.Stack())
	}
	s.broken = append(s.broken, line)
}

// check ends the test if anything was broken.
func (s *sim) check() {
	s.Helper()
	s.mu.Lock()
	broken := s.broken
	s.mu.Unlock()
	if len(broken) > 0 {
		s.Fatalf("%s\n%s", strings.Join(broken, "\n"), s.story())
	}
}

// story is what happened, without what goes on all the time.
func (s *sim) story() string {
	var b strings.Builder
	for line := range strings.Lines(s.rt.Log().String()) {
		_, what, _ := strings.Cut(line, " ")
		if !strings.HasPrefix(what, "StreamEvents") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// luck is true once in so many times that something is done, by the seed, what it is, and how often it was done before.
func (s *sim) luck(oneIn int, what string) bool {
	s.calls[what]++
	return rand.New(rand.NewPCG(s.seed, hash(fmt.Sprint(what, s.calls[what])))).IntN(oneIn) == 0
}
