package sandbox

import (
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// maxLogName is what a file system takes for the name of a pod's log directory, <namespace>_<name>_<uid>.
const maxLogName = 255

// specOf resolves what a pod leaves open of its sandbox. The same input gives the same spec.
func specOf(pod *corev1.Pod, attempt uint32, o *options, host *podmill.DNS) (*podmill.SandboxSpec, error) {
	if n := len(pod.Namespace) + len(pod.Name) + len(pod.UID) + 2; n > maxLogName {
		return nil, fmt.Errorf(
			"namespace, name and UID are too long for the name of a log directory: %d characters, at most %d are allowed", n, maxLogName)
	}
	name, err := hostname(pod, o.dns.domain)
	if err != nil {
		return nil, err
	}
	dns, _, err := podDNS(pod, o.dns, host)
	if err != nil {
		return nil, err
	}
	handler, err := handlerOf(pod, o.handlers)
	if err != nil {
		return nil, err
	}
	if err := checkSysctls(pod, o.sysctls); err != nil {
		return nil, err
	}
	return &podmill.SandboxSpec{
		Pod:            pod,
		Attempt:        attempt,
		Hostname:       name,
		Domain:         domain(pod, o.dns.domain),
		DNS:            dns,
		RuntimeHandler: handler,
		Labels:         labelsOf(pod, o.owner),
		Annotations:    maps.Clone(pod.Annotations),
	}, nil
}

// labelsOf returns a pod's labels and those that the pod is found by, which win.
func labelsOf(pod *corev1.Pod, owner string) map[string]string {
	labels := make(map[string]string, len(pod.Labels)+4)
	maps.Copy(labels, pod.Labels)
	labels[podmill.LabelPodName] = pod.Name
	labels[podmill.LabelPodNamespace] = pod.Namespace
	labels[podmill.LabelPodUID] = string(pod.UID)
	if owner != "" {
		labels[podmill.LabelOwner] = owner
	}
	return labels
}

// handlerOf returns the runtime handler of a pod, empty for the runtime's default.
func handlerOf(pod *corev1.Pod, handlers func(string) (string, error)) (string, error) {
	if pod.Spec.RuntimeClassName == nil || *pod.Spec.RuntimeClassName == "" {
		return "", nil
	}
	class := *pod.Spec.RuntimeClassName
	if handlers == nil {
		return "", fmt.Errorf("spec.runtimeClassName: %q: this agent knows no runtime classes", class)
	}
	handler, err := handlers(class)
	switch {
	case errors.Is(err, podmill.ErrNotFound):
		return "", fmt.Errorf("spec.runtimeClassName: RuntimeClass %q not found", class)
	case err != nil:
		return "", fmt.Errorf("spec.runtimeClassName: look up RuntimeClass %q: %w", class, err)
	}
	return handler, nil
}
