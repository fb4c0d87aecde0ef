package podmilltest

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podmill/podmill"
)

func memoryEnv(t *testing.T, opts ...Option) RuntimeEnv {
	rt := NewRuntime(append([]Option{
		WithImages(Image{Ref: "busybox:1"}),
		WithRegistry(
			RemoteImage{Image: Image{Ref: "registry.test/none:1"}, Err: errors.New("no such image")},
			RemoteImage{Image: Image{Ref: "registry.test/fresh:1"}, Takes: 50 * time.Millisecond, Username: "u", Password: "p"},
		),
	}, opts...)...)
	t.Cleanup(rt.Close)
	return RuntimeEnv{
		Runtime: rt, Image: "busybox:1", Absent: "registry.test/none:1", Pull: "registry.test/fresh:1",
		PullAuth: &podmill.ImageAuth{Username: "u", Password: "p"}, Dir: t.TempDir(), Network: true,
	}
}

func TestRuntimeKeepsTheContractInVirtualTime(t *testing.T) {
	for _, test := range runtimeTests() {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test.run(newRuntimeKit(t, memoryEnv(t))) })
		})
	}
}

// The exported kit, in real time, over a wrapper that finds nothing to spoil.
func TestFaultyWithoutFaultsKeepsTheContract(t *testing.T) {
	if testing.Short() {
		t.Skip("waits in real time")
	}
	RuntimeTest(t, func(t *testing.T) RuntimeEnv {
		t.Parallel()
		env := memoryEnv(t)
		env.Runtime = Faulty(env.Runtime)
		return env
	})
}
