package csi

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/volume"
)

func TestAccessModes(t *testing.T) {
	several := capabilities{csipb.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER: true}
	for _, tt := range []struct {
		modes []corev1.PersistentVolumeAccessMode
		can   capabilities
		want  string
	}{
		{nil, nil, "SINGLE_NODE_WRITER"},
		{[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteMany}, nil, "SINGLE_NODE_WRITER"},
		{[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}, nil, "SINGLE_NODE_WRITER"},
		{[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, several, "SINGLE_NODE_MULTI_WRITER"},
		{[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}, several, "SINGLE_NODE_SINGLE_WRITER"},
		{[]corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}, several, "MULTI_NODE_READER_ONLY"},
		{[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, several, "MULTI_NODE_MULTI_WRITER"},
	} {
		s := &spec{modes: tt.modes}
		if got := s.accessMode(tt.can).String(); got != tt.want {
			t.Errorf("%v with %v: %s, want %s", tt.modes, tt.can, got, tt.want)
		}
	}
}

// The names are those by which the control plane and earlier kubelets know a volume.
func TestNames(t *testing.T) {
	pod := podmilltest.Pod("a", podmilltest.UID("9ba4d38b-3b1c-4b0e-9d9c-4ad2f6f1a0aa"))
	v := &corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}}}
	s := specOf(volume.Mount{Pod: pod, Volume: v, Place: volume.Place{Name: "scratch"}}, "node1")
	if want := "csi-" + sha("9ba4d38b-3b1c-4b0e-9d9c-4ad2f6f1a0aascratch"); s.VolumeHandle != want {
		t.Errorf("handle %s, want %s", s.VolumeHandle, want)
	}
	s.VolumeHandle = "vol1"
	if want := "csi-" + sha("vol1dnode1"); s.attachment() != want {
		t.Errorf("attachment %s, want %s", s.attachment(), want)
	}
	l := layout{"/root"}
	if got, want := l.stage(record{DriverName: "d", VolumeHandle: "vol1"}).path, "/root/plugins/kubernetes.io/csi/d/"+sha("vol1")+"/globalmount"; got != want {
		t.Errorf("staged at %s, want %s", got, want)
	}
}

// Calls for one volume take turns, those for another do not wait, and nothing is kept of a volume that nobody works on.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all turns
		done, err := all.take(t.Context(), "a")
		must(t, err)
		other, err := all.take(t.Context(), "b")
		must(t, err)
		other()
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := all.take(impatient, "a"); err == nil {
			t.Error("two have the turn")
		}
		next := make(chan struct{})
		go func() {
			done, err := all.take(t.Context(), "a")
			must(t, err)
			done()
			close(next)
		}()
		synctest.Wait()
		done()
		<-next
		if len(all.held) != 0 {
			t.Errorf("kept: %v", all.held)
		}
	})
}
