package main

import (
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// wire is what is between the agent and the API server, and can be cut.
type wire struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	away  bool
	conns map[net.Conn]bool
}

// throughAWire has the agent reach the API server through a wire.
func throughAWire(c *cluster) *wire {
	c.t.Helper()
	server, err := url.Parse(c.NodeConfig.Host)
	if err != nil {
		c.t.Fatal(err)
	}
	w := &wire{to: server.Host, conns: map[net.Conn]bool{}}
	if w.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		c.t.Fatal(err)
	}
	go w.serve()
	c.after = append(c.after, func() {
		_ = w.listener.Close()
		w.set(true)
	})
	data, err := os.ReadFile(c.NodeKubeconfig)
	if err != nil {
		c.t.Fatal(err)
	}
	path := filepath.Join(c.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(data), w.to, w.listener.Addr().String())), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.args = append(c.args, "--kubeconfig", path)
	return w
}

func (w *wire) serve() {
	for {
		conn, err := w.listener.Accept()
		if err != nil {
			return
		}
		go w.join(conn)
	}
}

func (w *wire) join(conn net.Conn) {
	defer conn.Close()
	server, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer server.Close()
	w.mu.Lock()
	if w.away {
		w.mu.Unlock()
		return
	}
	w.conns[conn] = true
	w.mu.Unlock()
	go func() {
		_, _ = io.Copy(server, conn)
		_ = server.Close()
	}()
	_, _ = io.Copy(conn, server)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, conn)
}

// set takes the server away, or brings it back.
func (w *wire) set(away bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = away
	for conn := range w.conns {
		if away {
			_ = conn.Close()
		}
	}
}

// While the API server is away a node goes on as it was: what is deleted there runs on, static pods come and go (B005), and also an agent that is started
// then stops nothing. When it is back the node does what it has missed.
func TestTheAPIServerIsAway(t *testing.T) {
	c := newCluster(t)
	w := throughAWire(c)
	c.start()
	for _, name := range []string{"deleted", "stays"} {
		c.CreatePod(sleeper(name))
	}
	deleted, stays := c.reaches("deleted", "is ready", ready), c.reaches("stays", "is ready", ready)
	before := c.seen(stays.UID)
	w.set(true)
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
	w.set(false)
	c.gone("deleted")
	c.reaches("new", "is ready", ready)
	if now := c.seen(stays.UID); now.Container("main").ID != before.Container("main").ID {
		t.Errorf("the pod that stays was touched: %+v, is %+v", before.Container("main"), now.Container("main"))
	}
	if pod := c.Pod("stays"); pod.UID != stays.UID || !ready(pod) || pod.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod that stays is %+v", pod.Status)
	}
}
