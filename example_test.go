package podmill_test

import (
	"context"
	"log"
	"os"
	"os/signal"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	"github.com/podmill/podmill/cri"
	"github.com/podmill/podmill/staticpod"
)

// A first agent: the pods of a directory, on containerd, without a cluster.
func Example() {
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt)

	runtime, err := cri.Dial(ctx, "unix:///run/containerd/containerd.sock")
	if err != nil {
		log.Fatal(err)
	}
	manifests := staticpod.NewDirectory("/etc/podmill/manifests", "node1")
	a, err := agent.New(runtime, "/var/lib/podmill", []podmill.PodSource{manifests}, agent.WithObjects(manifests))
	if err != nil {
		log.Fatal(err)
	}
	if err := a.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
