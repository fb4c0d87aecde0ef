package sandbox

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// reached is a pod that is reached at ports of the node.
func reached(name string, ports ...corev1.ContainerPort) *corev1.Pod {
	pod := newPod(name)
	pod.UID = types.UID("uid-" + name)
	pod.Spec.Containers = []corev1.Container{{Name: "main", Ports: ports}}
	return pod
}

func TestHostPortsBelongToOnePod(t *testing.T) {
	tcp := func(port int32) corev1.ContainerPort {
		return corev1.ContainerPort{HostPort: port, Protocol: corev1.ProtocolTCP}
	}
	udp := corev1.ContainerPort{HostPort: 53, Protocol: corev1.ProtocolUDP}
	at := func(ip string) corev1.ContainerPort { return corev1.ContainerPort{HostPort: 80, HostIP: ip} }
	for name, tc := range map[string]struct {
		has, wants []corev1.ContainerPort
		clash      string
	}{
		"the same":               {[]corev1.ContainerPort{tcp(80)}, []corev1.ContainerPort{tcp(443), tcp(80)}, "spec.containers[0].ports[1].hostPort: 80/TCP of the node is taken by pod default/first(uid-first)"},
		"another":                {[]corev1.ContainerPort{tcp(80)}, []corev1.ContainerPort{tcp(81)}, ""},
		"another protocol":       {[]corev1.ContainerPort{udp}, []corev1.ContainerPort{tcp(53)}, ""},
		"TCP by default":         {[]corev1.ContainerPort{{HostPort: 53}}, []corev1.ContainerPort{tcp(53)}, "53/TCP"},
		"one address each":       {[]corev1.ContainerPort{at("127.0.0.1")}, []corev1.ContainerPort{at("10.0.0.1")}, ""},
		"the same address":       {[]corev1.ContainerPort{at("127.0.0.1")}, []corev1.ContainerPort{at("::ffff:127.0.0.1")}, "80/TCP"},
		"every address":          {[]corev1.ContainerPort{at("127.0.0.1")}, []corev1.ContainerPort{at("0.0.0.0")}, "80/TCP"},
		"every address, of IPv6": {[]corev1.ContainerPort{at("::")}, []corev1.ContainerPort{at("127.0.0.1")}, "80/TCP"},
		"no port of the node":    {[]corev1.ContainerPort{{ContainerPort: 80}}, []corev1.ContainerPort{{ContainerPort: 80}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			events := &told{}
			m := New(&fake{}, WithResolvConf(""), WithEvents(events))
			first, second := reached("first", tc.has...), reached("second", tc.wants...)
			for range 2 { // and again when a container restarts
				if _, err := m.Spec(first, 0); err != nil {
					t.Fatal(err)
				}
			}
			_, err := m.Spec(second, 0)
			var reason *podmill.ReasonError
			switch {
			case tc.clash == "" && err != nil:
				t.Fatal(err)
			case tc.clash == "":
				return
			case !errors.As(err, &reason) || reason.Reason != "NodePorts" || !strings.Contains(reason.Message, tc.clash):
				t.Fatalf("%v, want %q", err, tc.clash)
			}
			if n := len(*events); n == 0 || !strings.Contains((*events)[n-1], "second Warning FailedCreatePodSandBox: Failed to create pod sandbox: ") {
				t.Errorf("events %v", *events)
			}
			if err := m.Stop(t.Context(), &podmill.RuntimePod{PodRef: podmill.RefOf(first)}); err != nil {
				t.Fatal(err)
			}
			if _, err := m.Spec(second, 0); err == nil {
				t.Error("a pod that is stopped has lost its ports; it may be about to have a new sandbox")
			}
			if err := m.Remove(t.Context(), &podmill.RuntimePod{PodRef: podmill.RefOf(first)}); err != nil {
				t.Fatal(err)
			}
			if _, err := m.Spec(second, 0); err != nil {
				t.Errorf("the pod that had it is gone: %v", err)
			}
		})
	}
}

// Init containers have ended when the pod is reached; a sidecar has not.
func TestHostPortsOfInitContainers(t *testing.T) {
	m, always := New(&fake{}, WithResolvConf("")), corev1.ContainerRestartPolicyAlways
	ports := []corev1.ContainerPort{{HostPort: 80}}
	pod := reached("first")
	pod.Spec.InitContainers = []corev1.Container{{Name: "init", Ports: ports}, {Name: "sidecar", Ports: []corev1.ContainerPort{{HostPort: 81}}, RestartPolicy: &always}}
	if _, err := m.Spec(pod, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Spec(reached("second", ports...), 0); err != nil {
		t.Error(err)
	}
	other := pod.DeepCopy()
	other.UID, other.Name = "uid-third", "third"
	if _, err := m.Spec(other, 0); err == nil || !strings.Contains(err.Error(), "spec.initContainers[1].ports[0].hostPort: 81/TCP") {
		t.Errorf("error %v", err)
	}
}

// After a restart of the agent a port is still that of the pod that runs: whether that was looked at already or is only known from its status.
func TestHostPortsAfterARestart(t *testing.T) {
	port := corev1.ContainerPort{HostPort: 80}
	running := func(name string, since int) *corev1.Pod {
		pod := reached(name, port)
		start := metav1.NewTime(time.Unix(int64(since), 0))
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.7", StartTime: &start}
		return pod
	}
	old, later, fresh := running("old", 100), running("later", 200), reached("new", port)

	seen := New(&fake{}, WithResolvConf(""))
	seen.Choose(old, &podmill.RuntimePod{PodRef: podmill.RefOf(old), Sandboxes: []podmill.Sandbox{{ID: "s", Ready: true, IPs: []string{"10.0.0.7"}}}})
	if _, err := seen.Spec(fresh, 0); err == nil || !strings.Contains(err.Error(), "taken by pod default/old") {
		t.Errorf("seen to run: %v", err)
	}

	told := New(&fake{}, WithResolvConf(""), WithNeighbours(func() []*corev1.Pod { return []*corev1.Pod{fresh, later, old} }))
	for _, pod := range []*corev1.Pod{fresh, later} {
		if _, err := told.Spec(pod, 0); err == nil {
			t.Errorf("pod %s has what runs elsewhere", pod.Name)
		}
	}
	if _, err := told.Spec(old, 0); err != nil {
		t.Errorf("two pods wait for each other: %v", err)
	}

	old.Status.Phase, later.Status.Phase = corev1.PodFailed, corev1.PodSucceeded
	over := New(&fake{}, WithResolvConf(""), WithNeighbours(func() []*corev1.Pod { return []*corev1.Pod{fresh, later, old} }))
	if _, err := over.Spec(fresh, 0); err != nil {
		t.Errorf("pods that are over have ports: %v", err)
	}
}
