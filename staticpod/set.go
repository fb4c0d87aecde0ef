package staticpod

import (
	"crypto/sha256"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// file is a manifest: what it last held that was good, and what is wrong with it now.
type file struct {
	name     string
	sum      [sha256.Size]byte // of what was last decoded
	decoded  bool
	good     content
	problems []Problem
}

// take puts what was read into a file. What is no good leaves what was there before. A pod that is as it was stays the same object, so that
// it keeps the time when it was first seen, and whoever compares sees at once that nothing has happened.
func (f *file) take(o origin, data []byte, now time.Time) {
	sum := sha256.Sum256(data)
	if f.decoded && sum == f.sum {
		return
	}
	f.sum, f.decoded = sum, true
	var found content
	if found, f.problems = o.decode(f.name, data, now); !usable(f.problems) {
		return
	}
	for i, pod := range found.pods {
		if old := slices.IndexFunc(f.good.pods, func(old *corev1.Pod) bool { return samePod(old, pod) }); old >= 0 {
			found.pods[i] = f.good.pods[old]
		}
	}
	f.good = found
}

// samePod compares all but the time when the pods were first seen.
func samePod(a, b *corev1.Pod) bool {
	if a.UID != b.UID {
		return false
	}
	b = b.DeepCopy()
	b.Annotations[podmill.AnnotationConfigSeen] = a.Annotations[podmill.AnnotationConfigSeen]
	return reflect.DeepEqual(a, b)
}

// fail notes that a file cannot be read. It is decoded when it can.
func (f *file) fail(p Problem) {
	p.File = f.name
	f.problems, f.decoded = []Problem{p}, false
}

// set is what all files together hold.
type set struct {
	pods     []*corev1.Pod
	objects  map[podmill.ObjectRef]any // *corev1.ConfigMap, *corev1.Secret or *nodev1.RuntimeClass
	problems []Problem
}

// merge puts files together, which are in the order of their names. Of two objects of one name, or two pods of one UID, the first is taken.
func merge(files []*file) *set {
	m := &merger{set: &set{objects: map[podmill.ObjectRef]any{}}, owners: map[claim]string{}}
	for _, f := range files {
		m.set.problems = append(m.set.problems, f.problems...)
		for _, pod := range f.good.pods {
			name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}.String()
			if m.own(f, "pod "+name, claim{"name", name}, claim{"UID", string(pod.UID)}) {
				m.set.pods = append(m.set.pods, pod)
			}
		}
		for _, object := range f.good.configMaps {
			m.object(f, podmill.ObjectRef{Kind: "ConfigMap", Namespace: object.Namespace, Name: object.Name}, object)
		}
		for _, object := range f.good.secrets {
			m.object(f, podmill.ObjectRef{Kind: "Secret", Namespace: object.Namespace, Name: object.Name}, object)
		}
		for _, object := range f.good.classes {
			m.object(f, podmill.ObjectRef{Kind: "RuntimeClass", Name: object.Name}, object)
		}
	}
	return m.set
}

// claim is what only one object can have: its name or its UID.
type claim struct{ what, value string }

type merger struct {
	set    *set
	owners map[claim]string // the names of files
}

func (m *merger) object(f *file, ref podmill.ObjectRef, object any) {
	name := strings.ToLower(ref.Kind) + " " + path.Join(ref.Namespace, ref.Name)
	if m.own(f, name, claim{"name", name}) {
		m.set.objects[ref] = object
	}
}

// own gives an object what it claims, and reports whether it has got it. If something before it has any of it, it gets none, and that is said.
func (m *merger) own(f *file, object string, claims ...claim) bool {
	for _, c := range claims {
		if owner, taken := m.owners[c]; taken {
			m.set.problems = append(m.set.problems, Problem{
				File: f.name, Object: object, Message: fmt.Sprintf("is not used: %s comes first and has one of the same %s", owner, c.what),
				Cure: "remove one of them, or give it another " + c.what, Warning: true,
			})
			return false
		}
	}
	for _, c := range claims {
		m.owners[c] = f.name
	}
	return true
}

// changed returns the objects that are not the same in two sets.
func changed(old, now *set) (refs []podmill.ObjectRef) {
	for ref, object := range now.objects {
		if !reflect.DeepEqual(old.objects[ref], object) {
			refs = append(refs, ref)
		}
	}
	for ref := range old.objects {
		if now.objects[ref] == nil {
			refs = append(refs, ref)
		}
	}
	return refs
}
