package main

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/internal/testenv"
)

// with adds fields to a sleeper's spec.
func with(pod, fields string) string {
	return strings.Replace(pod, "spec:\n", "spec:\n  "+fields+"\n", 1)
}

// TestWhatTheNodeHas shows that a port of the node is one pod's at a time, and that a pod runs by the class that a manifest has.
func TestWhatTheNodeHas(t *testing.T) {
	n := newNode(t, testenv.Containerd(t))
	image := "podmill.test/busybox:1"
	port := func(name string) string {
		return strings.Replace(sleeper(name, image, "0"), `sleep 1; done"]`, `sleep 1; done"], ports: [{containerPort: 80, hostPort: 47181}]`, 1)
	}
	n.write("first.yaml", port("first"))
	n.start()
	first := n.reaches("first", "is ready", ready)
	n.write("second.yaml", port("second"))
	n.write("class.yaml", "{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: usual}, handler: runc}")
	n.write("classed.yaml", with(sleeper("classed", image, "0"), "runtimeClassName: usual"))
	n.write("unknown.yaml", with(sleeper("unknown", image, "0"), "runtimeClassName: none"))

	second := n.reaches("second", "waits for the port", waitsFor("NodePorts"))
	if got := second.Status.ContainerStatuses[0].State.Waiting.Message; !strings.Contains(got, "47181/TCP of the node is taken by pod default/first-"+n.name) {
		t.Errorf("it waits with %s", got)
	}
	classed := n.reaches("classed", "is ready", ready)
	if got := n.seen(classed.UID).Sandboxes[0].RuntimeHandler; got != "runc" {
		t.Errorf("its handler is %q", got)
	}
	n.reaches("unknown", "is refused", func(pod *corev1.Pod) bool {
		return waitsFor("CreateContainerConfigError")(pod) &&
			strings.Contains(pod.Status.ContainerStatuses[0].State.Waiting.Message, `spec.runtimeClassName: RuntimeClass "none" not found`)
	})
	n.crash()
	n.start()
	n.reaches("second", "still waits after a restart of the agent", waitsFor("NodePorts"))
	n.remove("first.yaml")
	n.gone(first)
	n.reaches("second", "has the port", ready)
}
