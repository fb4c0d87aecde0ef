// Package testenv tells tests which real parts they may use, and skips those
// whose parts are missing with one line that says the cure.
//
// `make test` starts everything and sets these variables; `make up` and
// `eval "$(make -s env)"` do the same for a developer's own shell.
//
//	PODMILL_TEST_CONTAINERD          endpoint of a containerd 2.x, unix:///...
//	PODMILL_TEST_CONTAINERD_OLD      endpoint of a containerd 1.6 or 1.7
//	PODMILL_TEST_REGISTRY            host:port of a registry on loopback, plain http
//	PODMILL_TEST_REGISTRY_AUTH       the same with basic auth
//	PODMILL_TEST_REGISTRY_USER       its user
//	PODMILL_TEST_REGISTRY_PASSWORD   and password
//	PODMILL_TEST_KUBECONFIG          kubeconfig of the administrator of a kube-apiserver on loopback
//	PODMILL_TEST_CLUSTER_KUBECONFIG  the same of one that has a scheduler and controllers (make stories)
//	PODMILL_TEST_KUBECTL             a kubectl
//	PODMILL_TEST_CGROUP_V2           1 where the test runs on cgroup v2 (make test boots a VM)
//	PODMILL_DIR                      everything that the set-up made lives below it
//
// Each containerd knows the images that tools/mkimages makes, under the names
// podmill.test/pause:1, busybox:1, busybox:2, entrypoint:1 and user:app, :1000,
// :toor and :overflow. The registries serve the same set.
package testenv

import (
	"os"
	"testing"
)

const cure = "run `make test`, or `make up` and `eval \"$(make -s env)\"`"

// need returns the variable's value or skips the test.
func need(t testing.TB, what, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Skipf("needs %s (%s is not set): %s", what, name, cure)
	}
	return v
}

// Containerd returns the endpoint of a private containerd 2.x that other tests
// use at the same time: tell pods apart by their UID, and leave none behind.
func Containerd(t testing.TB) string {
	t.Helper()
	return need(t, "containerd 2.x", "PODMILL_TEST_CONTAINERD")
}

// OldContainerd returns the endpoint of a private containerd 1.x, which has
// neither events nor RuntimeConfig.
func OldContainerd(t testing.TB) string {
	t.Helper()
	return need(t, "containerd 1.x", "PODMILL_TEST_CONTAINERD_OLD")
}

// EachContainerd runs f on the new and on the old containerd, as subtests.
func EachContainerd(t *testing.T, f func(t *testing.T, endpoint string)) {
	t.Helper()
	t.Run("containerd2", func(t *testing.T) { f(t, Containerd(t)) })
	t.Run("containerd1", func(t *testing.T) { f(t, OldContainerd(t)) })
}

// Root skips the test unless it runs as root.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root (mounts, cgroups, namespaces): run it as root")
	}
}

// CgroupV2 skips the test unless the machine's controllers are on cgroup v2 and
// the test may use them: the VM of `make test`.
func CgroupV2(t testing.TB) {
	t.Helper()
	need(t, "cgroup v2", "PODMILL_TEST_CGROUP_V2")
}
