package csi_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/volume"
	"github.com/podmill/podmill/volume/csi"
)

func Example() {
	root, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(root)
	drivers, err := csi.New(root, "node1")
	if err != nil {
		fmt.Println(err)
		return
	}
	volumes, err := volume.New(root, volume.WithPlugins(drivers), volume.WithPatience(time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- drivers.Run(ctx) }()

	pod := podmilltest.Pod("default/web",
		podmilltest.Container("web", "busybox", podmilltest.VolumeMount("data", "/data")),
		podmilltest.Volume("data", corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "hostpath.csi.k8s.io"}}))
	_, err = volumes.MountVolumes(ctx, pod) // would wait for the driver, for two minutes by default
	fmt.Println(strings.ReplaceAll(err.Error(), root, "<root>"))

	cancel()
	fmt.Println(<-ended)
	// Output:
	// mount volumes of pod default/web(82b3ade9-d00c-d164-2a4d-420e670d6cd9): unmounted volumes=[data]: MountVolume.SetUp failed for volume "data" : driver name hostpath.csi.k8s.io not found in the list of registered CSI drivers: see that it runs on this node and registers in <root>/plugins_registry
	// <nil>
}
