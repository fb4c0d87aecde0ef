package agent

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// Log returns the log of a container's newest instance that has begun, or of the one that ended last before it, and a function that tells whether that
// instance still runs. A container that waits to be started again is none: the last one before it is the one that ended just now, as with the kubelet.
//
// The error is [podmill.ErrNotFound] if there is no such pod, or no such container in it. Where there is only no log yet, or nothing was before, it is another.
func (a *Agent) Log(ctx context.Context, namespace, pod, container string, previous bool) (path string, running func() bool, err error) {
	p, instances, err := a.instances(ctx, namespace, pod, container)
	if err != nil {
		return "", nil, err
	}
	status := a.containerStatus(p, container)
	chosen := logged(instances, status, previous)
	if left := a.leftLog(p, status, previous); chosen == nil && left != "" {
		return left, func() bool { return false }, nil
	}
	switch {
	case chosen == nil && previous:
		return "", nil, fmt.Errorf("previous terminated container %q in pod %q not found", container, pod)
	case chosen == nil && status.State.Waiting != nil:
		return "", nil, fmt.Errorf("container %q in pod %q is waiting to start: %s", container, pod, status.State.Waiting.Reason)
	case chosen == nil:
		return "", nil, fmt.Errorf("container %q in pod %q is waiting to start - no logs yet", container, pod)
	}
	id := chosen.ID
	running = func() bool {
		seen, err := a.eyes.Observe(ctx, p.UID, false)
		if err != nil {
			return false
		}
		now := seen.Container(container)
		return now != nil && now.ID == id && now.State != podmill.StateExited
	}
	return chosen.LogPath, running, nil
}

// logged returns the instance whose log is asked for, nil if there is none. Instances come newest first.
func logged(instances []podmill.Container, status corev1.ContainerStatus, previous bool) *podmill.Container {
	for i := range instances {
		c := &instances[i]
		// What a status is about that says no more than that the container waits is over.
		current := c.State != podmill.StateExited || status.State.Waiting == nil && strings.HasSuffix(status.ContainerID, "://"+c.ID)
		if c.State != podmill.StateCreated && !(previous && current) {
			return c
		}
	}
	return nil
}

// leftLog returns the log of an instance that the runtime does not hold any more, empty if there is none: of a pod that is over only the logs stay, for as long as
// somebody wants the pod.
func (a *Agent) leftLog(pod *corev1.Pod, status corev1.ContainerStatus, previous bool) string {
	attempt := int(status.RestartCount)
	if previous {
		attempt--
	}
	if status.State.Terminated == nil || attempt < 0 {
		return ""
	}
	path := filepath.Join(a.opts.logRoot, "pods", fmt.Sprintf("%s_%s_%s", pod.Namespace, pod.Name, pod.UID), status.Name, strconv.Itoa(attempt)+".log")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// containerStatus is what the pod's newest status says of a container, and empty where it says nothing.
func (a *Agent) containerStatus(pod *corev1.Pod, container string) corev1.ContainerStatus {
	status, ok := a.statuses.Status(pod.UID)
	if !ok {
		status = pod.Status
	}
	for _, list := range [][]corev1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses, status.EphemeralContainerStatuses} {
		for i := range list {
			if list[i].Name == container {
				return list[i]
			}
		}
	}
	return corev1.ContainerStatus{}
}

// Exec runs a command in a running container.
func (a *Agent) Exec(ctx context.Context, namespace, pod, container string, command []string) (*podmill.ExecResult, error) {
	id, err := a.running(ctx, namespace, pod, container)
	if err != nil {
		return nil, err
	}
	return a.runtime.Exec(ctx, id, command)
}

// ExecURL returns where the runtime serves a command in a running container; [errors.ErrUnsupported] says that it serves none.
func (a *Agent) ExecURL(ctx context.Context, namespace, pod, container string, exec podmill.ExecRequest) (*url.URL, error) {
	streamer, ok := podmill.As[podmill.ExecStreamer](a.runtime)
	if !ok {
		return nil, fmt.Errorf("streams of a command: %w by this runtime", errors.ErrUnsupported)
	}
	id, err := a.running(ctx, namespace, pod, container)
	if err != nil {
		return nil, err
	}
	return streamer.ExecURL(ctx, id, exec)
}

// running returns the ID of a container that runs.
func (a *Agent) running(ctx context.Context, namespace, pod, container string) (string, error) {
	_, instances, err := a.instances(ctx, namespace, pod, container)
	switch {
	case err != nil:
		return "", err
	case len(instances) == 0:
		return "", fmt.Errorf("container %s of pod %s/%s is not running: it has not been created yet", container, namespace, pod)
	case instances[0].State != podmill.StateRunning:
		return "", fmt.Errorf("container %s of pod %s/%s is not running: it is %s", container, namespace, pod, instances[0].State)
	}
	return instances[0].ID, nil
}

// instances returns a pod, and what the runtime holds of one of its containers, the newest first.
func (a *Agent) instances(ctx context.Context, namespace, pod, container string) (*corev1.Pod, []podmill.Container, error) {
	p := a.named(namespace, pod)
	switch {
	case p == nil:
		return nil, nil, fmt.Errorf("pod %s/%s: %w", namespace, pod, podmill.ErrNotFound)
	case !has(p, container):
		return nil, nil, fmt.Errorf("container %s of pod %s/%s: %w", container, namespace, pod, podmill.ErrNotFound)
	}
	seen, err := a.eyes.Observe(ctx, p.UID, false)
	if err != nil {
		return nil, nil, err
	}
	var found []podmill.Container
	for _, c := range seen.Containers {
		if c.Name == container {
			found = append(found, c)
		}
	}
	return p, found, nil
}

// named returns the pod of a name, nil if there is none. Of several it is the one that is wanted: the others are on their way out.
func (a *Agent) named(namespace, name string) (found *corev1.Pod) {
	pods, _ := a.Pods()
	for _, p := range pods {
		if p.Namespace != namespace || p.Name != name {
			continue
		}
		if _, wanted := a.loop.Pod(p.UID); wanted {
			return p
		}
		found = p
	}
	return found
}

// has reports whether a pod has a container of that name, of whatever kind.
func has(pod *corev1.Pod, container string) bool {
	for c := range lifecycle.Containers(pod) {
		if c.Name == container {
			return true
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == container {
			return true
		}
	}
	return false
}
