package staticpod

import (
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// file is one manifest file: what it last held that was good, and what is wrong with it now.
type file struct {
	name     string
	content  string // what was last read, to see a change
	good     manifest
	problems []Problem
}

// set is what all files together hold.
type set struct {
	pods     []*corev1.Pod
	objects  map[podmill.ObjectRef]any // *corev1.ConfigMap or *corev1.Secret
	problems []Problem
}

// merge puts files together, which are in the order of their names. Of two things with one name, or two pods with one UID, the first is taken.
func merge(files []*file) *set {
	s := &set{objects: map[podmill.ObjectRef]any{}}
	names, uids := map[types.NamespacedName]string{}, map[types.UID]string{}
	for _, f := range files {
		s.problems = append(s.problems, f.problems...)
		for _, pod := range f.good.pods {
			name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
			other, taken := names[name]
			why := "name"
			if !taken {
				other, taken = uids[pod.UID]
				why = "UID"
			}
			if taken {
				s.problems = append(s.problems, Problem{
					File: f.name, Object: "pod " + name.String(), Warning: true,
					Message: fmt.Sprintf("it is not run: %s has a pod of this %s, and comes first", other, why),
				})
				continue
			}
			names[name], uids[pod.UID] = f.name, f.name
			s.pods = append(s.pods, pod)
		}
		for _, m := range f.good.configMaps {
			s.object(f.name, podmill.ObjectRef{Kind: "ConfigMap", Namespace: m.Namespace, Name: m.Name}, m)
		}
		for _, m := range f.good.secrets {
			s.object(f.name, podmill.ObjectRef{Kind: "Secret", Namespace: m.Namespace, Name: m.Name}, m)
		}
	}
	return s
}

func (s *set) object(file string, ref podmill.ObjectRef, object any) {
	if _, taken := s.objects[ref]; taken {
		s.problems = append(s.problems, Problem{
			File: file, Object: fmt.Sprintf("%s %s/%s", ref.Kind, ref.Namespace, ref.Name), Warning: true,
			Message: "it is not used: a file that comes first has one of this name",
		})
		return
	}
	s.objects[ref] = object
}

// changed returns the objects that are not the same in two sets.
func changed(old, now *set) []podmill.ObjectRef {
	var refs []podmill.ObjectRef
	for ref, object := range now.objects {
		if was, ok := old.objects[ref]; !ok || was != object && !reflect.DeepEqual(was, object) {
			refs = append(refs, ref)
		}
	}
	for ref := range old.objects {
		if _, ok := now.objects[ref]; !ok {
			refs = append(refs, ref)
		}
	}
	return refs
}

// refresh puts new content into a file. Content that is no good leaves what was there before. Pods that are as they were stay the same objects, so that
// whoever compares them sees at once that nothing has happened.
func (f *file) refresh(content string, found manifest, problems []Problem) {
	f.content, f.problems = content, problems
	if !usable(problems) {
		return
	}
	for i, pod := range found.pods {
		same := slices.IndexFunc(f.good.pods, func(old *corev1.Pod) bool {
			return old.UID == pod.UID && old.Annotations[podmill.AnnotationConfigHash] == pod.Annotations[podmill.AnnotationConfigHash]
		})
		if same >= 0 {
			found.pods[i] = f.good.pods[same]
		}
	}
	f.good = found
}
