package csi

import (
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A volume whose server does not answer stays ready: whoever looks into it waits for ever, or is told that it is no directory.
func TestAVolumeWhoseServerIsAway(t *testing.T) {
	r := started(t, nil)
	r.bind()
	pod := persistent("a")
	path := r.mount(pod)
	device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skip("this kernel has no file systems of processes: ", err)
	}
	// As a network file system whose server never answers.
	must(t, unix.Mount("away", path, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", device.Fd())))
	defer func() {
		must(t, device.Close()) // whoever waits is told that the server has gone
		r.eventually("it is unmounted", func() bool { return r.umount(path) == nil })
	}()
	ready := make(chan error, 1)
	go func() {
		_, err := r.MountVolumes(t.Context(), pod)
		ready <- err
	}()
	select {
	case err := <-ready:
		must(t, err)
	case <-time.After(time.Minute):
		t.Error("the pod waits for the server")
	}
	if got := r.asked(); got != "NodeStageVolume NodePublishVolume" {
		t.Errorf("the driver was asked for %s", got)
	}
}
