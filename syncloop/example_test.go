package syncloop_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/syncloop"
)

// printer is workers that say what they are told.
type printer struct{ done context.CancelFunc }

func (p printer) Update(pod *corev1.Pod)     { fmt.Println("update", pod.Name) }
func (p printer) Remove(uid types.UID)       { fmt.Println("remove", uid) }
func (p printer) Sync(uid types.UID)         { fmt.Println("sync", uid); p.done() }
func (p printer) Orphan(*podmill.RuntimePod) {}
func (p printer) Leftover(types.UID)         {}
func (p printer) Known(types.UID) bool       { return false }

// twoSets is a source that wants a pod and then another.
type twoSets struct{ inbox *syncloop.Inbox }

func (s twoSets) Name() string { return "file" }

func (s twoSets) Run(_ context.Context, deliver func(podmill.PodUpdate)) error {
	deliver(podmill.PodUpdate{Op: podmill.ReplacePods, Pods: []*corev1.Pod{newPod("a", "nginx")}})
	deliver(podmill.PodUpdate{Op: podmill.ReplacePods, Pods: []*corev1.Pod{newPod("b", "nginx")}})
	deliver(podmill.PodUpdate{Op: podmill.UpsertPods}) // by now the loop has done with the one before
	s.inbox.Put("b")                                   // something happens to the pod
	return nil
}

func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	inbox := syncloop.NewInbox()
	loop := syncloop.New(printer{cancel}, inbox, []podmill.PodSource{twoSets{inbox}})
	fmt.Println(loop.Run(ctx))
	pods, synced := loop.Pods()
	fmt.Println(len(pods), synced)
	// Output:
	// update pod-a
	// remove a
	// update pod-b
	// sync b
	// <nil>
	// 1 true
}
