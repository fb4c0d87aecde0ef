package cgroup

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestNames(t *testing.T) {
	const uid = "0a1b-2c"
	for _, tc := range []struct {
		root         string
		class        corev1.PodQOSClass
		driver       Driver
		path, parent string
	}{
		{"/", corev1.PodQOSGuaranteed, Cgroupfs, "/kubepods/pod0a1b-2c", "/kubepods/pod0a1b-2c"},
		{"/podmill", corev1.PodQOSBurstable, Cgroupfs, "/podmill/kubepods/burstable/pod0a1b-2c", "/podmill/kubepods/burstable/pod0a1b-2c"},
		{"", corev1.PodQOSBestEffort, Systemd, "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod0a1b_2c.slice", "kubepods-besteffort-pod0a1b_2c.slice"},
		{"/edge-a/pods", corev1.PodQOSGuaranteed, Systemd, "/edge_a.slice/edge_a-pods.slice/edge_a-pods-kubepods.slice/edge_a-pods-kubepods-pod0a1b_2c.slice", "edge_a-pods-kubepods-pod0a1b_2c.slice"},
	} {
		root, err := parseRoot(tc.root)
		if err != nil {
			t.Fatal(err)
		}
		n := root.class(tc.class).child(podStep(uid))
		if got := n.path(tc.driver); got != tc.path {
			t.Errorf("path %s, want %s", got, tc.path)
		}
		if got := n.parent(tc.driver); got != tc.parent {
			t.Errorf("parent %s, want %s", got, tc.parent)
		}
		dir := tc.path[strings.LastIndex(tc.path, "/")+1:]
		if got, ok := podOf(dir, tc.driver); !ok || got != types.UID(uid) {
			t.Errorf("the pod of %s is %s, %v", dir, got, ok)
		}
	}
	for _, dir := range []string{"burstable", "pod", "crio-1", "kubepods-burstable.slice"} {
		if uid, ok := podOf(dir, Cgroupfs); ok {
			t.Errorf("%s is taken for pod %s", dir, uid)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for want, try := range map[string]func() (*Manager, error){
		"not a clean absolute path": func() (*Manager, error) { return New("pods/../..") },
		"is not known":              func() (*Manager, error) { return New("/", WithDriver("cgroupfsx")) },
		"CPU period 7":              func() (*Manager, error) { return New("/", WithCPUPeriod(7)) },
		"configure the same": func() (*Manager, error) {
			return nil, CheckDriver(Cgroupfs, "systemd")
		},
	} {
		if _, err := try(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	for _, reported := range []string{"", "systemd"} {
		if err := CheckDriver(Systemd, reported); err != nil {
			t.Error(err)
		}
	}
}
