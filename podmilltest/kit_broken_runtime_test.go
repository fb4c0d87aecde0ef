package podmilltest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/podmill/podmill"
)

// promise is something that a runtime breaks, and the test of the kit that has to notice.
type promise struct {
	test    string
	breakIt func(b *broken, rt *Runtime)
}

func promises() map[string]promise {
	all := resolvedPromises()
	for _, more := range []map[string]promise{lifePromises(), stopPromises(), lookPromises(), imagePromises()} {
		for name, p := range more {
			all[name] = p
		}
	}
	return all
}

// creates is a runtime that takes a container's spec for something else.
func creates(test string, change func(*podmill.ContainerSpec)) promise {
	return promise{test, func(b *broken, _ *Runtime) { b.create = change }}
}

// runs is a runtime that takes a sandbox's spec for something else.
func runs(test string, change func(*podmill.SandboxSpec)) promise {
	return promise{test, func(b *broken, _ *Runtime) { b.sandbox = change }}
}

// shows is a runtime that shows each container otherwise than it is.
func shows(test string, change func(*podmill.Container)) promise {
	return promise{test, func(b *broken, _ *Runtime) {
		b.inspect = func(p *podmill.RuntimePod) {
			for i := range p.Containers {
				change(&p.Containers[i])
			}
		}
	}}
}

// showsSandbox is the same for sandboxes.
func showsSandbox(test string, change func(*podmill.Sandbox)) promise {
	return promise{test, func(b *broken, _ *Runtime) {
		b.inspect = func(p *podmill.RuntimePod) {
			for i := range p.Sandboxes {
				change(&p.Sandboxes[i])
			}
		}
	}}
}

func resolvedPromises() map[string]promise {
	return map[string]promise{
		"command of the pod": creates("ResolvedCommandWins", func(s *podmill.ContainerSpec) {
			if len(s.Container.Command) > 0 {
				s.Command = s.Container.Command
			}
		}),
		"arguments of the pod": creates("ResolvedCommandWins", func(s *podmill.ContainerSpec) {
			if len(s.Container.Args) > 0 {
				s.Args = s.Container.Args
			}
		}),
		"environment of the pod": creates("ResolvedEnvironmentWins", func(s *podmill.ContainerSpec) {
			for _, v := range s.Container.Env {
				s.Env = append(s.Env, podmill.EnvVar{Name: v.Name, Value: v.Value})
			}
		}),
		"first variable wins":          creates("ResolvedEnvironmentWins", func(s *podmill.ContainerSpec) { slices.Reverse(s.Env) }),
		"working directory of the pod": creates("ResolvedEnvironmentWins", func(s *podmill.ContainerSpec) { s.WorkingDir = s.Container.WorkingDir }),
		"image of the pod":             creates("ResolvedImageWins", func(s *podmill.ContainerSpec) { s.Image = s.Container.Image }),
		"user of the pod": creates("ResolvedUserWins", func(s *podmill.ContainerSpec) {
			if c := s.Container.SecurityContext; c != nil {
				s.User = &podmill.User{UID: c.RunAsUser}
			}
		}),
		"read-only mounts are not": creates("ResolvedMountsWin", func(s *podmill.ContainerSpec) {
			s.Mounts = slices.Clone(s.Mounts)
			for i := range s.Mounts {
				s.Mounts[i].ReadOnly = false
			}
		}),
		"hostname of the pod": runs("ResolvedHostnameAndDNSWin", func(s *podmill.SandboxSpec) { s.Hostname = s.Pod.Spec.Hostname }),
		"no DNS":              runs("ResolvedHostnameAndDNSWin", func(s *podmill.SandboxSpec) { s.DNS = nil }),
		"log path of its own": creates("Logs", func(s *podmill.ContainerSpec) { s.LogPath = "other.log" }),
	}
}

func lifePromises() map[string]promise {
	return map[string]promise{
		"attempts are not unique": {"ContainerAttemptIsUnique", func(b *broken, _ *Runtime) {
			n := uint32(0)
			b.create = func(s *podmill.ContainerSpec) { n++; s.Attempt += n }
		}},
		"attempts of sandboxes are not unique": {"SandboxAttemptIsUnique", func(b *broken, _ *Runtime) {
			n := uint32(0)
			b.sandbox = func(s *podmill.SandboxSpec) { n++; s.Attempt += n }
		}},
		"starts again": {"StartsOnce", func(b *broken, rt *Runtime) {
			b.start = func(ctx context.Context, id string) error { _ = rt.StartContainer(ctx, id); return nil }
		}},
		"another error for what is not there": {"NotFound", func(b *broken, rt *Runtime) {
			b.start = func(ctx context.Context, id string) error {
				if err := rt.StartContainer(ctx, id); err != nil {
					return errors.New("could not start it")
				}
				return nil
			}
		}},
		"exit codes are yes and no": shows("ExitCode", func(c *podmill.Container) { c.ExitCode = min(c.ExitCode, 1) }),
		"times of 1970": shows("StatesAndTimes", func(c *podmill.Container) {
			if c.FinishedAt.IsZero() {
				c.FinishedAt = time.Unix(0, 0)
			}
		}),
		"created is running": shows("StatesAndTimes", func(c *podmill.Container) {
			if c.State == podmill.StateCreated {
				c.State = podmill.StateRunning
			}
		}),
		"created now":             shows("StatesAndTimes", func(c *podmill.Container) { c.CreatedAt = time.Now() }),
		"sandbox is always ready": showsSandbox("Lifecycle", func(s *podmill.Sandbox) { s.Ready = true }),
		"removed by half": {"Lifecycle", func(b *broken, rt *Runtime) {
			b.removeSandbox = rt.StopSandbox
		}},
	}
}

func stopPromises() map[string]promise {
	type stop = func(ctx context.Context, id string, grace time.Duration) error
	stops := func(test string, change func(rt *Runtime) stop) promise {
		return promise{test, func(b *broken, rt *Runtime) { b.stop = change(rt) }}
	}
	return map[string]promise{
		"kills early": stops("StopKillsAfterTheGrace", func(rt *Runtime) stop {
			return func(ctx context.Context, id string, grace time.Duration) error {
				return rt.StopContainer(ctx, id, grace/2)
			}
		}),
		"kills at once": stops("StopObeysTheSignal", func(rt *Runtime) stop {
			return func(ctx context.Context, id string, _ time.Duration) error { return rt.StopContainer(ctx, id, 0) }
		}),
		"always waits": stops("StopWithoutGraceKills", func(rt *Runtime) stop {
			return func(ctx context.Context, id string, grace time.Duration) error {
				return rt.StopContainer(ctx, id, max(grace, time.Minute))
			}
		}),
		"returns before the end": stops("StopObeysTheSignal", func(rt *Runtime) stop {
			return func(ctx context.Context, id string, grace time.Duration) error {
				time.AfterFunc(time.Second, func() { _ = rt.StopContainer(ctx, id, grace) })
				return nil
			}
		}),
		"tells of another stop signal": shows("StopSignal", func(c *podmill.Container) { c.StopSignal = "SIGINT" }),
		"tells of a stop signal that it does not send": {"StopSignal", func(b *broken, rt *Runtime) {
			b.create = func(s *podmill.ContainerSpec) {
				c := *s.Container
				c.Lifecycle, s.Container = nil, &c
			}
			shows("", func(c *podmill.Container) { c.StopSignal = "SIGUSR1" }).breakIt(b, rt)
		}},
		"one stop at a time": stops("StopAgainWithShorterGrace", func(rt *Runtime) stop {
			one := make(chan struct{}, 1)
			return func(ctx context.Context, id string, grace time.Duration) error {
				one <- struct{}{}
				defer func() { <-one }()
				return rt.StopContainer(ctx, id, grace)
			}
		}),
		"deaf to its context": stops("CancelledStopThenShorterGrace", func(rt *Runtime) stop {
			return func(ctx context.Context, id string, grace time.Duration) error {
				return rt.StopContainer(context.WithoutCancel(ctx), id, grace)
			}
		}),
		"kills when it is cancelled": stops("CancelledStopThenShorterGrace", func(rt *Runtime) stop {
			return func(ctx context.Context, id string, grace time.Duration) error {
				err := rt.StopContainer(ctx, id, grace)
				_ = rt.StopContainer(context.WithoutCancel(ctx), id, 0)
				return err
			}
		}),
		"does what was cancelled": stops("CancelledContext", func(rt *Runtime) stop {
			return func(context.Context, string, time.Duration) error { return nil }
		}),
		"cannot stop what is not there": stops("StopIsIdempotent", func(rt *Runtime) stop {
			return func(ctx context.Context, id string, grace time.Duration) error {
				return errors.Join(rt.notThere(id), rt.StopContainer(ctx, id, grace))
			}
		}),
		"cannot remove what is not there": {"RemoveIsIdempotent", func(b *broken, rt *Runtime) {
			b.remove = func(ctx context.Context, id string) error {
				return errors.Join(rt.notThere(id), rt.RemoveContainer(ctx, id))
			}
		}},
		"cannot remove what runs": {"RemoveStopsFirst", func(b *broken, rt *Runtime) {
			b.remove = func(ctx context.Context, id string) error {
				rt.mu.Lock()
				running := rt.containers[id] != nil && rt.containers[id].seen.State == podmill.StateRunning
				rt.mu.Unlock()
				if running {
					return errors.New("it is running")
				}
				return rt.RemoveContainer(ctx, id)
			}
		}},
		"leaves containers when a sandbox stops": {"StopSandboxStopsContainers", func(b *broken, rt *Runtime) {
			b.stopSandbox = func(_ context.Context, id string) error {
				rt.mu.Lock()
				defer rt.mu.Unlock()
				rt.loseSandbox(rt.sandboxes[id])
				return nil
			}
		}},
	}
}

// notThere is the error of a runtime that does not take what is gone for stopped.
func (r *Runtime) notThere(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.findContainer(id)
	return err
}

func lookPromises() map[string]promise {
	lists := func(test string, change func(before []podmill.Item, snap *podmill.Snapshot)) promise {
		return promise{test, func(b *broken, _ *Runtime) { b.list = change }}
	}
	return map[string]promise{
		"no annotations":            creates("LabelsAndAnnotations", func(s *podmill.ContainerSpec) { s.Annotations = nil }),
		"no labels of the sandbox":  runs("LabelsAndAnnotations", func(s *podmill.SandboxSpec) { s.Labels = nil }),
		"annotations of its own":    showsSandbox("LabelsAndAnnotations", func(s *podmill.Sandbox) { s.Annotations["mine"] = "x" }),
		"one address for all":       showsSandbox("Addresses", func(s *podmill.Sandbox) { s.IPs = []string{"10.0.0.1"} }),
		"no network is the host's":  showsSandbox("HostNetwork", func(s *podmill.Sandbox) { s.HostNetwork = false }),
		"the host's address":        showsSandbox("HostNetwork", func(s *podmill.Sandbox) { s.IPs = []string{"192.0.2.1"} }),
		"relative log path":         shows("Logs", func(c *podmill.Container) { c.LogPath = "0.log" }),
		"another image's ID":        shows("ResolvedImageWins", func(c *podmill.Container) { c.ImageID = "sha256:0123" }),
		"containers oldest first":   {"NewestAttemptFirst", func(b *broken, _ *Runtime) { b.inspect = func(p *podmill.RuntimePod) { slices.Reverse(p.Containers) } }},
		"sandboxes newest by clock": {"NewestAttemptFirst", func(b *broken, _ *Runtime) { b.inspect = byClock }},
		"lists what runs": lists("ListAgreesWithInspect", func(_ []podmill.Item, snap *podmill.Snapshot) {
			snap.Items = slices.DeleteFunc(snap.Items, func(i podmill.Item) bool { return i.State == podmill.StateExited })
		}),
		"lists all twice": lists("ListAgreesWithInspect", func(_ []podmill.Item, snap *podmill.Snapshot) {
			snap.Items = append(snap.Items, snap.Items...)
		}),
		"lists into what is there": lists("SnapshotIsReplaced", func(before []podmill.Item, snap *podmill.Snapshot) {
			snap.Items = append(before, snap.Items...)
		}),
		"omits a pod now and then": {"Concurrency", func(b *broken, _ *Runtime) {
			n := 0
			b.list = func(_ []podmill.Item, snap *podmill.Snapshot) {
				if n++; n%2 == 0 && len(snap.Items) > 0 {
					snap.Items = snap.Items[1:]
				}
			}
		}},
		"an exit code is an error": {"Exec", func(b *broken, _ *Runtime) {
			b.exec = func(r *podmill.ExecResult) error {
				if r.ExitCode != 0 {
					return errors.New("it failed")
				}
				return nil
			}
		}},
		"one output": {"Exec", func(b *broken, _ *Runtime) {
			b.exec = func(r *podmill.ExecResult) error {
				r.Stdout, r.Stderr = append(r.Stdout, r.Stderr...), nil
				return nil
			}
		}},
		"no events": {"Events", func(b *broken, _ *Runtime) { b.event = func(podmill.RuntimeEvent, func(podmill.RuntimeEvent)) {} }},
		"events of others": {"Events", func(b *broken, _ *Runtime) {
			b.event = func(_ podmill.RuntimeEvent, on func(podmill.RuntimeEvent)) { on(podmill.RuntimeEvent{Pod: "other"}) }
		}},
	}
}

func byClock(p *podmill.RuntimePod) {
	slices.SortFunc(p.Sandboxes, func(a, b podmill.Sandbox) int { return b.CreatedAt.Compare(a.CreatedAt) })
}

func imagePromises() map[string]promise {
	return map[string]promise{
		"absent is another error": {"NotFound", func(b *broken, rt *Runtime) {
			b.inspectImage = func(ctx context.Context, image string) (*podmill.Image, error) {
				found, err := rt.InspectImage(ctx, image)
				if err != nil {
					return nil, errors.New("it cannot be inspected")
				}
				return found, nil
			}
		}},
		"absent is nil": {"PullImage", func(b *broken, rt *Runtime) {
			b.inspectImage = func(ctx context.Context, image string) (*podmill.Image, error) {
				found, _ := rt.InspectImage(ctx, image)
				return found, nil
			}
		}},
		"drops credentials": {"PullImage", func(b *broken, _ *Runtime) { b.pull = func(p *podmill.ImagePull) { p.Auth = nil } }},
		"removes nothing": {"PullImage", func(b *broken, _ *Runtime) {
			b.removeImage = func(context.Context, string) error { return nil }
		}},
		"cannot remove an image that is not there": {"LocalImage", func(b *broken, rt *Runtime) {
			b.removeImage = func(ctx context.Context, image string) error {
				if _, err := rt.InspectImage(ctx, image); err != nil {
					return err
				}
				return rt.RemoveImage(ctx, image)
			}
		}},
	}
}
