package staticpod_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/staticpod"
)

func Example() {
	dir, err := os.MkdirTemp("", "manifests")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{
		"web.yaml": `
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers: [{name: main, image: "web:1", envFrom: [{configMapRef: {name: settings}}]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {COLOR: blue}
`,
		"wrong.yaml": `
apiVersion: v1
kind: Pod
metadata: {name: wrong}
spec:
  containers:
  - {name: main, imagee: "web:1"}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			fmt.Println(err)
			return
		}
	}

	manifests := staticpod.NewDirectory(dir, "node1", staticpod.WithObserver(staticpod.Observer{
		Problem: func(p staticpod.Problem) { fmt.Println(p.String()) },
	}))
	ctx, cancel := context.WithCancel(context.Background())
	err = manifests.Run(ctx, func(update podmill.PodUpdate) {
		for _, pod := range update.Pods {
			fmt.Println(update.Op, pod.Namespace, pod.Name, pod.Spec.Containers[0].Image)
			settings, err := manifests.ConfigMap(ctx, pod.Namespace, "settings")
			fmt.Println(settings.Data, err)
		}
		cancel()
	})
	fmt.Println(err)
	// Output:
	// wrong.yaml:7: pod wrong: spec.containers[0].imagee: unknown field (did you mean "image"?)
	// wrong.yaml:7: pod wrong: spec.containers[0].image: required value (say which image to run)
	// SET default web-node1 web:1
	// map[COLOR:blue] <nil>
	// <nil>
}
