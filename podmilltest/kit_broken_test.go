package podmilltest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// broken is a runtime that breaks one promise.
type broken struct {
	podmill.Runtime
	create  func(*podmill.ContainerSpec)
	sandbox func(*podmill.SandboxSpec)
	inspect func(*podmill.RuntimePod)
	list    func(before []podmill.Item, snap *podmill.Snapshot)
	stop    func(ctx context.Context, id string, grace time.Duration) error
	remove  func(ctx context.Context, id string) error
	start   func(ctx context.Context, id string) error
	exec    func(*podmill.ExecResult) error
}

func (b *broken) Unwrap() podmill.Runtime { return b.Runtime }

func (b *broken) CreateContainer(ctx context.Context, spec *podmill.ContainerSpec) (string, error) {
	if b.create != nil {
		changed := *spec
		b.create(&changed)
		spec = &changed
	}
	return b.Runtime.CreateContainer(ctx, spec)
}

func (b *broken) RunSandbox(ctx context.Context, spec *podmill.SandboxSpec) (string, error) {
	if b.sandbox != nil {
		changed := *spec
		b.sandbox(&changed)
		spec = &changed
	}
	return b.Runtime.RunSandbox(ctx, spec)
}

func (b *broken) InspectPod(ctx context.Context, uid types.UID) (*podmill.RuntimePod, error) {
	seen, err := b.Runtime.InspectPod(ctx, uid)
	if err == nil && b.inspect != nil {
		b.inspect(seen)
	}
	return seen, err
}

func (b *broken) ListPods(ctx context.Context, snap *podmill.Snapshot) error {
	before := slices.Clone(snap.Items)
	err := b.Runtime.ListPods(ctx, snap)
	if err == nil && b.list != nil {
		b.list(before, snap)
	}
	return err
}

func (b *broken) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	if b.stop != nil {
		return b.stop(ctx, id, grace)
	}
	return b.Runtime.StopContainer(ctx, id, grace)
}

func (b *broken) RemoveContainer(ctx context.Context, id string) error {
	if b.remove != nil {
		return b.remove(ctx, id)
	}
	return b.Runtime.RemoveContainer(ctx, id)
}

func (b *broken) StartContainer(ctx context.Context, id string) error {
	if b.start != nil {
		return b.start(ctx, id)
	}
	return b.Runtime.StartContainer(ctx, id)
}

func (b *broken) Exec(ctx context.Context, id string, command []string) (*podmill.ExecResult, error) {
	result, err := b.Runtime.Exec(ctx, id, command)
	if err == nil && b.exec != nil {
		err = b.exec(result)
	}
	return result, err
}

// promises are what a runtime may break, each with the test that has to notice.
func promises(rt *Runtime) map[string]func(*broken) {
	return map[string]func(*broken){
		"ResolvedCommandWins": func(b *broken) {
			b.create = func(s *podmill.ContainerSpec) {
				if len(s.Container.Command) > 0 {
					s.Command = s.Container.Command
				}
			}
		},
		"ResolvedEnvironmentWins": func(b *broken) {
			b.create = func(s *podmill.ContainerSpec) {
				for _, v := range s.Container.Env {
					s.Env = append(s.Env, podmill.EnvVar{Name: v.Name, Value: v.Value})
				}
			}
		},
		"ResolvedImageWins": func(b *broken) {
			b.create = func(s *podmill.ContainerSpec) { s.Image = s.Container.Image }
		},
		"ResolvedUserWins": func(b *broken) {
			b.create = func(s *podmill.ContainerSpec) {
				if c := s.Container.SecurityContext; c != nil {
					s.User = &podmill.User{UID: c.RunAsUser}
				}
			}
		},
		"ResolvedMountsWin": func(b *broken) {
			b.create = func(s *podmill.ContainerSpec) {
				s.Mounts = slices.Clone(s.Mounts)
				for i := range s.Mounts {
					s.Mounts[i].ReadOnly = false
				}
			}
		},
		"ResolvedHostnameAndDNSWin": func(b *broken) {
			b.sandbox = func(s *podmill.SandboxSpec) { s.Hostname = s.Pod.Spec.Hostname }
		},
		"LabelsAndAnnotations": func(b *broken) {
			b.create = func(s *podmill.ContainerSpec) { s.Annotations = nil }
		},
		"ExitCode": func(b *broken) {
			b.inspect = func(p *podmill.RuntimePod) {
				for i := range p.Containers {
					p.Containers[i].ExitCode = min(p.Containers[i].ExitCode, 1)
				}
			}
		},
		"StatesAndTimes": func(b *broken) {
			b.inspect = func(p *podmill.RuntimePod) {
				for i := range p.Containers {
					p.Containers[i].FinishedAt = time.Unix(0, 0) // what a zero on the wire becomes
				}
			}
		},
		"NewestAttemptFirst": func(b *broken) {
			b.inspect = func(p *podmill.RuntimePod) { slices.Reverse(p.Containers) }
		},
		"ContainerAttemptIsUnique": func(b *broken) {
			n := uint32(0)
			b.create = func(s *podmill.ContainerSpec) { n++; s.Attempt += n }
		},
		"SandboxAttemptIsUnique": func(b *broken) {
			n := uint32(0)
			b.sandbox = func(s *podmill.SandboxSpec) { n++; s.Attempt += n }
		},
		"ListAgreesWithInspect": func(b *broken) {
			b.list = func(_ []podmill.Item, snap *podmill.Snapshot) {
				snap.Items = slices.DeleteFunc(snap.Items, func(i podmill.Item) bool { return i.State == podmill.StateExited })
			}
		},
		"SnapshotIsReplaced": func(b *broken) {
			b.list = func(before []podmill.Item, snap *podmill.Snapshot) { snap.Items = append(before, snap.Items...) }
		},
		"StopKillsAfterTheGrace": func(b *broken) {
			b.stop = func(ctx context.Context, id string, grace time.Duration) error {
				return rt.StopContainer(ctx, id, grace/2)
			}
		},
		"StopObeysTheSignal": func(b *broken) {
			b.stop = func(ctx context.Context, id string, _ time.Duration) error { return rt.StopContainer(ctx, id, 0) }
		},
		"StopAgainWithShorterGrace": func(b *broken) {
			var one = make(chan struct{}, 1)
			b.stop = func(ctx context.Context, id string, grace time.Duration) error {
				one <- struct{}{}
				defer func() { <-one }()
				return rt.StopContainer(ctx, id, grace)
			}
		},
		"CancelledStopThenShorterGrace": func(b *broken) {
			b.stop = func(ctx context.Context, id string, grace time.Duration) error {
				return rt.StopContainer(context.WithoutCancel(ctx), id, grace)
			}
		},
		"StopIsIdempotent": func(b *broken) {
			b.stop = func(ctx context.Context, id string, grace time.Duration) error {
				rt.mu.Lock()
				c := rt.containers[id]
				rt.mu.Unlock()
				if c == nil {
					return podmill.ErrNotFound
				}
				return rt.StopContainer(ctx, id, grace)
			}
		},
		"RemoveIsIdempotent": func(b *broken) {
			b.remove = func(ctx context.Context, id string) error {
				rt.mu.Lock()
				c := rt.containers[id]
				rt.mu.Unlock()
				if c == nil {
					return podmill.ErrNotFound
				}
				return rt.RemoveContainer(ctx, id)
			}
		},
		"RemoveStopsFirst": func(b *broken) {
			b.remove = func(ctx context.Context, id string) error {
				rt.mu.Lock()
				running := rt.containers[id] != nil && rt.containers[id].seen.State == podmill.StateRunning
				rt.mu.Unlock()
				if running {
					return errors.New("it is running")
				}
				return rt.RemoveContainer(ctx, id)
			}
		},
		"NotFound": func(b *broken) {
			b.start = func(ctx context.Context, id string) error {
				if err := rt.StartContainer(ctx, id); err != nil {
					return errors.New("could not start it")
				}
				return nil
			}
		},
		"Exec": func(b *broken) {
			b.exec = func(r *podmill.ExecResult) error {
				if r.ExitCode != 0 {
					return errors.New("it failed")
				}
				return nil
			}
		},
		"Addresses": func(b *broken) {
			b.inspect = func(p *podmill.RuntimePod) {
				for i := range p.Sandboxes {
					p.Sandboxes[i].IPs = []string{"10.0.0.1"}
				}
			}
		},
	}
}

const breakEnv = "PODMILLTEST_BREAK"

// TestKitOnBrokenRuntimes fails, in a process that TestKitNoticesABrokenPromise starts.
func TestKitOnBrokenRuntimes(t *testing.T) {
	if os.Getenv(breakEnv) == "" {
		t.Skip("runs below TestKitNoticesABrokenPromise")
	}
	for _, test := range runtimeTests() {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := memoryEnv(t)
				rt := env.Runtime.(*Runtime)
				b := &broken{Runtime: rt}
				if breakIt := promises(rt)[test.name]; breakIt != nil {
					breakIt(b)
				}
				env.Runtime = b
				test.run(newRuntimeKit(t, env))
			})
		})
	}
}

func TestKitNoticesABrokenPromise(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKitOnBrokenRuntimes$", "-test.v")
	cmd.Env = append(os.Environ(), breakEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("broken runtimes pass:\n%s", out)
	}
	breaks := promises(nil)
	for _, test := range runtimeTests() {
		verdict := "PASS"
		if breaks[test.name] != nil {
			verdict = "FAIL"
		}
		if !strings.Contains(string(out), "--- "+verdict+": TestKitOnBrokenRuntimes/"+test.name+" ") {
			t.Errorf("%s: want %s", test.name, verdict)
		}
		delete(breaks, test.name)
	}
	if len(breaks) > 0 {
		t.Errorf("no test has the name of %v", breaks)
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}
