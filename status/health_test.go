package status_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	. "github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/status"
)

// B039, B042: what a container's probes say is what its status says, by the instance that they have probed.
func TestHealth(t *testing.T) {
	pod := Pod("default/p", InitContainer("i", "x"), Sidecar("s", "x"), Container("a", "x"))
	for _, tc := range []struct {
		name           string
		container      podmill.Container
		health         podmill.Health
		started, ready bool
	}{
		{"before its startup probe has succeeded", running("a"), podmill.Health{}, false, false},
		{"ready and not started is not ready", running("a"), podmill.Health{Ready: true}, false, false},
		{"before its readiness probe has succeeded", running("a"), podmill.Health{Started: true}, true, false},
		{"started and ready", running("a"), podmill.Health{Started: true, Ready: true}, true, true},
		{"a sidecar", running("s"), podmill.Health{Started: true}, true, false},
		{"ended", exited("a", 0), podmill.Health{Started: true, Ready: true}, false, false},
		{"an init container has no say", running("i"), podmill.Health{Started: true, Ready: true}, true, false},
		{"an init container that has succeeded", exited("i", 0), podmill.Health{}, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := status.Generate(status.Input{
				Pod: pod, Seen: seen(tc.container), Progress: podmill.Progress{Health: map[string]podmill.Health{tc.container.ID: tc.health}},
			}, now)
			for _, s := range append(got.InitContainerStatuses, got.ContainerStatuses...) {
				if s.Name == tc.container.Name && (*s.Started != tc.started || s.Ready != tc.ready) {
					t.Errorf("started %v, ready %v; want %v, %v", *s.Started, s.Ready, tc.started, tc.ready)
				}
			}
		})
	}
}

// A container whose postStart hook has not ended does not run yet, as the kubelet tells it.
func TestAContainerInItsPostStartHookDoesNotRunYet(t *testing.T) {
	in := status.Input{Pod: one, Seen: seen(running("a")), Progress: podmill.Progress{
		Waiting: map[string]corev1.ContainerStateWaiting{"a": {Reason: "ContainerCreating"}},
	}}
	got := status.Generate(in, now)
	if s := got.ContainerStatuses[0]; got.Phase != corev1.PodPending || state(s.State) != "waiting: ContainerCreating" || s.Ready || *s.Started {
		t.Errorf("phase %s, container %+v", got.Phase, s)
	}
}

func TestEphemeralContainersAreNeverReady(t *testing.T) {
	pod := Edit(one, func(p *corev1.Pod) {
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "e", Image: "x"}}}
	})
	got := status.Generate(status.Input{Pod: pod, Seen: seen(running("a"), running("e"))}, now)
	if s := got.EphemeralContainerStatuses[0]; s.Ready || s.Started != nil || s.State.Running == nil {
		t.Errorf("%+v", s)
	}
	if got.Phase != corev1.PodRunning {
		t.Errorf("phase %s", got.Phase)
	}
}

// B096
func TestTerminationMessages(t *testing.T) {
	ended := exited("a", 1)
	say := func(pod *corev1.Pod, c podmill.Container, last *corev1.PodStatus, messages map[string]string) string {
		got := status.Generate(status.Input{Pod: pod, Seen: seen(c), Last: last, Progress: podmill.Progress{Messages: messages}}, now)
		return got.ContainerStatuses[0].State.Terminated.Message
	}
	many := Pod("default/p", Restart(corev1.RestartPolicyNever))
	for _, name := range strings.Split("abcdefghijkl", "") {
		many = Edit(many, Container(name, "x"))
	}
	failed := ended
	failed.Message = "cannot run"
	for _, tc := range []struct {
		name, got, want string
	}{
		{"as it was said", say(one, ended, nil, map[string]string{"a": "out of tea"}), "out of tea"},
		{"after what the runtime says", say(one, failed, nil, map[string]string{"a": "out of tea"}), "cannot run: out of tea"},
		{"nothing was said", say(one, failed, nil, map[string]string{"a": ""}), "cannot run"},
		{"at most 4096 bytes", say(one, ended, nil, map[string]string{"a": strings.Repeat("x", 5000)}), strings.Repeat("x", 4096)},
		{"twelve containers share 12 KiB", say(many, ended, nil, map[string]string{"a": strings.Repeat("x", 4096)}), strings.Repeat("x", 1024)},
		{"what is no text", say(one, ended, nil, map[string]string{"a": "a\xffb"}), "a\uFFFDb"},
		{"no half of a character", say(one, ended, nil, map[string]string{"a": strings.Repeat("x", 4095) + "é"}), strings.Repeat("x", 4095)},
	} {
		if tc.got != tc.want || !utf8.ValidString(tc.got) {
			t.Errorf("%s: %.40q of %d bytes, want %.40q of %d", tc.name, tc.got, len(tc.got), tc.want, len(tc.want))
		}
	}
	told := status.Generate(status.Input{Pod: one, Seen: seen(ended), Progress: podmill.Progress{Messages: map[string]string{"a": "out of tea"}}}, now)
	if got := say(one, ended, &told, nil); got != "out of tea" {
		t.Errorf("when it cannot be read any more it is %q", got)
	}
}
