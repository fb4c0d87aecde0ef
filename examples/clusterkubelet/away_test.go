package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// While the API server is away a node goes on as it was: what is deleted there runs on, static pods come and go (B005), and also an agent that is started
// then stops nothing. When it is back the node does what it has missed.
func TestTheAPIServerIsAway(t *testing.T) {
	c := newCluster(t)
	w := c.Wire()
	c.after = append(c.after, w.Close)
	c.args = append(c.args, "--kubeconfig", w.Kubeconfig)
	c.start()
	for _, name := range []string{"deleted", "stays"} {
		c.CreatePod(sleeper(name))
	}
	deleted, stays := c.reaches("deleted", "is ready", ready), c.reaches("stays", "is ready", ready)
	before := c.seen(stays.UID)
	w.Cut()
	c.Delete("pods", "deleted", -1)
	c.CreatePod(sleeper("new"))
	static := filepath.Join(c.manifests, "static.yaml")
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: static, namespace: " + c.Namespace + "}\nspec:\n  terminationGracePeriodSeconds: 0\n" +
		"  containers: [{name: main, image: \"" + busybox + "\", command: [sleep, \"100000\"]}]\n"
	if err := os.WriteFile(static, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Eventually("the static pod runs", func() bool { return len(c.own()) == 3 })
	c.signal(os.Kill)
	c.start()
	if err := os.Remove(static); err != nil {
		t.Fatal(err)
	}
	c.Eventually("the static pod has stopped", func() bool { return len(c.own()) == 2 })
	time.Sleep(3 * time.Second) // an agent that takes silence for an order would act on it by now
	if c.seen(deleted.UID).Container("main") == nil {
		t.Error("a pod was stopped while the API server was away")
	}
	w.Mend()
	c.gone("deleted")
	c.reaches("new", "is ready", ready)
	if now := c.seen(stays.UID); now.Container("main").ID != before.Container("main").ID {
		t.Errorf("the pod that stays was touched: %+v, is %+v", before.Container("main"), now.Container("main"))
	}
	if pod := c.Pod("stays"); pod.UID != stays.UID || !ready(pod) || pod.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod that stays is %+v", pod.Status)
	}
}
