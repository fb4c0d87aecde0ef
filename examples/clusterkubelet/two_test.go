package main

import (
	"context"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/apiserver"
	"github.com/podmill/podmill/examples/internal/machine"
	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/internal/testenv/testapi"
	"github.com/podmill/podmill/podmilltest"
)

// Nothing is global: two nodes in one process, at a real server, each with pods of its own. When one of them ends the other goes on.
func TestTwoNodesInOneProcess(t *testing.T) {
	testenv.Root(t)
	apis := []*testapi.API{testapi.New(t), testapi.New(t)}
	var stops []func()
	isReady := func(api *testapi.API, name string) {
		t.Helper()
		api.Eventually(name+" is ready", func() bool { pod := api.Pod(name); return pod != nil && ready(pod) })
	}
	for _, api := range apis {
		rt := podmilltest.NewRuntime(podmilltest.WithImages(podmilltest.ScriptImage(busybox, "sleep 1000000")))
		t.Cleanup(rt.Close)
		client, err := apiserver.NewClient(api.NodeConfig, api.Node)
		if err != nil {
			t.Fatal(err)
		}
		root := t.TempDir()
		ctx, cancel := context.WithCancel(context.Background())
		parts, ended := composed(ctx, t, api.Node, root, client, rt), make(chan error, 1)
		go func() { ended <- machine.Together(ctx, parts...) }()
		stops = append(stops, func() {
			for _, name := range []string{"first", "second"} {
				api.Delete("pods", name, 0)
			}
			api.Eventually("nothing is left on disk", func() bool {
				left, _ := filepath.Glob(filepath.Join(root, "pods", "*"))
				return len(left) == 0
			})
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("node %s ended with: %v", api.Node, err)
			}
		})
	}
	for _, api := range apis {
		api.CreatePod(sleeper("first"))
	}
	for _, api := range apis {
		isReady(api, "first")
		node := &corev1.Node{}
		if !api.Get("nodes", api.Node, node) || node.Labels[corev1.LabelHostname] != api.Node {
			t.Errorf("node %s is %+v", api.Node, node.ObjectMeta)
		}
	}
	stops[0]()
	apis[1].CreatePod(sleeper("second"))
	isReady(apis[1], "second")
	stops[1]()
}
