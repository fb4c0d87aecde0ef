package cri_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/podmill/podmill/cri"
)

// What is wrong with an endpoint is told in words that a person can act on.
func ExampleDial() {
	runtime, err := cri.Dial(context.Background(), "unix:///nowhere/containerd.sock", cri.WithPatience(0))
	if err != nil {
		what, _, _ := strings.Cut(err.Error(), " (") // and gRPC's words
		fmt.Println(what)
		return
	}
	defer runtime.Close()
	// Output: container runtime at unix:///nowhere/containerd.sock: there is no socket at /nowhere/containerd.sock: is the runtime running, and is this its CRI socket?
}
