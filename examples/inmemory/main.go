// Inmemory is a node agent over the in-memory runtime of podmilltest: the same agent as minikubelet, anywhere, without root or containers.
// Its containers are scripts that the runtime itself understands.
package main

import (
	"context"
	"embed"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/staticpod"
)

//go:embed manifests/*.yaml
var manifests embed.FS

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	time.AfterFunc(8*time.Second, stop)
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	root, err := os.MkdirTemp("", "inmemory")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(root) }()
	if err := os.CopyFS(root, manifests); err != nil {
		return err
	}
	runtime := podmilltest.NewRuntime(podmilltest.WithImages(podmilltest.ScriptImage("example/shell:1", "sleep 1000")))
	defer runtime.Close()

	files := staticpod.NewDirectory(filepath.Join(root, "manifests"), "node1")
	a, err := agent.New(runtime, root, []podmill.PodSource{files}, agent.WithObjects(files), agent.WithStopPodsOnExit())
	if err != nil {
		return err
	}
	err = a.Run(ctx)
	fmt.Println(runtime.Log()) // all that the agent did, as a story
	return err
}
