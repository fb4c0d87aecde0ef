package env

import (
	"fmt"
	"strings"

	"github.com/podmill/podmill/internal/downward"
)

// field returns the value of a fieldRef: those that the API allows in an environment.
func (r *resolver) field(path string) (string, error) {
	pod := r.Pod
	switch path {
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP":
		return address(path, r.PodIPs, 1)
	case "status.podIPs":
		return address(path, r.PodIPs, len(r.PodIPs))
	case "status.hostIP":
		return address(path, r.HostIPs, 1)
	case "status.hostIPs":
		return address(path, r.HostIPs, len(r.HostIPs))
	}
	if value, ok := downward.Metadata(pod, path); ok {
		return value, nil
	}
	return "", fmt.Errorf("fieldRef %q is not supported", path)
}

func address(path string, ips []string, n int) (string, error) {
	if len(ips) == 0 {
		return "", fmt.Errorf("fieldRef %s: no address is known", path)
	}
	return strings.Join(ips[:n], ","), nil
}
