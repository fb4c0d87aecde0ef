package env

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// Services are the variables by which a container finds Services, in the forms that Docker's links had. What a pod of a namespace is told of is the
// Services there, unless its enableServiceLinks is false, and in any case the API server's, kubernetes in the namespace default. A Service
// without an address of its own has none. An environment of its own wins over them.
func Services(pod *corev1.Pod, services []*corev1.Service) (vars []podmill.EnvVar) {
	links := pod.Spec.EnableServiceLinks == nil || *pod.Spec.EnableServiceLinks
	own := map[string]bool{}
	for _, s := range services {
		if s.Namespace == pod.Namespace {
			own[s.Name] = true
		}
	}
	for _, s := range services {
		master := s.Namespace == corev1.NamespaceDefault && s.Name == "kubernetes"
		shown := links && s.Namespace == pod.Namespace || master && (!links || !own[s.Name])
		if shown && s.Spec.ClusterIP != "" && s.Spec.ClusterIP != corev1.ClusterIPNone && len(s.Spec.Ports) > 0 {
			vars = append(vars, service(s)...)
		}
	}
	return vars
}

func service(s *corev1.Service) (vars []podmill.EnvVar) {
	name, ip := variable(s.Name), s.Spec.ClusterIP
	add := func(suffix, value string) { vars = append(vars, podmill.EnvVar{Name: name + suffix, Value: value}) }
	first := s.Spec.Ports[0]
	add("_SERVICE_HOST", ip)
	add("_SERVICE_PORT", strconv.Itoa(int(first.Port)))
	for _, p := range s.Spec.Ports {
		if p.Name != "" {
			add("_SERVICE_PORT_"+variable(p.Name), strconv.Itoa(int(p.Port)))
		}
	}
	url := func(p corev1.ServicePort) (protocol, port, all string) {
		protocol, port = "TCP", strconv.Itoa(int(p.Port))
		if p.Protocol != "" {
			protocol = string(p.Protocol)
		}
		return protocol, port, strings.ToLower(protocol) + "://" + net.JoinHostPort(ip, port)
	}
	_, _, link := url(first)
	add("_PORT", link)
	for _, p := range s.Spec.Ports {
		protocol, port, link := url(p)
		prefix := fmt.Sprintf("_PORT_%s_%s", port, strings.ToUpper(protocol))
		add(prefix, link)
		add(prefix+"_PROTO", strings.ToLower(protocol))
		add(prefix+"_PORT", port)
		add(prefix+"_ADDR", ip)
	}
	return vars
}

// variable is a Service's name as part of a variable's.
func variable(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }
