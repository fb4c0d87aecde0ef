package pleg

import (
	"cmp"
	"hash/maphash"
	"math/bits"
	"slices"

	"github.com/podmill/podmill"
)

// digest stands for a set of sandboxes and containers with their states. It is the sum of a hash of each, so that the order in
// which a runtime lists them does not matter; nothing at all is zero.
type digest uint64

func digestOf(seed maphash.Seed, id string, state podmill.State) digest {
	return digest(bits.RotateLeft64(maphash.String(seed, id), 16*int(state)))
}

// digestOfPod is what the lines of a listing about a pod add up to, if they say what an observation says.
func digestOfPod(seed maphash.Seed, pod *podmill.RuntimePod) digest {
	var sum digest
	for i := range pod.Sandboxes {
		sum += digestOf(seed, pod.Sandboxes[i].ID, stateOf(&pod.Sandboxes[i]))
	}
	for i := range pod.Containers {
		sum += digestOf(seed, pod.Containers[i].ID, pod.Containers[i].State)
	}
	return sum
}

// sketch adds a line of a listing to what the listing tells of a pod, nil before the first.
func sketch(pod *podmill.RuntimePod, line *podmill.Item) *podmill.RuntimePod {
	if pod == nil {
		pod = &podmill.RuntimePod{PodRef: line.Pod}
	}
	if line.Container == "" {
		pod.Sandboxes = append(pod.Sandboxes, podmill.Sandbox{ID: line.ID, Attempt: line.Attempt, Ready: line.State == podmill.StateRunning})
		slices.SortFunc(pod.Sandboxes, func(a, b podmill.Sandbox) int { return cmp.Compare(b.Attempt, a.Attempt) })
		return pod
	}
	pod.Containers = append(pod.Containers, podmill.Container{ID: line.ID, Name: line.Container, Attempt: line.Attempt, State: line.State})
	slices.SortFunc(pod.Containers, func(a, b podmill.Container) int { return cmp.Compare(b.Attempt, a.Attempt) })
	return pod
}
