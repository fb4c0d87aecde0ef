package testapi

import (
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Wire is what is between an agent and the API server, and can be cut.
type Wire struct {
	// Kubeconfig has the node's credentials, and leads over the wire.
	Kubeconfig string

	listener net.Listener
	to       string

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

// Wire returns a wire that is whole. Close it when who uses it has ended.
func (a *API) Wire() *Wire {
	a.Helper()
	server, err := url.Parse(a.NodeConfig.Host)
	if err != nil {
		a.Fatal(err)
	}
	w := &Wire{to: server.Host, conns: map[net.Conn]bool{}, Kubeconfig: filepath.Join(a.TempDir(), "kubeconfig")}
	if w.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		a.Fatal(err)
	}
	go w.serve()
	data, err := os.ReadFile(a.NodeKubeconfig)
	if err != nil {
		a.Fatal(err)
	}
	if err := os.WriteFile(w.Kubeconfig, []byte(strings.ReplaceAll(string(data), w.to, w.listener.Addr().String())), 0o600); err != nil {
		a.Fatal(err)
	}
	return w
}

func (w *Wire) serve() {
	for {
		conn, err := w.listener.Accept()
		if err != nil {
			return
		}
		go w.join(conn)
	}
}

func (w *Wire) join(conn net.Conn) {
	defer conn.Close()
	server, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer server.Close()
	w.mu.Lock()
	if w.cut {
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

// Cut takes the server away.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for conn := range w.conns {
		_ = conn.Close()
	}
}

// Mend brings the server back.
func (w *Wire) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
}

// Close cuts the wire for good.
func (w *Wire) Close() {
	_ = w.listener.Close()
	w.Cut()
}
