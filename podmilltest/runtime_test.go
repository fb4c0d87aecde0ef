package podmilltest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// launched runs a pod's sandbox and its first container, and returns the container's ID.
func launched(t *testing.T, rt podmill.Runtime, pod *corev1.Pod) string {
	t.Helper()
	ctx := t.Context()
	spec := &podmill.SandboxSpec{Pod: pod}
	sandbox, err := rt.RunSandbox(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	c := &pod.Spec.Containers[0]
	image, err := rt.PullImage(ctx, &podmill.ImagePull{Image: c.Image})
	if err != nil {
		t.Fatal(err)
	}
	id, err := rt.CreateContainer(ctx, &podmill.ContainerSpec{
		Sandbox: spec, SandboxID: sandbox, Container: c, Image: image, Command: c.Command, Args: c.Args, Env: environ(c),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.StartContainer(ctx, id); err != nil {
		t.Fatal(err)
	}
	return id
}

func environ(c *corev1.Container) []podmill.EnvVar {
	var env []podmill.EnvVar
	for _, v := range c.Env {
		env = append(env, podmill.EnvVar{Name: v.Name, Value: v.Value})
	}
	return env
}

func TestStopWaitsForTheGraceAndThenKills(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		took   time.Duration
		code   int32
	}{
		"dies of TERM":         {"sleep inf", 0, 143},
		"ignores TERM":         {"trap '' TERM; sleep inf", 30 * time.Second, 137},
		"ends in its own time": {"trap 'sleep 7; exit 4' TERM; sleep inf & wait", 7 * time.Second, 4},
		"ends during its stop": {"trap '' TERM; sleep 20", 19 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := NewRuntime()
				pod := Pod("a", Container("c", "i", Runs(test.script)))
				id := launched(t, rt, pod)
				time.Sleep(time.Second)
				start := time.Now()
				if err := rt.StopContainer(t.Context(), id, 30*time.Second); err != nil {
					t.Fatal(err)
				}
				seen, err := rt.InspectPod(t.Context(), pod.UID)
				if err != nil {
					t.Fatal(err)
				}
				if took, code := time.Since(start), seen.Containers[0].ExitCode; took != test.took || code != test.code {
					t.Errorf("stopped with code %d after %v, want %d after %v\n%s", code, took, test.code, test.took, rt.Log())
				}
			})
		})
	}
}

func TestShorterGraceShortensTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := NewRuntime()
		id := launched(t, rt, Pod("a", Container("c", "i", Runs("trap '' TERM; sleep inf"))))
		first := make(chan error, 1)
		start := time.Now()
		go func() { first <- rt.StopContainer(context.Background(), id, time.Hour) }()
		time.Sleep(time.Second)
		if err := rt.StopContainer(t.Context(), id, 2*time.Second); err != nil {
			t.Fatal(err)
		}
		if err := <-first; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %v, want 3s", took)
		}
	})
}
