package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/httpget"
)

// patient is a timeout that nothing on loopback needs.
const patient = 20 * time.Second

// found carries out a probe, on loopback.
func found(t *testing.T, h handlers, p corev1.ProbeHandler, timeout time.Duration) finding {
	t.Helper()
	h.http = httpget.NewClient()
	return h.probe(t.Context(), target{
		container: &corev1.Container{Name: "main", Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}},
		id:        "c1", address: "127.0.0.1", probe: &corev1.Probe{ProbeHandler: p}, timeout: timeout,
	})
}

func portOf(a net.Addr) intstr.IntOrString { return intstr.FromInt32(int32(a.(*net.TCPAddr).Port)) }

// B080: what a server says that fails is not repeated; a redirect to another host is a warning.
func TestHTTPGet(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "fine") })
	mux.HandleFunc("/bad", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret", http.StatusInternalServerError) })
	mux.HandleFunc("/low", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://elsewhere.invalid/")
		w.WriteHeader(http.StatusFound)
		fmt.Fprint(w, "go")
	})
	mux.HandleFunc("/self", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/self", http.StatusFound) })
	mux.HandleFunc("/hang", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/flood", func(w http.ResponseWriter, _ *http.Request) {
		for _, err := io.WriteString(w, "x"); err == nil; _, err = io.WriteString(w, strings.Repeat("x", 4096)) {
		}
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	for path, want := range map[string]finding{
		"/ok":    success("fine"),
		"/bad":   failure("HTTP probe failed with statuscode: 500"),
		"/low":   failure("HTTP probe failed with statuscode: 400"),
		"/away":  {Successful, true, "Probe terminated redirects, Response body: go"},
		"/flood": success(strings.Repeat("x", maxOutput)),
		"/self":  failure(fmt.Sprintf("Get %q: stopped after 10 redirects", "/self")),
		"/hang":  failure(fmt.Sprintf("Get %q: context deadline exceeded (Client.Timeout exceeded while awaiting headers)", s.URL+"/hang")),
	} {
		timeout := patient
		if path == "/hang" {
			timeout = 100 * time.Millisecond
		}
		if got := found(t, handlers{}, corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: portOf(s.Listener.Addr())}}, timeout); got != want {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

func TestTCPSocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: portOf(l.Addr())}}
	if got := found(t, handlers{}, p, patient); got != success("") {
		t.Errorf("open: %+v", got)
	}
	_ = l.Close()
	if got := found(t, handlers{}, p, patient); got.result != Failed || !strings.Contains(got.message, "connection refused") {
		t.Errorf("closed: %+v", got)
	}
}

func TestExec(t *testing.T) {
	exec := func(_ context.Context, id string, command []string) (*podmill.ExecResult, error) {
		switch command[0] {
		case "missing":
			return nil, errors.New("not found")
		case "nothing":
			return nil, nil
		case "flood":
			return &podmill.ExecResult{Stdout: []byte(strings.Repeat("o", 9<<10)), Stderr: []byte(strings.Repeat("e", 1<<20)), ExitCode: 1}, nil
		case "broken":
			return &podmill.ExecResult{Stdout: []byte("\xffok")}, nil
		}
		return &podmill.ExecResult{Stdout: []byte(id + " " + strings.Join(command, " ")), Stderr: []byte("!")}, nil
	}
	for name, tc := range map[string]struct {
		command []string
		want    finding
	}{
		"expanded": {[]string{"run", "$(A)", "$$(A)", "$(none)"}, success("c1 run 2 $(A) $(none)!")},
		"missing":  {[]string{"missing"}, finding{result: Unknown, message: "not found"}}, // B116
		"nothing":  {[]string{"nothing"}, finding{result: Unknown, message: "the command had no result"}},
		"flood":    {[]string{"flood"}, failure(strings.Repeat("o", 9<<10) + strings.Repeat("e", 1<<10))},
		"broken":   {[]string{"broken"}, success("\uFFFDok")},
	} {
		if got := found(t, handlers{exec: exec}, corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: tc.command}}, patient); got != tc.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWhatCannotBeCarriedOutIsUnknown(t *testing.T) {
	for want, p := range map[string]corev1.ProbeHandler{
		`missing probe handler for container "main"`: {},
		"there is nothing to run commands with":      {Exec: &corev1.ExecAction{}},
		"there is nothing to make gRPC probes with":  {GRPC: &corev1.GRPCAction{Port: 1}},
		`container "main" has no port "metrics"`:     {TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("metrics")}},
		`container "main" has no port "web"`:         {HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("web")}},
	} {
		if got := found(t, handlers{}, p, patient); got != (finding{result: Unknown, message: want}) {
			t.Errorf("%s: %+v", want, got)
		}
	}
}

func TestAddress(t *testing.T) {
	pod := podOf("a", all())
	seen := running(pod, "c1", time.Now())
	seen.Sandboxes = []podmill.Sandbox{{ID: "new", IPs: []string{"10.0.0.2"}}, {ID: "s", IPs: []string{"10.0.0.1", "fd00::1"}}}
	c := &seen.Containers[0]
	if got := addressOf(pod, c, seen, "host"); got != "10.0.0.1" {
		t.Error("its own sandbox:", got)
	}
	c.SandboxID = ""
	if got := addressOf(pod, c, seen, "host"); got != "10.0.0.2" {
		t.Error("the newest:", got)
	}
	pod.Spec.HostNetwork = true
	if got := addressOf(pod, c, seen, "host"); got != "host" {
		t.Error("the host's:", got)
	}
}
