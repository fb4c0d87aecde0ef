package testenv

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/podmill/podmill"
)

// Own returns what the agent of that owner has in a runtime, which other tests' agents use too. A pod that cannot be read, as
// one of containerd's while its network goes, may be anybody's: it is looked for again.
func Own(t testing.TB, runtime podmill.Runtime, owner string) []*podmill.RuntimePod {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		own, err := ownedBy(runtime, owner)
		if err == nil {
			return own
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func ownedBy(runtime podmill.Runtime, owner string) ([]*podmill.RuntimePod, error) {
	ctx := context.Background() // also in a clean-up
	var snap podmill.Snapshot
	if err := runtime.ListPods(ctx, &snap); err != nil {
		return nil, err
	}
	var own []*podmill.RuntimePod
	for i := range snap.Items {
		uid := snap.Items[i].Pod.UID
		if slices.ContainsFunc(snap.Items[:i], func(before podmill.Item) bool { return before.Pod.UID == uid }) {
			continue
		}
		pod, err := runtime.InspectPod(ctx, uid)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(pod.Sandboxes, func(s podmill.Sandbox) bool { return s.Labels[podmill.LabelOwner] == owner }) {
			own = append(own, pod)
		}
	}
	return own, nil
}
