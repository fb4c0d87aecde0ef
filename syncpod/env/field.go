package env

import (
	"fmt"
	"strings"

	"github.com/podmill/podmill/internal/downward"
)

// field returns the value of a fieldRef: those that the API allows in an environment.
func (r *resolver) field(path string) (string, error) {
	if value, ok := downward.Metadata(r.Pod, path); ok {
		return value, nil
	}
	switch path {
	case "spec.nodeName":
		return r.Pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return r.Pod.Spec.ServiceAccountName, nil
	case "status.podIP":
		return address(path, r.PodIPs, 1)
	case "status.podIPs":
		return address(path, r.PodIPs, len(r.PodIPs))
	case "status.hostIP":
		return address(path, r.HostIPs, 1)
	case "status.hostIPs":
		return address(path, r.HostIPs, len(r.HostIPs))
	}
	return "", fmt.Errorf("fieldRef %q is not supported", path)
}

func address(path string, ips []string, n int) (string, error) {
	if len(ips) == 0 {
		return "", fmt.Errorf("fieldRef %s: no address is known", path)
	}
	return strings.Join(ips[:n], ","), nil
}
