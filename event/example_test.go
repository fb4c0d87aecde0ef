package event_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/event"
)

// Events go to the terminal, and those that warn to someone who cares.
func ExampleTee() {
	terminal := event.Func(func(about corev1.ObjectReference, _, reason, message string) {
		fmt.Printf("%s/%s %s: %s\n", about.Namespace, about.Name, reason, message)
	})
	warnings := 0
	pager := event.Func(func(_ corev1.ObjectReference, eventType, _, _ string) {
		if eventType == corev1.EventTypeWarning {
			warnings++
		}
	})
	events := event.Tee(terminal, pager, event.Discard())

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	events.Event(podmill.ReferenceTo(pod, ""), corev1.EventTypeNormal, "Pulling", `Pulling image "web:1"`)
	events.Event(podmill.ReferenceTo(pod, ""), corev1.EventTypeWarning, "Failed", `Failed to pull image "web:1": not found`)
	fmt.Println(warnings)
	// Output:
	// shop/web Pulling: Pulling image "web:1"
	// shop/web Failed: Failed to pull image "web:1": not found
	// 1
}
