package syncpod

import (
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill/internal/filename"
)

// The kubelet's layout of directories. Nothing but the two roots can be chosen: log shippers and people know the rest by heart.
//
//	<root>/pods/<uid>/{volumes/...,containers/<container>/<attempt>,etc-hosts,lifecycle.json}
//	<logs>/pods/<namespace>_<name>_<uid>/<container>/<attempt>.log
//	<logs>/containers/<pod>_<namespace>_<container>-<id>.log -> the former
const (
	podsDir       = "pods"
	containersDir = "containers"
	hostsFile     = "etc-hosts"
	hostsPath     = "/etc/hosts"
	// maxName is how long a name may be in the file systems of Linux.
	maxName = 255
)

// podDir returns a pod's directory, empty if pods have none.
func (o *options) podDir(uid types.UID) (string, error) {
	if o.root == "" {
		return "", nil
	}
	return below(filepath.Join(o.root, podsDir), string(uid))
}

// logDir returns the directory of a pod's logs, empty if there are none.
func (o *options) logDir(pod *corev1.Pod) (string, error) {
	if o.logRoot == "" {
		return "", nil
	}
	return below(filepath.Join(o.logRoot, podsDir), fmt.Sprintf("%s_%s_%s", pod.Namespace, pod.Name, pod.UID))
}

// linkTo returns the name by which log shippers find a container's log. Where it would be too long, it is the names that are cut, for
// it is the ID that tells one from another.
func (o *options) linkTo(pod *corev1.Pod, container, id string) (string, error) {
	names, suffix := fmt.Sprintf("%s_%s_%s", pod.Name, pod.Namespace, container), "-"+id+".log"
	names = names[:min(len(names), max(0, maxName-len(suffix)))]
	return below(filepath.Join(o.logRoot, containersDir), names+suffix)
}

// below returns dir/name for a name that is one. A UID comes from whoever made the pod, and must not lead anywhere else.
func below(dir, name string) (string, error) {
	if !filename.Valid(name) {
		return "", fmt.Errorf("%q is no name for a file in %s", name, dir)
	}
	if len(name) > maxName {
		return "", fmt.Errorf("%q is too long a name for a file in %s: %d bytes, at most %d are allowed", name, dir, len(name), maxName)
	}
	return filepath.Join(dir, name), nil
}
