package checkpoint_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/checkpoint"
	"github.com/podmill/podmill/podmilltest"
)

// A node boots without its API server.
func Example() {
	dir, err := os.MkdirTemp("", "checkpoint")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	boot := func(api podmill.PodSource) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		c, err := checkpoint.Open(dir, checkpoint.WithPatience(10*time.Millisecond))
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = c.Source(api).Run(ctx, func(u podmill.PodUpdate) {
			fmt.Println(u.Op, u.Pods[0].Name)
			cancel()
		})
	}

	api := podmilltest.NewPodSource("api")
	api.Replace(podmilltest.Pod("default/web", podmilltest.Container("main", "web:1")))
	boot(api)

	away := podmilltest.NewPodSource("api") // it never answers
	boot(away)
	// Output:
	// SET web
	// UPDATE web
}
