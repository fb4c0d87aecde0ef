package apiserver

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/references"
)

// Follow returns the source with its pods' objects watched while it runs: those of a pod are watched before the pod is delivered.
func (o *Objects) Follow(source podmill.PodSource) podmill.PodSource {
	return &followed{PodSource: source, objects: o}
}

type followed struct {
	podmill.PodSource
	objects *Objects
}

// Run implements [podmill.PodSource]. It returns when the watches that it began have ended.
func (f *followed) Run(ctx context.Context, deliver func(podmill.PodUpdate)) error {
	use := func(ref podmill.ObjectRef) { f.objects.use(ctx, ref) }
	use(services())
	defer f.objects.leave(services())
	users := newUsers(use, f.objects.leave)
	defer users.update(podmill.PodUpdate{Op: podmill.ReplacePods})
	return f.PodSource.Run(ctx, func(u podmill.PodUpdate) {
		users.update(u)
		deliver(u)
	})
}

// users knows which pods refer to which objects. use is called when a pod begins to refer to an object, leave when it does not any more.
type users struct {
	use, leave func(podmill.ObjectRef)
	pods       map[types.UID]map[podmill.ObjectRef]bool
}

func newUsers(use, leave func(podmill.ObjectRef)) *users {
	return &users{use: use, leave: leave, pods: map[types.UID]map[podmill.ObjectRef]bool{}}
}

// update takes in what a source delivers. What goes on to be referred to is never left on the way.
func (u *users) update(update podmill.PodUpdate) {
	before := map[types.UID]map[podmill.ObjectRef]bool{}
	if update.Op == podmill.ReplacePods {
		before, u.pods = u.pods, before
	}
	for _, pod := range update.Pods {
		if known, ok := u.pods[pod.UID]; ok {
			before[pod.UID] = known
			delete(u.pods, pod.UID)
		}
		if update.Op != podmill.DeletePods && starts(pod) {
			u.add(pod)
		}
	}
	for _, refs := range before {
		for ref := range refs {
			u.leave(ref)
		}
	}
}

func (u *users) add(pod *corev1.Pod) {
	refs := map[podmill.ObjectRef]bool{}
	for _, ref := range references.Of(pod) {
		if !refs[ref] && (ref.Kind == "ConfigMap" || ref.Kind == "Secret") {
			refs[ref] = true
			u.use(ref)
		}
	}
	if name := pod.Spec.RuntimeClassName; name != nil && *name != "" {
		class := podmill.ObjectRef{Kind: runtimeClass, Name: *name}
		refs[class] = true
		u.use(class)
	}
	if len(refs) > 0 {
		u.pods[pod.UID] = refs
	}
}

// starts reports whether a container of the pod may still be started.
func starts(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}
