package main

import (
	"io"
	"strings"
	"testing"
)

func TestFlagsThatCannotBe(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"", "--kubeconfig"},
		{"--kubeconfig k --tls-cert-file c", "--tls-private-key-file"},
		{"--kubeconfig k --node-labels a_b=c/d", "--node-labels"},
		{"--kubeconfig k --register-with-taints a=b", ":NoSchedule"},
	} {
		if _, err := parseFlags(strings.Fields(tc.args), io.Discard); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want an error that says %s", tc.args, err, tc.want)
		}
	}
}
