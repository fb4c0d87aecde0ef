package memapi

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Here is what a cluster does to a server beside its node.

// Create keeps a new object, and returns it as the server has made it.
func (s *Server) Create(resource string, object Object) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	made, _ := object.DeepCopyObject().(Object)
	return s.add(key{resource, made.GetNamespace(), made.GetName()}, made)
}

// CreatePod keeps a new pod, bound to the node.
func (s *Server) CreatePod(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Spec.NodeName = s.node
	made, _ := s.Create("pods", pod).(*corev1.Pod)
	return made
}

// Pod returns a pod, nil if there is none of that name. It is read-only.
func (s *Server) Pod(namespace, name string) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod, _ := s.objects[key{"pods", namespace, name}].(*corev1.Pod)
	return pod
}

// Pods returns all pods. They are read-only.
func (s *Server) Pods() []*corev1.Pod { return all[*corev1.Pod](s) }

// Events returns the events that were written. They are read-only.
func (s *Server) Events() []*corev1.Event { return all[*corev1.Event](s) }

func all[T Object](s *Server) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []T
	for _, k := range s.sorted() {
		if object, ok := s.objects[k].(T); ok {
			found = append(found, object)
		}
	}
	return found
}

// Change makes a new version of an object. One that is not there stays so.
func (s *Server) Change(resource, namespace, name string, change func(Object)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key{resource, namespace, name}
	if known := s.objects[k]; known != nil {
		next, _ := known.DeepCopyObject().(Object)
		change(next)
		s.put(k, next, "MODIFIED")
	}
}

// Delete deletes an object; a pod waits for its node, for as long as it says where grace is negative.
func (s *Server) Delete(resource, namespace, name string, grace int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key{resource, namespace, name}
	if known := s.objects[k]; known != nil && grace < 0 {
		s.remove(k, known, nil)
	} else if known != nil {
		s.remove(k, known, &grace)
	}
}

// Forget lets nobody go on from before now, and ends all watches without a word.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.log = nil
	for w := range s.watches {
		w.lines.end()
	}
}

// Versions returns every version of a pod of that UID that there was since the last Forget, the oldest first. They are read-only.
func (s *Server) Versions(uid types.UID) []*corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*corev1.Pod
	for _, c := range s.log {
		if pod, ok := c.object.(*corev1.Pod); ok && pod.UID == uid {
			all = append(all, pod)
		}
	}
	return all
}
