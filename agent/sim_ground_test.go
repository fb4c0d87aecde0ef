package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	. "github.com/podmill/podmill/podmilltest"
)

// ground is what lies between the faults and the runtime, for one process: here one sees what an agent truly does. Calls take their time
// here, go on when their caller has gone, and come to nothing when the process is dead.
type ground struct {
	*Runtime
	p *process
}

// Unwrap returns the runtime.
func (g *ground) Unwrap() podmill.Runtime { return g.Runtime }

// facade is what the agent is given: above the faults, where one sees when it asked for something.
type facade struct {
	*FaultyRuntime
	p *process
}

// StopContainer implements [podmill.ContainerRunner].
func (f *facade) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	f.p.mu.Lock()
	f.p.asked[id] = time.Now()
	f.p.mu.Unlock()
	return f.FaultyRuntime.StopContainer(ctx, id, grace)
}

// StreamEvents implements [podmill.EventStreamer], unless the runtime has no events.
func (g *ground) StreamEvents(ctx context.Context, connected func(), on func(podmill.RuntimeEvent)) error {
	if g.p.quiet {
		return errors.ErrUnsupported
	}
	return g.Runtime.StreamEvents(ctx, connected, on)
}

// do makes a call that changes something of a pod, and returns its answer.
func (g *ground) do(ctx context.Context, op Op, uid types.UID, container string, call func(context.Context) (string, error)) (string, error) {
	s, what := g.p.sim, strings.TrimSpace(fmt.Sprint(op, " ", uid, " ", container))
	s.mu.Lock()
	stray := s.troubled && op != OpStopContainer && s.luck(6, what)
	s.mu.Unlock()
	if !stray {
		return g.through(ctx, call)
	}
	// The caller may give up, and the call takes effect all the same, perhaps in the life of another agent.
	type answer struct {
		id  string
		err error
	}
	done := make(chan answer, 1)
	s.strays.Go(func() {
		time.Sleep(s.latency + 700*time.Millisecond)
		if ctx.Err() != nil {
			s.rt.Log().Note("fault: %s takes effect without its caller", what)
			s.strayAt(uid)
		}
		id, err := call(context.WithoutCancel(ctx))
		done <- answer{id, err}
	})
	select {
	case a := <-done:
		return a.id, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (g *ground) through(ctx context.Context, call func(context.Context) (string, error)) (string, error) {
	if err := g.pause(ctx); err != nil {
		return "", err
	}
	g.tell(ctx)
	if g.p.dead.Load() {
		return "", errDead
	}
	id, err := call(ctx)
	g.tell(ctx)
	if err == nil {
		err = g.pause(ctx)
	}
	if g.p.dead.Load() {
		return "", errDead
	}
	return id, err
}

// tell gives a test the chance to kill the process at this very moment; then nothing returns to it.
func (g *ground) tell(ctx context.Context) {
	if g.p.onCall == nil || g.p.dead.Load() {
		return
	}
	g.p.onCall(g.p)
	if g.p.dead.Load() {
		<-ctx.Done()
	}
}

// killed kills the process once in so many calls.
func (p *process) killed(oneIn int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead.Load() && p.luck(oneIn, "killed") {
		p.dead.Store(true)
		p.hit <- struct{}{}
	}
}

func (g *ground) pause(ctx context.Context) error {
	if g.p.latency == 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(g.p.latency):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// judge judges a call that an agent makes which is still alive, and wants it.
func (g *ground) judge(ctx context.Context, how func(*sim)) {
	if ctx.Err() != nil || g.p.dead.Load() {
		return
	}
	g.p.look()
	g.p.mu.Lock()
	defer g.p.mu.Unlock()
	how(g.p.sim)
}

// RunSandbox implements [podmill.SandboxRunner].
func (g *ground) RunSandbox(ctx context.Context, spec *podmill.SandboxSpec) (id string, err error) {
	uid := spec.Pod.UID
	wrong := ""
	g.judge(ctx, func(s *sim) { wrong = s.judgeRun(g.p, uid) })
	return g.do(ctx, OpRunSandbox, uid, "", func(ctx context.Context) (string, error) {
		id, err := g.Runtime.RunSandbox(ctx, spec)
		if err == nil && wrong != "" {
			g.judge(ctx, func(s *sim) { s.breach(1, "%s", wrong) })
		}
		return id, err
	})
}

// StopSandbox implements [podmill.SandboxRunner].
func (g *ground) StopSandbox(ctx context.Context, id string) error {
	uid := g.p.podOfSandbox(id)
	g.judge(ctx, func(s *sim) {
		s.judgeTakeAway(g.p, uid, "StopSandbox", func(i *instance) bool { return i.sandbox == id })
	})
	_, err := g.do(ctx, OpStopSandbox, uid, "", func(ctx context.Context) (string, error) { return "", g.Runtime.StopSandbox(ctx, id) })
	return err
}

// RemoveSandbox implements [podmill.SandboxRunner].
func (g *ground) RemoveSandbox(ctx context.Context, id string) error {
	uid := g.p.podOfSandbox(id)
	g.judge(ctx, func(s *sim) {
		s.judgeTakeAway(g.p, uid, "RemoveSandbox", func(i *instance) bool { return i.sandbox == id })
	})
	_, err := g.do(ctx, OpRemoveSandbox, uid, "", func(ctx context.Context) (string, error) {
		g.p.look() // or nobody would ever know how they ended
		return "", g.Runtime.RemoveSandbox(ctx, id)
	})
	return err
}

// CreateContainer implements [podmill.ContainerRunner].
func (g *ground) CreateContainer(ctx context.Context, spec *podmill.ContainerSpec) (id string, err error) {
	uid, name := spec.Sandbox.Pod.UID, spec.Container.Name
	i := g.p.instanceFor(spec)
	g.judge(ctx, func(s *sim) { s.judgeCreate(g.p, i) })
	return g.do(ctx, OpCreateContainer, uid, name, func(ctx context.Context) (string, error) {
		id, err := g.Runtime.CreateContainer(ctx, spec)
		if err == nil {
			g.p.made(id, i)
		}
		return id, err
	})
}

// StartContainer implements [podmill.ContainerRunner].
func (g *ground) StartContainer(ctx context.Context, id string) error {
	i := g.p.instance(id)
	g.judge(ctx, func(s *sim) { s.judgeStart(g.p, i) })
	_, err := g.do(ctx, OpStartContainer, i.pod, i.name, func(ctx context.Context) (string, error) {
		err := g.Runtime.StartContainer(ctx, id)
		if err == nil {
			g.p.startedNow(i)
		}
		return "", err
	})
	return err
}

// Exec implements [podmill.Execer]. A process may be killed around a hook's, as around any call that changes something.
func (g *ground) Exec(ctx context.Context, id string, command []string) (*podmill.ExecResult, error) {
	hook := isHook(command)
	if hook {
		g.tell(ctx)
	}
	result, err := g.Runtime.Exec(ctx, id, command)
	if hook {
		g.tell(ctx)
	}
	return result, err
}

// StopContainer implements [podmill.ContainerRunner].
func (g *ground) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	i := g.p.instance(id)
	g.judge(ctx, func(s *sim) { s.judgeStop(g.p, i, grace) })
	_, err := g.do(ctx, OpStopContainer, i.pod, i.name, func(ctx context.Context) (string, error) {
		return "", g.Runtime.StopContainer(ctx, id, grace)
	})
	return err
}

// RemoveContainer implements [podmill.ContainerRunner].
func (g *ground) RemoveContainer(ctx context.Context, id string) error {
	i := g.p.instance(id)
	g.judge(ctx, func(s *sim) {
		s.judgeTakeAway(g.p, i.pod, "RemoveContainer", func(o *instance) bool { return o == i })
		s.judgeReason(i)
	})
	_, err := g.do(ctx, OpRemoveContainer, i.pod, i.name, func(ctx context.Context) (string, error) {
		g.p.look()
		err := g.Runtime.RemoveContainer(ctx, id)
		if err == nil {
			g.p.restarted(i)
		}
		return "", err
	})
	return err
}
