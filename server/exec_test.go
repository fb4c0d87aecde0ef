package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/server"
)

// streaming is a backend whose runtime serves streams at a URL.
type streaming struct {
	backend
	at    string
	asked []podmill.ExecRequest
}

func (s *streaming) ExecURL(_ context.Context, _, pod, _ string, exec podmill.ExecRequest) (*url.URL, error) {
	if pod != "web" {
		return nil, fmt.Errorf("pod %s: %w", pod, podmill.ErrNotFound)
	}
	s.asked = append(s.asked, exec)
	return url.Parse(s.at)
}

// runtime serves a command that says back what it is told, in capitals.
func runtime(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/elsewhere":
			http.Redirect(w, r, "http://127.0.0.1:1/secret", http.StatusFound)
			return
		case r.URL.Path != "/exec/token" || r.Header.Get("Authorization") != "" || r.Header.Get("Upgrade") != "SPDY/3.1":
			http.Error(w, "unexpected "+r.URL.Path, http.StatusTeapot)
			return
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
		line, _ := buffered.ReadString('\n')
		_, _ = io.WriteString(conn, strings.ToUpper(line))
	}))
	t.Cleanup(s.Close)
	return s
}

func TestExecJoinsTheClientToTheRuntime(t *testing.T) {
	b := &streaming{at: runtime(t).URL + "/exec/token"}
	s := httptest.NewServer(server.New(b))
	defer s.Close()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST /exec/default/web/server?command=cat&command=-&input=1&output=1&error=1&tty=1 HTTP/1.1\r\nHost: node\r\n"+
		"Authorization: Bearer secret\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n")
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v, want 101", response, err)
	}
	defer response.Body.Close()
	_, _ = io.WriteString(conn, "hello\n")
	if line, err := reader.ReadString('\n'); line != "HELLO\n" {
		t.Errorf("%q, %v", line, err)
	}
	want := []podmill.ExecRequest{{Command: []string{"cat", "-"}, Stdin: true, Stdout: true, TTY: true}}
	if diff := cmp.Diff(want, b.asked); diff != "" {
		t.Errorf("asked of the runtime (-want +got):\n%s", diff)
	}
}

func TestExecThatCannotBe(t *testing.T) {
	at := runtime(t).URL
	for _, tc := range []struct {
		name, target, at, upgrade string
		code                      int
		body                      string
	}{
		{"no command", "/exec/default/web/server?output=1", "/exec/token", "SPDY/3.1", 400, "no command"},
		{"no stream", "/exec/default/web/server?command=ls&tty=1&error=1", "/exec/token", "SPDY/3.1", 400, "no stream"},
		{"no upgrade", "/exec/default/web/server?command=ls&output=1", "/exec/token", "", 400, "upgrade"},
		{"no such pod", "/exec/default/other/server?command=ls&output=1", "/exec/token", "SPDY/3.1", 404, "not found"},
		{"CVE-2020-8559", "/exec/default/web/server?command=ls&output=1", "/elsewhere", "SPDY/3.1", 502, "not followed"},
		{"the runtime refuses", "/exec/default/web/server?command=ls&output=1", "/other", "SPDY/3.1", 418, "unexpected /other"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, tc.target, nil)
			r.Header.Set("Authorization", "Bearer secret")
			if tc.upgrade != "" {
				r.Header.Set("Connection", "Upgrade")
				r.Header.Set("Upgrade", tc.upgrade)
			}
			w := httptest.NewRecorder()
			server.New(&streaming{at: at + tc.at}).ServeHTTP(w, r)
			if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.body) || w.Header().Get("Location") != "" && w.Code != 418 {
				t.Errorf("%d %q; want %d and %q in it", w.Code, w.Body, tc.code, tc.body)
			}
		})
	}
	if w := ask(&backend{}, http.MethodPost, "/exec/default/web/server?command=ls&output=1"); w.Code != http.StatusNotImplemented {
		t.Errorf("a backend without streams: %d, want 501", w.Code)
	}
}
