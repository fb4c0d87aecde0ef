package probe_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/probe"
)

// A provider whose back end is no container runtime probes with a func that runs commands, and a plain struct that says what runs.
func Example() {
	exec := func(_ context.Context, id string, command []string) (*podmill.ExecResult, error) {
		return &podmill.ExecResult{ExitCode: 0}, nil
	}
	changed := make(chan types.UID, 1)
	probes := probe.New(exec, func(pod types.UID) { changed <- pod })
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- probes.Run(ctx) }()

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "web"}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", ReadinessProbe: &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"ready?"}}},
	}}}
	seen := &podmill.RuntimePod{Containers: []podmill.Container{{ID: "c1", Name: "main", State: podmill.StateRunning}}}

	fmt.Println(probes.Probe(pod, seen, false)["c1"].Ready)
	fmt.Println("look again at", <-changed)
	fmt.Println(probes.Probe(pod, seen, false)["c1"].Ready)
	cancel()
	fmt.Println(<-ended)
	// Output:
	// false
	// look again at web
	// true
	// <nil>
}
