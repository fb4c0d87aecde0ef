package sandbox

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/podmilltest"
)

func TestSysctls(t *testing.T) {
	for _, tc := range []struct {
		name    string
		change  func(*corev1.PodSpec)
		allowed []string
		want    string // empty: it may be set
	}{
		{name: "net.ipv4.tcp_syncookies"},
		{name: "net/ipv4/tcp_syncookies"},
		{name: "net.ipv4.tcp_notsent_lowat"},
		{name: "kernel.msgmax", want: `spec.securityContext.sysctls[0].name: "kernel.msgmax" is neither safe nor allowed here`},
		{name: "kernel.msgmax", allowed: []string{"kernel.msg*"}},
		{name: "kernel/msgmax", allowed: []string{"kernel.msgmax"}},
		{name: "kernel.msgmax2", allowed: []string{"kernel.msgmax"}, want: "is neither safe"},
		{name: "kernel.shm_rmid_forced", change: func(s *corev1.PodSpec) { s.HostIPC = true }, want: "would be the host's"},
		{name: "net.core.somaxconn", allowed: []string{"*"}, change: func(s *corev1.PodSpec) { s.HostNetwork = true }, want: "would be the host's"},
		{name: "net/ipv4/tcp_rmem", change: func(s *corev1.PodSpec) { s.HostNetwork = true }, want: "would be the host's"},
	} {
		pod := podmilltest.Pod("shop/cart")
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: tc.name, Value: "1"}}}
		if tc.change != nil {
			tc.change(&pod.Spec)
		}
		err := checkSysctls(pod, tc.allowed)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s with %v allowed: %v, want %q", tc.name, tc.allowed, err, tc.want)
		}
	}
}
