package httpget

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// version is that of the Kubernetes whose behaviour this is. Servers tell probes by it.
const version = "1.37"

// What a request is for, as its User-Agent says: kube-probe/1.37 or kube-lifecycle/1.37.
const (
	ForProbe = "probe"
	ForHook  = "lifecycle"
)

// UserAgent is how the kubelet presents itself, for a purpose such as [ForProbe].
func UserAgent(purpose string) string { return "kube-" + purpose + "/" + version }

// Request makes the request of an action. An action without a host is meant for podIP. A path that is no URL is sent as it is, as the
// kubelet does: it was accepted once, and may have worked ever since. The error is a port or a host that cannot be.
func Request(ctx context.Context, action *corev1.HTTPGetAction, container *corev1.Container, podIP, purpose string) (*http.Request, error) {
	port, err := Port(action.Port, container)
	if err != nil {
		return nil, err
	}
	host := cmp.Or(action.Host, podIP)
	if host == "" {
		return nil, fmt.Errorf("the pod of container %q has no address", container.Name)
	}
	target, err := url.Parse(action.Path)
	if err != nil {
		target = &url.URL{Path: action.Path}
	}
	target.Scheme = strings.ToLower(cmp.Or(string(action.Scheme), "http"))
	target.Host = net.JoinHostPort(host, strconv.Itoa(port))

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("make the request to container %q: %w", container.Name, err)
	}
	req.Header = headers(action.HTTPHeaders, UserAgent(purpose))
	req.Host = req.Header.Get("Host")
	return req, nil
}

// headers returns what an action says, in any spelling, and what it does not: an agent and what is accepted. To name one of these two
// with an empty value is to do without it; net/http leaves out an empty User-Agent by itself.
func headers(said []corev1.HTTPHeader, agent string) http.Header {
	h := make(http.Header, len(said)+2)
	for _, header := range said {
		h.Add(header.Name, header.Value)
	}
	if _, ok := h["User-Agent"]; !ok {
		h.Set("User-Agent", agent)
	}
	if _, ok := h["Accept"]; !ok {
		h.Set("Accept", "*/*")
	} else if h.Get("Accept") == "" {
		h.Del("Accept")
	}
	return h
}

// Port returns the number of a port. A name is one of the container's own ports or, failing that, a number in digits.
func Port(port intstr.IntOrString, container *corev1.Container) (int, error) {
	number := port.IntValue()
	if port.Type == intstr.String {
		for i := range container.Ports {
			if container.Ports[i].Name == port.StrVal {
				number = int(container.Ports[i].ContainerPort)
				break
			}
		}
	}
	if number <= 0 || number > 65535 {
		return 0, fmt.Errorf("container %q has no port %q", container.Name, port.String())
	}
	return number, nil
}
