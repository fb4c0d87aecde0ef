package csi

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill/volume/internal/canary"
)

// The calls in which a driver can go wrong.
var onTheWayIn, onTheWayOut = []string{"NodeStageVolume", "NodePublishVolume"}, []string{"NodeUnpublishVolume", "NodeUnstageVolume"}

// A driver that hangs is given up, and people are told which one for what; it holds up no pod that has nothing to do with it.
func TestADriverThatHangs(t *testing.T) {
	for _, call := range append(onTheWayIn, onTheWayOut...) {
		t.Run(call, func(t *testing.T) {
			r := started(t, nil, WithTimeout(time.Second))
			r.bind()
			pod := persistent("a")
			r.driver.Fault(call, "hang")
			in := call == "NodeStageVolume" || call == "NodePublishVolume"
			var why string
			if in {
				why = r.notReady(pod)
			} else {
				r.mount(pod)
			}
			if err := r.UnmountVolumes(t.Context(), pod.UID); err != nil {
				why = err.Error()
			}
			if want := "CSI driver csi.test did not answer " + call + " within 1s, see what keeps it"; !strings.Contains(why, want) {
				t.Errorf("error %s, want %s", why, want)
			}
			if in {
				return
			}
			r.driver.Fault("", "")
			r.unmount(pod)
			if left := r.left(); left != "" {
				t.Errorf("left: %s", left)
			}
		})
	}
}

// While one volume is stuck in its driver, other pods with volumes of the same driver go on, and so does the clean-up after them.
func TestAHangHoldsUpNobodyElse(t *testing.T) {
	r := started(t, nil)
	r.bind()
	r.driver.Fault("NodeStageVolume", "hang")
	stuck := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := r.MountVolumes(ctx, persistent("stuck"))
		stuck <- err
	}()
	r.eventually("one hangs", func() bool { return r.asked() == "NodeStageVolume" })
	other := inline("other")
	r.mount(other)
	r.unmount(other)
	select {
	case err := <-stuck:
		t.Errorf("it does not hang: %v", err)
	default:
	}
	cancel()
	if err := <-stuck; err == nil {
		t.Error("it is ready")
	}
}

// A driver that crashes, before or after it has done what it was asked, is asked again when it is back.
func TestADriverThatCrashes(t *testing.T) {
	for _, call := range append(onTheWayIn, onTheWayOut...) {
		for _, when := range []string{"crash", "crash-after"} {
			t.Run(call+" "+when, func(t *testing.T) {
				r := started(t, nil)
				data := r.bind()
				pod := persistent("a")
				r.driver.Fault(call, when)
				back := func() {
					r.driver.Crashed()
					r.driver.Fault("", "")
					r.driver.Start()
				}
				if call == onTheWayIn[0] || call == onTheWayIn[1] {
					ready := make(chan error, 1)
					go func() {
						_, err := r.MountVolumes(t.Context(), pod)
						ready <- err
					}()
					back()
					must(t, <-ready)
					r.unmount(pod)
					return
				}
				must(t, os.WriteFile(filepath.Join(r.mount(pod), "file"), nil, 0o600))
				if err := r.UnmountVolumes(t.Context(), pod.UID); err == nil || !strings.Contains(err.Error(), "CSI driver csi.test cannot be reached for "+call) {
					t.Errorf("error %v", err)
				}
				back()
				r.eventually("the volume is taken away", func() bool { return r.UnmountVolumes(t.Context(), pod.UID) == nil })
				if _, err := os.Stat(filepath.Join(data, "file")); err != nil || r.left() != "" {
					t.Errorf("%v, left: %s", err, r.left())
				}
			})
		}
	}
}

// The agent is killed while it waits for a driver that has done what it was asked. The next one, which knows only what is on disk, takes all away.
func TestAnAgentThatIsKilledMeanwhile(t *testing.T) {
	for _, call := range append(onTheWayIn, onTheWayOut...) {
		for name, pod := range map[string]*corev1.Pod{"inline": inline("a"), "persistent": persistent("a")} {
			t.Run(call+" "+name, func(t *testing.T) {
				r := started(t, nil)
				r.bind()
				if call == "NodeUnpublishVolume" || call == "NodeUnstageVolume" {
					r.mount(pod)
				}
				r.driver.Fault(call, "hang-after")
				ctx, kill := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer kill()
				if _, err := r.MountVolumes(ctx, pod); err == nil {
					_ = r.UnmountVolumes(ctx, pod.UID)
				}
				r.driver.Fault("", "")
				r.restart()
				r.registered()
				must(t, r.Cleanup(t.Context(), func(types.UID) bool { return false }))
				if left, mounts := r.left(), r.mounts(); left != "" || len(mounts) > 0 {
					t.Errorf("left: %s, mounted: %v", left, mounts)
				}
			})
		}
	}
}

// A driver's word is checked: a volume that it has not published, or not where it should, is not ready, and nothing is followed that it put there.
func TestADriverThatLiesOfPublishing(t *testing.T) {
	for fault, want := range map[string]string{
		"nothing": "and there is nothing at", "elsewhere": "and there is nothing at", "file": "there is no directory", "link": "there is no directory",
	} {
		t.Run(fault, func(t *testing.T) {
			r := started(t, nil)
			pod := inline("a")
			r.driver.Fault("NodePublishVolume", fault)
			why := r.notReady(pod)
			if !strings.Contains(why, "CSI driver csi.test says that volume csi-") || !strings.Contains(why, want) {
				t.Error(why)
			}
			r.driver.Fault("", "")
			if fault == "elsewhere" {
				// What it has mounted there nobody has asked for, and nobody takes away.
				err := r.UnmountVolumes(t.Context(), pod.UID)
				if err == nil || !strings.Contains(err.Error(), "directory not empty") {
					t.Errorf("error %v", err)
				}
				r.unmountElsewhere(pod)
			}
			r.unmount(pod)
		})
	}
}

// A driver that says that a volume is taken away, and leaves it mounted, loses nobody's data.
func TestADriverThatLiesOfUnpublishing(t *testing.T) {
	for _, call := range onTheWayOut {
		r := started(t, nil)
		data := r.bind()
		canary.Fill(t, data)
		pod := persistent("a")
		r.mount(pod)
		r.driver.Fault(call, "nothing")
		err := r.UnmountVolumes(t.Context(), pod.UID)
		if err == nil || !strings.Contains(err.Error(), "its CSI driver says that it is taken away, and it is still mounted at "+r.root) {
			t.Errorf("%s: error %v", call, err)
		}
		r.driver.Fault("", "")
		r.unmount(pod)
	}
}

// A driver that refuses is quoted. It has nothing of the volume then, so that a pod which is deleted leaves nothing and needs no driver for that.
func TestADriverThatRefuses(t *testing.T) {
	for _, call := range onTheWayIn {
		r := started(t, nil)
		r.bind()
		pod := persistent("a")
		if call == "NodePublishVolume" {
			pod = inline("a")
		}
		r.driver.Fault(call, "fail Internal the disk is full")
		if why := r.notReady(pod); !strings.Contains(why, call+" of CSI driver csi.test: rpc error: code = Internal desc = the disk is full") {
			t.Error(why)
		}
		r.driver.Stop()
		r.eventually("the driver has gone", func() bool { d, _ := r.drivers.registry.find("csi.test"); return d == nil })
		r.unmount(pod)
		if left := r.left(); left != "" {
			t.Errorf("%s, left: %s", call, left)
		}
	}
}

// A driver whose own server does not answer says so at once, and is quoted: it has answered itself.
func TestADriverWhoseServerDoesNotAnswer(t *testing.T) {
	r := started(t, nil)
	r.bind()
	pod := persistent("a")
	r.driver.Fault("NodeStageVolume", "fail DeadlineExceeded its server does not answer")
	if why := r.notReady(pod); !strings.Contains(why, "NodeStageVolume of CSI driver csi.test: rpc error: code = DeadlineExceeded desc = its server does not answer") {
		t.Error(why)
	}
	r.driver.Fault("", "")
	r.unmount(pod)
}

// A volume cannot be taken away without its driver: it stays, is named, and goes when the driver is back.
func TestUnmountingWithoutTheDriver(t *testing.T) {
	r := started(t, nil)
	r.bind()
	pod := persistent("a")
	r.mount(pod)
	r.driver.Stop()
	r.eventually("the driver has gone", func() bool { d, _ := r.drivers.registry.find("csi.test"); return d == nil })
	err := r.UnmountVolumes(t.Context(), pod.UID)
	if err == nil || !strings.Contains(err.Error(), `UnmountVolume.TearDown failed for volume "pv" : driver name csi.test not found in the list of registered CSI drivers`) {
		t.Errorf("error %v", err)
	}
	r.driver.Start()
	r.registered()
	r.unmount(pod)
}

// What is staged for a pod whose directory somebody has removed is unstaged when its driver registers.
func TestAStageThatNoPodHas(t *testing.T) {
	r := started(t, nil)
	r.bind()
	pod := persistent("a")
	r.mount(pod)
	place := filepath.Join(r.root, "pods", string(pod.UID), "volumes/kubernetes.io~csi/pv")
	must(t, r.umount(filepath.Join(place, "mount")), os.RemoveAll(filepath.Join(r.root, "pods", string(pod.UID))))
	r.restart()
	r.eventually("it is unstaged", func() bool { return r.left() == "" && len(r.mounts()) == 0 })
}

// What cannot be unstaged at first, because its driver is not itself ready, is tried again: nobody else comes for it.
func TestAStageThatNoPodHasIsTriedAgain(t *testing.T) {
	r := started(t, nil)
	r.bind()
	pod := persistent("a")
	must(t, r.umount(r.mount(pod)), os.RemoveAll(filepath.Join(r.root, "pods", string(pod.UID))))
	r.driver.Fault("NodeUnstageVolume", "fail Unavailable its server is away")
	r.restart()
	r.eventually("it was tried", func() bool { return len(r.driver.Calls("NodeUnstageVolume")) > 0 })
	if r.left() == "" {
		t.Fatal("it is unstaged already")
	}
	r.driver.Fault("", "")
	r.eventually("it is unstaged", func() bool { return r.left() == "" && len(r.mounts()) == 0 })
	if n := len(r.heard); n != 2 {
		t.Errorf("it has registered %d times, and should have once an agent", n)
	}
}

// A record that cannot be read stays, with what it is of, and is named. It hinders no other pod.
func TestARecordThatCannotBeRead(t *testing.T) {
	r := started(t, nil)
	pod, other := inline("a"), inline("b")
	path := r.mount(pod)
	file := filepath.Join(filepath.Dir(path), recordFile)
	good, err := os.ReadFile(file)
	must(t, err, os.WriteFile(file, []byte("{"), 0o600))
	r.restart()
	r.registered()
	err = r.UnmountVolumes(t.Context(), pod.UID)
	if err == nil || !strings.Contains(err.Error(), file+" cannot be read, by which the volume could be unpublished") {
		t.Errorf("error %v", err)
	}
	r.mount(other)
	r.unmount(other)
	must(t, os.WriteFile(file, good, 0o600))
}
