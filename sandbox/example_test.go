package sandbox_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/sandbox"
)

// runtime is a runtime that gives every sandbox the same address.
type runtime struct{ pod podmill.RuntimePod }

func (r *runtime) RunSandbox(_ context.Context, spec *podmill.SandboxSpec) (string, error) {
	r.pod.Sandboxes = []podmill.Sandbox{{ID: "5fa3", Attempt: spec.Attempt, Ready: true, IPs: []string{"10.88.0.4"}}}
	return "5fa3", nil
}
func (r *runtime) StopSandbox(context.Context, string) error   { return nil }
func (r *runtime) RemoveSandbox(context.Context, string) error { return nil }
func (r *runtime) InspectPod(context.Context, types.UID) (*podmill.RuntimePod, error) {
	return &r.pod, nil
}

// The sandbox of a pod dies, and the pod gets another.
func Example() {
	ctx := context.Background()
	m := sandbox.New(&runtime{}, sandbox.WithResolvConf(""))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "7d1"}}
	seen := &podmill.RuntimePod{Sandboxes: []podmill.Sandbox{{ID: "0c92", Attempt: 0, Ready: false}}}

	current, attempt, why := m.Choose(pod, seen)
	fmt.Println(current != nil, why)
	spec, err := m.Spec(pod, attempt)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := m.Stop(ctx, seen); err != nil {
		fmt.Println(err)
		return
	}
	if current, err = m.Run(ctx, spec); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(spec.Hostname, current.ID, current.Attempt, current.IPs)
	// Output:
	// false no sandbox is ready
	// web 5fa3 1 [10.88.0.4]
}
