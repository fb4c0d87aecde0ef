package podmilltest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

func TestSinkFailsAndForgets(t *testing.T) {
	sink, pod := NewStatusSink(), Pod("a")
	sink.Fail(func(*corev1.Pod) error { return errFault })
	if err := sink.UpdateStatus(t.Context(), pod, statusOf(1)); !errors.Is(err, errFault) {
		t.Errorf("error %v, want the fault", err)
	}
	sink.Fail(nil)
	for _, n := range []int{1, 1, 2} {
		if err := sink.UpdateStatus(t.Context(), pod, statusOf(n)); err != nil {
			t.Fatal(err)
		}
	}
	if all := sink.History(pod.UID); len(all) != 2 || sink.Status(pod.UID).Message != "status 2" || sink.Finished(pod.UID) {
		t.Errorf("history %+v", all)
	}
	sink.Forget(pod.UID)
	if err := sink.UpdateStatus(t.Context(), pod, statusOf(3)); !errors.Is(err, podmill.ErrGone) {
		t.Errorf("error %v, want ErrGone", err)
	}
}

func TestSourceIsNotSyncedBeforeItsSetIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := NewPodSource("test")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var ops []podmill.PodOp
		ended := make(chan error, 1)
		go func() { ended <- source.Run(ctx, func(u podmill.PodUpdate) { ops = append(ops, u.Op) }) }()
		source.Upsert(Pod("a"))
		synctest.Wait()
		if len(ops) != 0 {
			t.Errorf("delivered %v before the set is known", ops)
		}
		source.Replace(Pod("a"))
		source.Upsert(Pod("b"))
		source.Delete(Pod("a"))
		synctest.Wait()
		if want := []podmill.PodOp{podmill.ReplacePods, podmill.UpsertPods, podmill.DeletePods}; !slices.Equal(ops, want) {
			t.Errorf("delivered %v, want %v", ops, want)
		}
		source.Fail(errFault)
		if err := <-ended; !errors.Is(err, errFault) {
			t.Errorf("Run: %v, want the fault", err)
		}
	})
}

func TestObjectsTellOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := NewObjects()
		ctx, cancel := context.WithCancel(t.Context())
		var told []podmill.ObjectRef
		ended := make(chan error, 1)
		go func() {
			ended <- objects.WatchObjects(ctx, func(ref podmill.ObjectRef) { told = append(told, ref) })
		}()
		synctest.Wait()
		meta := metav1.ObjectMeta{Namespace: "ns", Name: "x"}
		objects.SetConfigMap(&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"k": "v"}})
		objects.SetSecret(&corev1.Secret{ObjectMeta: meta})
		if cm, err := objects.ConfigMap(t.Context(), "ns", "x"); err != nil || cm.Data["k"] != "v" {
			t.Errorf("ConfigMap: %+v, %v", cm, err)
		}
		objects.Fail(errFault)
		if _, err := objects.Secret(t.Context(), "ns", "x"); !errors.Is(err, errFault) {
			t.Errorf("Secret: %v, want the fault", err)
		}
		objects.Fail(nil)
		objects.Delete(podmill.ObjectRef{Kind: "Secret", Namespace: "ns", Name: "x"})
		if _, err := objects.Secret(t.Context(), "ns", "x"); !errors.Is(err, podmill.ErrNotFound) {
			t.Errorf("Secret: %v, want ErrNotFound", err)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("WatchObjects: %v", err)
		}
		objects.SetSecret(&corev1.Secret{ObjectMeta: meta})
		want := []podmill.ObjectRef{
			{Kind: "ConfigMap", Namespace: "ns", Name: "x"}, {Kind: "Secret", Namespace: "ns", Name: "x"},
			{Kind: "Secret", Namespace: "ns", Name: "x"},
		}
		if !slices.Equal(told, want) {
			t.Errorf("told of %v, want %v", told, want)
		}
		if n := objects.Reads(); n != 3 {
			t.Errorf("%d reads, want 3", n)
		}
	})
}

func TestHalfUnmountedPodIsNotMounted(t *testing.T) {
	m, pod := NewVolumeMounter("/v"), Pod("a", Volume("x", corev1.VolumeSource{}))
	if volumes, err := m.MountVolumes(t.Context(), pod); err != nil || volumes["x"].HostPath != "/v/"+string(pod.UID)+"/x" {
		t.Errorf("MountVolumes: %v, %v", volumes, err)
	}
	m.Fail(func(types.UID, string) error { return errFault })
	if err := m.UnmountVolumes(t.Context(), pod.UID); !errors.Is(err, errFault) {
		t.Errorf("UnmountVolumes: %v, want the fault", err)
	}
	m.Fail(nil)
	if _, err := m.MountVolumes(t.Context(), pod); err == nil {
		t.Error("a pod that is half unmounted was mounted")
	}
	if err := m.UnmountVolumes(t.Context(), pod.UID); err != nil {
		t.Error(err)
	}
	if _, err := m.MountVolumes(t.Context(), pod); err != nil {
		t.Error(err)
	}
}

func TestRecorderTellsEventsAsLines(t *testing.T) {
	recorder := NewEventRecorder()
	pod := Pod("shop/cart", Container("web", "i"))
	recorder.Event(podmill.ReferenceTo(pod, "web"), corev1.EventTypeNormal, "Pulled", "it is here")
	recorder.Event(podmill.ReferenceTo(pod, ""), corev1.EventTypeWarning, "FailedMount", "it is not")
	want := "Normal Pulled shop/cart spec.containers{web}: it is here\nWarning FailedMount shop/cart: it is not\n"
	if got := recorder.String(); got != want {
		t.Errorf("events:\n%swant:\n%s", got, want)
	}
	if got := recorder.Reasons(); !slices.Equal(got, []string{"Pulled", "FailedMount"}) {
		t.Errorf("reasons %v", got)
	}
}
