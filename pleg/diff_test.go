package pleg

import (
	"fmt"
	"hash/maphash"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podmill/podmill"
)

func pod(ready bool, containers ...podmill.Container) *podmill.RuntimePod {
	return &podmill.RuntimePod{
		PodRef:     podmill.PodRef{UID: "u", Namespace: "ns", Name: "n"},
		Sandboxes:  []podmill.Sandbox{{ID: "s", Ready: ready, IPs: []string{"10.0.0.1"}}},
		Containers: containers,
	}
}

func c(id string, state podmill.State) podmill.Container {
	return podmill.Container{ID: id, State: state}
}

func TestDiff(t *testing.T) {
	otherIP := pod(true)
	otherIP.Sandboxes[0].IPs = []string{"10.0.0.2"}
	gone := &podmill.RuntimePod{PodRef: podmill.PodRef{UID: "u"}}
	for _, test := range []struct {
		name     string
		old, now *podmill.RuntimePod
		want     []string
	}{
		{"nothing", pod(true, c("1", podmill.StateRunning)), pod(true, c("1", podmill.StateRunning)), nil},
		{"never there", nil, gone, nil},
		{"first sight", nil, pod(true, c("1", podmill.StateRunning)), []string{"ContainerStarted s", "ContainerStarted 1"}},
		{"created", pod(true), pod(true, c("1", podmill.StateCreated)), []string{"ContainerChanged 1"}},
		{"started", pod(true, c("1", podmill.StateCreated)), pod(true, c("1", podmill.StateRunning)), []string{"ContainerStarted 1"}},
		{"came and went between two looks", pod(true), pod(true, c("1", podmill.StateExited)), []string{"ContainerDied 1"}},
		{"died", pod(true, c("1", podmill.StateRunning)), pod(true, c("1", podmill.StateExited)), []string{"ContainerDied 1"}},
		{"unknown is not dead", pod(true, c("1", podmill.StateRunning)), pod(true, c("1", podmill.StateUnknown)), []string{"ContainerChanged 1"}},
		{"replaced", pod(true, c("1", podmill.StateRunning)), pod(true, c("2", podmill.StateRunning)),
			[]string{"ContainerDied 1", "ContainerRemoved 1", "ContainerStarted 2"}},
		{"replaced, and still there", pod(true, c("1", podmill.StateRunning)), pod(true, c("2", podmill.StateRunning), c("1", podmill.StateExited)),
			[]string{"ContainerDied 1", "ContainerStarted 2"}},
		{"removed after its end", pod(true, c("1", podmill.StateExited)), pod(true), []string{"ContainerRemoved 1"}},
		{"sandbox died", pod(true), pod(false), []string{"ContainerDied s"}},
		{"another address", pod(true), otherIP, []string{"PodSync "}},
		{"gone", pod(false, c("1", podmill.StateExited)), gone, []string{"ContainerRemoved s", "ContainerRemoved 1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, e := range diff(test.old, test.now) {
				got = append(got, string(e.Type)+" "+e.ID)
				if e.Pod.Name != "n" || e.Pod.UID != "u" {
					t.Errorf("event of pod %s", e.Pod)
				}
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestDiffSeesWhatARuntimeLearnsLate(t *testing.T) {
	for name, learn := range map[string]func(*podmill.Container){
		"exit code": func(c *podmill.Container) { c.ExitCode = 137 },
		"reason":    func(c *podmill.Container) { c.Reason = "OOMKilled" },
		"message":   func(c *podmill.Container) { c.Message = "killed" },
		"end":       func(c *podmill.Container) { c.FinishedAt = time.Unix(2, 0) },
		"start":     func(c *podmill.Container) { c.StartedAt = time.Unix(1, 0) },
	} {
		later := c("1", podmill.StateExited)
		learn(&later)
		got := diff(pod(true, c("1", podmill.StateExited)), pod(true, later))
		if len(got) != 1 || got[0].Type != PodSync {
			t.Errorf("%s: told %v", name, got)
		}
	}
}

func TestDigest(t *testing.T) {
	seed := maphash.MakeSeed()
	seen := digestOfPod(seed, pod(true, c("2", podmill.StateRunning), c("1", podmill.StateExited)))
	line := func(id string, state podmill.State) podmill.Item { return podmill.Item{ID: id, State: state} }
	s, c1, c2 := line("s", podmill.StateRunning), line("1", podmill.StateExited), line("2", podmill.StateRunning)
	for _, test := range []struct {
		name  string
		lines []podmill.Item
		same  bool
	}{
		{"the same in another order", []podmill.Item{c1, s, c2}, true},
		{"nothing", nil, false},
		{"one less", []podmill.Item{s, c1}, false},
		{"one more", []podmill.Item{s, c1, c2, line("3", podmill.StateCreated)}, false},
		{"another", []podmill.Item{s, c1, line("3", podmill.StateRunning)}, false},
		{"another state", []podmill.Item{s, c1, line("2", podmill.StateExited)}, false},
		{"states exchanged", []podmill.Item{s, line("1", podmill.StateRunning), line("2", podmill.StateExited)}, false},
		{"another state of the sandbox", []podmill.Item{line("s", podmill.StateExited), c1, c2}, false},
		{"one doubled instead of another", []podmill.Item{s, c1, c1}, false},
	} {
		var sum digest
		for _, l := range test.lines {
			sum += digestOf(seed, l.ID, l.State)
		}
		if (sum == seen) != test.same {
			t.Errorf("%s: same is %v", test.name, sum == seen)
		}
	}
}

// listing is a runtime's listing of so many containers, three and a sandbox to a pod, and the state of a PLEG that knows them.
func listing(containers int) ([]podmill.Item, map[string]*podmill.RuntimePod) {
	var items []podmill.Item
	pods := map[string]*podmill.RuntimePod{}
	for i := range containers / 3 {
		ref := podmill.PodRef{UID: uid(i), Namespace: "default", Name: fmt.Sprint("pod-", i)}
		pod := &podmill.RuntimePod{PodRef: ref, Sandboxes: []podmill.Sandbox{{ID: fmt.Sprintf("%064x", i*4), Ready: true}}}
		items = append(items, podmill.Item{Pod: ref, ID: pod.Sandboxes[0].ID, State: podmill.StateRunning})
		for j := range 3 {
			name, id := fmt.Sprint("c", j), fmt.Sprintf("%064x", i*4+j+1)
			pod.Containers = append(pod.Containers, podmill.Container{ID: id, Name: name, State: podmill.StateRunning})
			items = append(items, podmill.Item{Pod: ref, ID: id, Container: name, State: podmill.StateRunning})
		}
		pods[string(ref.UID)] = pod
	}
	return items, pods
}
