package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/internal/testenv"
)

// usersOfImages are containers by name: their image, their security context, and whom they run as, by user and group, or why they do not run.
var usersOfImages = []struct{ name, image, context, runs, waits string }{
	{name: "named", image: "user:app", runs: "1000 1000"},
	{name: "numbered", image: "user:1000", runs: "1000 1000"},
	{name: "root-by-another-name", image: "user:toor", runs: "0 0"},
	{name: "absent", image: "busybox:1", runs: "0 0"},
	{name: "named-and-a-group", image: "user:app", context: "runAsGroup: 2222", runs: "1000 2222"},
	{name: "proven", image: "user:1000", context: "runAsNonRoot: true", runs: "1000 1000"},
	{name: "overruled", image: "user:toor", context: "runAsNonRoot: true, runAsUser: 1234", runs: "1234 0"},
	{name: "a-name-proves-nothing", image: "user:app", context: "runAsNonRoot: true", waits: "container has runAsNonRoot and image has non-numeric user (app), cannot verify user is non-root"},
	{name: "nor-does-toor", image: "user:toor", context: "runAsNonRoot: true", waits: "container has runAsNonRoot and image has non-numeric user (toor), cannot verify user is non-root"},
	{name: "out-of-range", image: "user:overflow", context: "runAsNonRoot: true", waits: "container has runAsNonRoot and user 4294967296 is out of range, cannot verify user is non-root"},
	{name: "root-by-silence", image: "busybox:1", context: "runAsNonRoot: true", waits: "container has runAsNonRoot and image will run as root"},
}

func usersManifest() string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: Pod\nmetadata: {name: users}\nspec:\n  terminationGracePeriodSeconds: 0\n  containers:\n")
	for _, u := range usersOfImages {
		fmt.Fprintf(&b, "  - {name: %s, image: \"podmill.test/%s\", command: [sleep, \"100000\"], securityContext: {%s}}\n", u.name, u.image, u.context)
	}
	return b.String()
}

func statusOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	i := slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == container })
	if i < 0 {
		return nil
	}
	return &pod.Status.ContainerStatuses[i]
}

// A container runs as its image says or its pod, and not at all where it must not be root and nothing proves that (CVE-2021-25749, CVE-2024-40635). Who it is does not change
// when it is restarted, by another agent and with the image at hand (CVE-2019-11245).
func TestUsersOfImages(t *testing.T) {
	testenv.EachContainerd(t, func(t *testing.T, endpoint string) {
		n := newNode(t, endpoint)
		n.write("users.yaml", usersManifest())
		n.start()
		for restarts := range int32(2) {
			for _, u := range usersOfImages {
				pod := n.reaches("users", "has container "+u.name+" as it should be", func(pod *corev1.Pod) bool {
					s := statusOf(pod, u.name)
					return s != nil && (u.runs != "" && s.State.Running != nil && s.RestartCount == restarts || u.waits != "" && s.State.Waiting != nil && s.State.Waiting.Reason == "CreateContainerConfigError")
				})
				if u.waits != "" {
					if why := statusOf(pod, u.name).State.Waiting.Message; !strings.HasPrefix(why, u.waits) {
						t.Errorf("%s waits because of %q, want %q", u.name, why, u.waits)
					}
					continue
				}
				if got := n.sh("users", u.name, "awk '/^(Uid|Gid):/ {print $2}' /proc/1/status | xargs"); got != u.runs {
					t.Errorf("%s runs as %s, want %s", u.name, got, u.runs)
				}
			}
			if restarts == 0 {
				n.crash()
				n.start()
				pod := n.reaches("users", "is known again", func(*corev1.Pod) bool { return true })
				for _, u := range usersOfImages {
					if u.runs != "" {
						n.kill(pod, u.name)
					}
				}
			}
		}
	})
}
