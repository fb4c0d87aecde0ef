package main

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/apiserver"
)

// manifest writes a static pod of that name that sleeps for so long.
func (c *cluster) manifest(name, seconds string) {
	c.t.Helper()
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", namespace: " + c.Namespace + "}\nspec:\n  terminationGracePeriodSeconds: 0\n" +
		"  containers: [{name: main, image: \"" + busybox + "\", command: [sleep, \"" + seconds + "\"]}]\n"
	if err := os.WriteFile(filepath.Join(c.manifests, name+".yaml"), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) removeManifest(name string) {
	c.t.Helper()
	if err := os.Remove(filepath.Join(c.manifests, name+".yaml")); err != nil {
		c.t.Fatal(err)
	}
}

// A mirror through what can happen to it, on a real server and with a node's rights: it is removed by force, its pod changes, and both while no agent runs.
func TestAMirrorThroughItsRaces(t *testing.T) {
	c := newCluster(t)
	c.start()
	name := "web-" + c.Node
	sleeps := func(mirror *corev1.Pod) string { return mirror.Spec.Containers[0].Command[1] }
	shown := func(what, seconds string, not ...*corev1.Pod) *corev1.Pod {
		t.Helper()
		mirror := c.reaches(name, what, func(pod *corev1.Pod) bool {
			for _, n := range not {
				if n.UID == pod.UID {
					return false
				}
			}
			return sleeps(pod) == seconds && ready(pod)
		})
		c.Eventually("it is the one pod, and runs that", func() bool {
			own := c.own()
			return len(own) == 1 && own[0].Container("main") != nil && own[0].Container("main").State == podmill.StateRunning
		})
		return mirror
	}
	c.manifest("web", "100001")
	first := shown("is ready", "100001")
	runs := c.own()[0]
	owners := first.OwnerReferences
	if len(owners) != 1 || owners[0].Kind != "Node" || owners[0].UID != c.node().UID || first.Annotations[apiserver.AnnotationMirror] == "" ||
		first.Annotations[apiserver.AnnotationMirror] != first.Annotations[podmill.AnnotationConfigHash] || first.Annotations[podmill.AnnotationConfigSource] != "file" {
		t.Errorf("the mirror is %+v", first.ObjectMeta)
	}
	c.Delete("pods", name, 0)
	second := shown("is back after it was removed by force", "100001", first)
	if now := c.own()[0]; now.UID != runs.UID || now.Container("main").ID != runs.Container("main").ID {
		t.Errorf("the pod was touched: %+v", now)
	}

	c.manifest("web", "100002")
	third := shown("is what the manifest says now", "100002", first, second)
	c.Eventually("what it was has ended", func() bool { return c.seen(runs.UID).Empty() })

	c.signal(os.Kill)
	c.manifest("web", "100003")
	c.Delete("pods", name, 0)
	c.start()
	shown("is what the manifest has come to say while no agent ran", "100003", first, second, third)

	c.signal(os.Kill)
	c.removeManifest("web")
	c.start()
	c.gone(name)
	c.Eventually("nothing runs", func() bool { return len(c.own()) == 0 })

	other := c.CreatePod(sleeper(name)) // whose name it would have
	c.reaches(name, "is ready", ready)
	c.manifest("web", "100004")
	c.Eventually("both run", func() bool { return len(c.own()) == 2 })
	if now := c.Pod(name); now == nil || now.UID != other.UID || now.DeletionTimestamp != nil {
		t.Errorf("the pod of the API that has its name is %+v", now)
	}
	c.Delete("pods", name, 0)
	shown("is shown when the name is free", "100004", other)
}

// A Node that somebody deletes comes back as another, with all that it said. Its pods do not notice, and a new one is taken.
func TestANodeIsDeletedWithItsPodsOnIt(t *testing.T) {
	c := newCluster(t)
	c.args = append(c.args, "--node-labels", "tier=b")
	c.start()
	c.CreatePod(sleeper("stays"))
	stays := c.reaches("stays", "is ready", ready)
	before, first := c.seen(stays.UID).Container("main").ID, c.node()
	c.Delete("nodes", c.Node, -1)
	c.Eventually("another node is there, and ready", func() bool { now := c.node(); return now != nil && now.UID != first.UID && c.nodeReady() })
	if now := c.node(); now.Labels["tier"] != "b" || now.Status.NodeInfo.MachineID != first.Status.NodeInfo.MachineID {
		t.Errorf("the node is %+v", now)
	}
	c.CreatePod(sleeper("new"))
	c.reaches("new", "is ready", ready)
	if now := c.Pod("stays"); now.ResourceVersion != stays.ResourceVersion || c.seen(stays.UID).Container("main").ID != before {
		t.Errorf("the pod that was there was touched: %+v", now.Status)
	}
}
