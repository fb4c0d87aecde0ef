package cri_test

import (
	"testing"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/cri"
	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/podmilltest"
)

// dial connects to a real containerd.
func dial(t *testing.T, endpoint string, opts ...cri.Option) *cri.Client {
	t.Helper()
	c, err := cri.Dial(t.Context(), endpoint, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestRuntime proves that real containerd behind a client is the runtime that the contract promises.
func TestRuntime(t *testing.T) {
	testenv.EachContainerd(t, func(t *testing.T, endpoint string) {
		registry := testenv.AuthRegistry(t)
		podmilltest.RuntimeTest(t, func(t *testing.T) podmilltest.RuntimeEnv {
			root := testenv.CgroupRoot(t)
			return podmilltest.RuntimeEnv{
				Runtime:  dial(t, endpoint),
				Image:    "podmill.test/busybox:1",
				Absent:   registry.Addr + "/absent:1",
				Pull:     registry.Push(t, "conformance:1", 1000),
				PullAuth: &podmill.ImageAuth{Username: registry.User, Password: registry.Password},
				Dir:      t.TempDir(),
				Network:  true,
				Complete: func(spec *podmill.SandboxSpec) { spec.CgroupParent = root },
			}
		})
	})
}
