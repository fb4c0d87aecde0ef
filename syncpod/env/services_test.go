package env_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/syncpod/env"
)

func serviceOf(namespace, name, ip string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{ClusterIP: ip, Ports: ports}}
}

// B111: which Services a container is told of, and that its own environment wins and may refer to theirs.
func TestServices(t *testing.T) {
	http := corev1.ServicePort{Name: "http-alt", Port: 80, Protocol: corev1.ProtocolTCP}
	services := []*corev1.Service{
		serviceOf("shop", "cart-db", "10.0.0.1", http, corev1.ServicePort{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}),
		serviceOf("shop", "six", "fd00::1", corev1.ServicePort{Port: 1}),
		serviceOf("shop", "headless", "None", http), serviceOf("shop", "pending", "", http), serviceOf("other", "far", "10.0.0.9", http),
		serviceOf("default", "kubernetes", "10.0.0.2", corev1.ServicePort{Name: "https", Port: 443, Protocol: corev1.ProtocolTCP}),
	}
	names := func(links *bool, own ...corev1.EnvVar) (all string, values map[string]string) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: corev1.PodSpec{EnableServiceLinks: links}}
		vars, err := env.Resolve(env.Input{
			Pod: pod, Container: &corev1.Container{Env: own},
			Services: func() ([]*corev1.Service, error) { return services, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		values, hosts := map[string]string{}, []string{}
		for _, v := range vars {
			values[v.Name] = v.Value
			if host, ok := strings.CutSuffix(v.Name, "_SERVICE_HOST"); ok {
				hosts = append(hosts, host)
			}
		}
		return strings.Join(hosts, " "), values
	}
	for want, links := range map[string]*bool{"KUBERNETES": new(bool), "CART_DB SIX KUBERNETES": nil} {
		if got, _ := names(links); got != want {
			t.Errorf("Services %s, want %s", got, want)
		}
	}
	_, values := names(nil, corev1.EnvVar{Name: "SIX_SERVICE_HOST", Value: "mine"}, corev1.EnvVar{Name: "URL", Value: "http://$(CART_DB_SERVICE_HOST)"})
	if values["SIX_SERVICE_HOST"] != "mine" || values["URL"] != "http://10.0.0.1" || values["SIX_PORT"] != "tcp://[fd00::1]:1" {
		t.Errorf("the container's own: %v", values)
	}
	var got []podmill.EnvVar
	for _, name := range []string{"HOST", "PORT", "PORT_HTTP_ALT", "PORT_DNS"} {
		got = append(got, podmill.EnvVar{Name: name, Value: values["CART_DB_SERVICE_"+name]})
	}
	for _, name := range []string{"PORT", "PORT_80_TCP", "PORT_53_UDP", "PORT_53_UDP_PROTO", "PORT_53_UDP_PORT", "PORT_53_UDP_ADDR"} {
		got = append(got, podmill.EnvVar{Name: name, Value: values["CART_DB_"+name]})
	}
	want := []podmill.EnvVar{
		{Name: "HOST", Value: "10.0.0.1"}, {Name: "PORT", Value: "80"}, {Name: "PORT_HTTP_ALT", Value: "80"}, {Name: "PORT_DNS", Value: "53"},
		{Name: "PORT", Value: "tcp://10.0.0.1:80"}, {Name: "PORT_80_TCP", Value: "tcp://10.0.0.1:80"}, {Name: "PORT_53_UDP", Value: "udp://10.0.0.1:53"},
		{Name: "PORT_53_UDP_PROTO", Value: "udp"}, {Name: "PORT_53_UDP_PORT", Value: "53"}, {Name: "PORT_53_UDP_ADDR", Value: "10.0.0.1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
