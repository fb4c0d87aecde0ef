package csi

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
)

// While it is not certain that a volume was unstaged the next pod has it staged again: it would get an empty directory of the node's disk in the volume's place.
func TestAPodAfterAnUnstageInDoubt(t *testing.T) {
	for _, fault := range []string{"hang-after", "crash-after", "fail Internal busy"} {
		t.Run(fault, func(t *testing.T) {
			r := started(t, nil, WithTimeout(2*time.Second))
			data := r.bind()
			must(t, os.WriteFile(filepath.Join(data, "file"), nil, 0o600))
			first, second := persistent("first"), persistent("second")
			r.mount(first)
			r.driver.Fault("NodeUnstageVolume", fault)
			if err := r.UnmountVolumes(t.Context(), first.UID); err == nil {
				t.Fatal("it is certain")
			}
			r.driver.Fault("", "")
			if fault == "crash-after" {
				r.driver.Crashed()
				r.driver.Start()
			}
			if _, err := os.Stat(filepath.Join(r.mount(second), "file")); err != nil {
				t.Errorf("the second pod has another directory: %v", err)
			}
			if n := len(r.driver.Calls("NodeStageVolume")); n != 2 {
				t.Errorf("it was staged %d times", n)
			}
			r.unmount(first)
			if _, err := os.Stat(filepath.Join(data, "file")); err != nil || len(r.driver.Calls("NodeUnstageVolume")) != 1 {
				t.Errorf("it is taken away from the second: %v, %v", err, r.driver.Calls("NodeUnstageVolume"))
			}
			r.unmount(second)
		})
	}
}

// The agent is killed while a driver takes a volume away, and the pod comes back, as one of a file does: it is published again before containers start, and not taken for ready.
func TestAPodThatComesBackWhileItsVolumeIsTakenAway(t *testing.T) {
	for name, pod := range map[string]*corev1.Pod{"inline": inline("a"), "persistent": persistent("a")} {
		t.Run(name, func(t *testing.T) {
			r := started(t, nil)
			r.bind()
			r.mount(pod)
			r.driver.Fault("NodeUnpublishVolume", "hang")
			ctx, kill := context.WithCancel(t.Context())
			taken := make(chan error, 1)
			go func() { taken <- r.UnmountVolumes(ctx, pod.UID) }()
			r.eventually("the driver is asked", func() bool { return len(r.driver.Calls("NodeUnpublishVolume")) > 0 })
			kill()
			if err := <-taken; err == nil {
				t.Fatal("it is taken away")
			}
			r.driver.Fault("", "")
			r.restart()
			r.registered()
			r.mount(pod)
			if n := len(r.driver.Calls("NodePublishVolume")); n != 2 {
				t.Errorf("it was published %d times", n)
			}
			r.unmount(pod)
		})
	}
}

// A driver that publishes a volume and then refuses is asked to unpublish it: before it is unstaged, and so that the pod can go.
func TestADriverThatRefusesWhatItHasPublished(t *testing.T) {
	r := started(t, nil)
	r.bind()
	pod := persistent("a")
	r.driver.Fault("NodePublishVolume", "fail-after Internal its mode cannot be changed")
	r.notReady(pod)
	r.driver.Fault("", "")
	r.unmount(pod)
	if calls := r.asked(); !strings.HasSuffix(calls, "NodePublishVolume NodeUnpublishVolume NodeUnstageVolume") {
		t.Errorf("the driver was asked for %s", calls)
	}
}

// A claim is made anew, of a PersistentVolume of the same name, while the block device that it had before is still staged. The new one waits, and is not given the old one.
func TestABlockDeviceWhosePlaceIsTaken(t *testing.T) {
	r := started(t, nil)
	block := func(pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }
	device := func(pod *corev1.Pod) {
		pod.Spec.Containers[0].VolumeMounts = nil
		pod.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "v", DevicePath: "/dev/x"}}
	}
	r.bind(block)
	first, second := persistent("first", device), persistent("second", device)
	r.mount(first)
	r.driver.Fault("NodeUnstageVolume", "fail Internal busy")
	if err := r.UnmountVolumes(t.Context(), first.UID); err == nil {
		t.Fatal("it is unstaged")
	}
	r.driver.Volume("vol2")
	r.bind(block, func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = "vol2" })
	if why := r.notReady(second); !strings.Contains(why, "volume vol1 of CSI driver csi.test is still staged in its place, and goes when that driver unstages it") {
		t.Error(why)
	}
	r.unmount(second) // neither waits for the other
	r.notReady(second)
	r.driver.Fault("", "")
	r.unmount(first)
	r.mount(second)
	if got := r.request("NodeStageVolume"); !strings.Contains(got, `"volume_id": "vol2"`) {
		t.Errorf("staged: %s", got)
	}
	r.unmount(second)
}

// A volume stays staged that no pod has any more: it counts as in use until its driver has unstaged it, or it would be detached while it is mounted.
func TestAStageThatNoPodHasIsInUse(t *testing.T) {
	changed := make(chan struct{}, 100)
	r := joined(t, nil, storagev1.CSIDriverSpec{}, WithInUse(func() { changed <- struct{}{} }, always))
	r.bind()
	attached := &storagev1.VolumeAttachment{Status: storagev1.VolumeAttachmentStatus{Attached: true}}
	s := spec{record: record{DriverName: "csi.test", VolumeHandle: "vol1", NodeName: "node1"}}
	r.cluster.with(func() { r.cluster.attachments[s.attachment()] = attached })
	pod := persistent("a")
	must(t, r.umount(r.mount(pod)), os.RemoveAll(filepath.Join(r.root, "pods", string(pod.UID))))
	if names, err := r.drivers.InUse(); err != nil || len(names) != 1 {
		t.Errorf("%v are in use, %v", names, err)
	}
	for len(changed) > 0 {
		<-changed
	}
	must(t, r.drivers.unstageOrphans(t.Context(), "csi.test"))
	if names, err := r.drivers.InUse(); err != nil || len(names) != 0 || len(changed) != 1 {
		t.Errorf("%v are in use, %v, and that was told %d times", names, err, len(changed))
	}
}

// What the kubelet has staged is not taken from a pod whose record cannot be read: neither record says then whether it is the pod's.
func TestAStageOfTheKubelets(t *testing.T) {
	r := started(t, nil)
	r.bind()
	file := filepath.Join(filepath.Dir(r.mount(persistent("a"))), recordFile)
	good, err := os.ReadFile(file)
	must(t, err, os.WriteFile(file, []byte("{"), 0o600))
	must(t, record{DriverName: "csi.test", VolumeHandle: "vol1"}.write(r.drivers.layout.stage(record{DriverName: "csi.test", VolumeHandle: "vol1"}).dir))
	must(t, r.drivers.unstageOrphans(t.Context(), "csi.test"))
	if calls := r.driver.Calls("NodeUnstageVolume"); len(calls) > 0 {
		t.Error("it is unstaged under the pod")
	}
	must(t, os.WriteFile(file, good, 0o600))
}

// A file where a pod's volumes should be keeps no other pod's volume from being unstaged.
func TestAFileInThePlaceOfVolumes(t *testing.T) {
	r := started(t, nil)
	r.bind()
	file := filepath.Join(r.root, "pods/x/volumes")
	must(t, os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, nil, 0o600))
	pod := persistent("a")
	r.mount(pod)
	r.unmount(pod)
	if _, err := r.drivers.InUse(); err != nil {
		t.Error(err)
	}
	must(t, os.RemoveAll(filepath.Dir(file)))
}
