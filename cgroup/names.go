package cgroup

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Driver is how cgroups are made, and so how they are named. It has to be the runtime's.
type Driver string

// The two drivers.
const (
	Cgroupfs Driver = "cgroupfs" // as directories
	Systemd  Driver = "systemd"  // as slices, by asking systemd
)

// classes are the classes of service that have pods of their own, and the cgroups in which they are; guaranteed pods are beside
// them.
var classes = []corev1.PodQOSClass{corev1.PodQOSGuaranteed, corev1.PodQOSBurstable, corev1.PodQOSBestEffort} //nolint:gochecknoglobals // constant

// name is a cgroup by its steps from the root of the hierarchy, without the syntax of a driver: kubepods, burstable, pod1234.
type name []string

func parseRoot(root string) (name, error) {
	clean := path.Clean("/" + root)
	if root != "" && clean != root && clean+"/" != root {
		return nil, fmt.Errorf("cgroup root %q is not a clean absolute path; write %q", root, clean)
	}
	if clean == "/" {
		return nil, nil
	}
	return strings.Split(clean[1:], "/"), nil
}

func (n name) child(step string) name { return append(n[:len(n):len(n)], step) }

// class returns the cgroup of a class of service, below the agent's root.
func (n name) class(class corev1.PodQOSClass) name {
	pods := n.child("kubepods")
	switch class {
	case corev1.PodQOSBurstable:
		return pods.child("burstable")
	case corev1.PodQOSBestEffort:
		return pods.child("besteffort")
	default:
		return pods
	}
}

func podStep(uid types.UID) string { return "pod" + string(uid) }

// path returns where the cgroup is below the mount point of a hierarchy.
func (n name) path(d Driver) string {
	if d != Systemd {
		return "/" + strings.Join(n, "/")
	}
	p := "/"
	for i := range n {
		p = path.Join(p, n[:i+1].slice())
	}
	return p
}

// parent returns what a runtime is told to put a pod into: the path or, under systemd, the slice.
func (n name) parent(d Driver) string {
	if d == Systemd {
		return n.slice()
	}
	return n.path(d)
}

// slice returns the name of the cgroup as a systemd slice, in which a dash separates the steps and so cannot be part of one.
func (n name) slice() string {
	steps := make([]string, len(n))
	for i, step := range n {
		steps[i] = strings.ReplaceAll(step, "-", "_")
	}
	return strings.Join(steps, "-") + ".slice"
}

// podOf returns the UID of the pod that a directory below a class belongs to. A dash of a UID that a slice shows as an
// underscore is put back.
func podOf(dir string, d Driver) (types.UID, bool) {
	if d == Systemd {
		dir = strings.TrimSuffix(dir, ".slice")
		dir = strings.ReplaceAll(dir[strings.LastIndex(dir, "-")+1:], "_", "-")
	}
	uid, ok := strings.CutPrefix(dir, "pod")
	return types.UID(uid), ok && uid != ""
}
