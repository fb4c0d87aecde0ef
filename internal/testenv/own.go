package testenv

import (
	"context"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// Seen returns what a runtime holds of a pod.
func Seen(t testing.TB, runtime podmill.Lister, uid types.UID) (pod *podmill.RuntimePod) {
	t.Helper()
	insist(t, func() (err error) {
		pod, err = runtime.InspectPod(context.Background(), uid) // also in a clean-up
		return err
	})
	return pod
}

// Own returns what the agent of that owner has in a runtime, which other tests' agents use too.
func Own(t testing.TB, runtime podmill.Lister, owner string) []*podmill.RuntimePod {
	t.Helper()
	var snap podmill.Snapshot
	insist(t, func() error { return runtime.ListPods(context.Background(), &snap) })
	var own []*podmill.RuntimePod
	for i := range snap.Items {
		uid := snap.Items[i].Pod.UID
		if slices.ContainsFunc(snap.Items[:i], func(before podmill.Item) bool { return before.Pod.UID == uid }) {
			continue
		}
		pod := Seen(t, runtime, uid) // one that cannot be read yet may be anybody's
		if slices.ContainsFunc(pod.Sandboxes, func(s podmill.Sandbox) bool { return s.Labels[podmill.LabelOwner] == owner }) {
			own = append(own, pod)
		}
	}
	return own
}

// insist looks until there is an answer: containerd has none about a pod while its network goes.
func insist(t testing.TB, look func() error) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		err := look()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
