package podworkers_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/podworkers"
)

// printer is a Syncer whose pods run on paper.
type printer struct{ synced chan struct{} }

func (p printer) SyncPod(_ context.Context, pod *corev1.Pod) (end *podmill.Kill, err error) {
	fmt.Println("run", pod.Name, "with", pod.Spec.Containers[0].Image)
	p.synced <- struct{}{}
	return nil, nil
}

func (p printer) SyncTerminatingPod(_ context.Context, pod *corev1.Pod, t podmill.Termination) error {
	fmt.Println("stop", pod.Name, "within", t.GracePeriodSeconds, "s:", t.Reason)
	return nil
}

func (p printer) SyncTerminatingRuntimePod(_ context.Context, pod *podmill.RuntimePod) error {
	fmt.Println("stop", pod.Name, "which nobody knows")
	return nil
}

func (p printer) SyncTerminatedPod(_ context.Context, pod *corev1.Pod) error {
	fmt.Println("clean up after", pod.Name)
	p.synced <- struct{}{}
	return nil
}

func Example() {
	syncer := printer{synced: make(chan struct{})}
	w := podworkers.New(syncer)

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()

	web := podmilltest.Pod("web", podmilltest.Container("main", "httpd:2.4"))
	w.Update(web)
	<-syncer.synced

	w.Update(podmilltest.Edit(web, func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "httpd:2.5" }))
	<-syncer.synced

	grace := int64(5)
	stopped := w.Kill(web.UID, podmill.Kill{GracePeriodSeconds: &grace, Reason: "Evicted"})
	<-stopped
	<-syncer.synced

	cancel()
	fmt.Println(<-done)
	for _, p := range w.Pods() {
		fmt.Println(p.Name, "is", p.State, "-", p.Reason)
	}
	// Output:
	// run web with httpd:2.4
	// run web with httpd:2.5
	// stop web within 5 s: Evicted
	// clean up after web
	// <nil>
	// web is finished - killed: Evicted
}
