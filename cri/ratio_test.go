//go:build !race

package cri

import (
	"testing"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/ratio"
)

// Reading a listing of which nothing has changed costs a fraction of what protobuf's own reader does.
func TestReadingAListBesideItsBaseline(t *testing.T) {
	sandboxes, containers := node(100)
	messages := wire(t, sandboxes, containers)
	var snap podmill.Snapshot
	ratio.AtMost(t, 0.3, func() {
		if err := fill(&snap, messages); err != nil {
			t.Fatal(err)
		}
	}, func() {
		var s runtimeapi.ListPodSandboxResponse
		var c runtimeapi.ListContainersResponse
		if proto.Unmarshal(messages[0], &s) != nil || proto.Unmarshal(messages[1], &c) != nil {
			t.Fatal("unreadable")
		}
	})
}

// To translate the start of a pod of three containers takes no longer than to write the messages.
func TestTranslatingBesideWriting(t *testing.T) {
	translate := startOfThree(t)
	messages := translate()
	ratio.AtMost(t, 1, func() { translate() }, func() { marshal(t, messages) })
}
