package main

import (
	"io"
	"strings"
	"testing"
)

func TestFlagsThatCannotBe(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"", "--pod-manifest-path"},
		{"--pod-manifest-path m more", `"more"`},
		{"--pod-manifest-path m --hostname-override Bad_Node", `"Bad_Node"`},
		{"--pod-manifest-path m --node-ip 1.2.3", "-node-ip"},
		{"--pod-manifest-path m --cluster-dns dns", "-cluster-dns"},
		{"--pod-manifest-path m --memory-reservation-policy All", "None or TieredReservation"},
		{"--pod-manifest-path m --memory-swap-behavior UnlimitedSwap", "NoSwap or LimitedSwap"},
		{"--pod-manifest-path m --pod-max-pids 0", "-1 for as many"},
		{"--pod-manifest-path m --pod-max-pids 100", "--cgroup-root"},
		{"--pod-manifest-path m --user-ids 65536", "FIRST:COUNT"},
		{"--pod-manifest-path m --user-ids 1000:65536", "multiples of 65536"},
	} {
		if _, err := parseFlags(strings.Fields(tc.args), io.Discard); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want an error that says %s", tc.args, err, tc.want)
		}
	}
}
