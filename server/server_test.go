package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/server"
)

type backend struct {
	synced bool
	sick   error
	log    string
}

func (b *backend) Pods() ([]*corev1.Pod, bool) {
	return []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}}, b.synced
}

func (b *backend) Healthy() error { return b.sick }

func (b *backend) Log(_ context.Context, _, pod, container string, previous bool) (string, func() bool, error) {
	if previous {
		return "", nil, errors.New("previous terminated container not found")
	}
	if pod != "web" || container != "server" {
		return "", nil, fmt.Errorf("container %s of pod %s: %w", container, pod, podmill.ErrNotFound)
	}
	return b.log, func() bool { return false }, nil
}

func (b *backend) Exec(_ context.Context, _, _, _ string, command []string) (*podmill.ExecResult, error) {
	return &podmill.ExecResult{Stdout: []byte(strings.Join(command, "|")), ExitCode: 3}, nil
}

func ask(b *backend, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	server.New(b).ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

func TestServer(t *testing.T) {
	log := filepath.Join(t.TempDir(), "0.log")
	if err := os.WriteFile(log, []byte("2026-01-02T03:04:05Z stdout F one\n2026-01-02T03:04:06Z stderr F two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	up := &backend{synced: true, log: log}
	for _, tc := range []struct {
		name           string
		backend        *backend
		method, target string
		code           int
		body           string
	}{
		{"healthy", up, "GET", "/healthz", 200, "ok"},
		{"not healthy", &backend{sick: errors.New("pleg was last seen active 4m ago")}, "GET", "/healthz", 500, "pleg was last seen"},
		{"pods", up, "GET", "/pods", 200, `"phase":"Running"`},
		{"B093: no partial list", &backend{}, "GET", "/pods", 503, "not every source"},
		{"log", up, "GET", "/containerLogs/default/web/server", 200, "one\ntwo\n"},
		{"tail", up, "GET", "/containerLogs/default/web/server?tailLines=1&follow=true", 200, "two\n"},
		{"bad number", up, "GET", "/containerLogs/default/web/server?tailLines=-1", 400, `tailLines="-1"`},
		{"since", up, "GET", "/containerLogs/default/web/server?sinceTime=2026-01-02T03:04:06Z", 200, "two\n"},
		{"since when", up, "GET", "/containerLogs/default/web/server?sinceTime=yesterday", 400, `sinceTime="yesterday"`},
		{"since two times", up, "GET", "/containerLogs/default/web/server?sinceTime=2026-01-02T03:04:06Z&sinceSeconds=1", 400, "sinceSeconds"},
		{"nothing before", up, "GET", "/containerLogs/default/web/server?previous=true", 400, "previous terminated container not found"},
		{"no such container", up, "GET", "/containerLogs/default/web/other", 404, "not found"},
		{"log file gone", &backend{log: log + ".not"}, "GET", "/containerLogs/default/web/server", 500, "no such file"},
		{"run", up, "POST", "/run/default/web/server?cmd=echo&cmd=a+b", 200, "echo|a b"},
		{"run nothing", up, "POST", "/run/default/web/server", 400, "no cmd"},
		{"wrong method", up, "GET", "/run/default/web/server?cmd=ls", 405, ""},
		{"unknown path", up, "GET", "/attach", 404, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := ask(tc.backend, tc.method, tc.target)
			if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.body) {
				t.Errorf("%d %q; want %d and %q in it", w.Code, w.Body, tc.code, tc.body)
			}
		})
	}
	if code := ask(up, "POST", "/run/default/web/server?cmd=false").Header().Get(server.ExitCodeHeader); code != "3" {
		t.Errorf("exit code %q, want 3", code)
	}
}

func ExampleNew() {
	mux := http.NewServeMux()
	mux.Handle("/", server.New(&backend{synced: true}))
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	fmt.Println(w.Code, w.Body)
	// Output: 200 ok
}
