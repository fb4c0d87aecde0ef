package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/podmill/podmill"
)

// Streamer is an optional part of a [Backend]: it has commands run whose streams the client gets. Package agent does, where the runtime can.
type Streamer interface {
	// ExecURL returns where the runtime serves a command in a running container, for one request.
	ExecURL(ctx context.Context, namespace, pod, container string, exec podmill.ExecRequest) (*url.URL, error)
}

// exec has the runtime serve the streams of a command, and passes them on.
func (s *server) exec(w http.ResponseWriter, r *http.Request) {
	streamer, ok := s.backend.(Streamer)
	if !ok {
		fail(w, fmt.Errorf("streams of a command: %w", errors.ErrUnsupported))
		return
	}
	exec, err := execRequest(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.Header.Get("Upgrade") == "" {
		http.Error(w, "streams need an upgrade of the connection: SPDY/3.1 or websocket", http.StatusBadRequest)
		return
	}
	to, err := streamer.ExecURL(r.Context(), r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"), exec)
	if err != nil {
		fail(w, err)
		return
	}
	passOn(to).ServeHTTP(w, r)
}

// execRequest reads the parameters that an API server sends to a kubelet.
func execRequest(query url.Values) (podmill.ExecRequest, error) {
	exec := podmill.ExecRequest{
		Command: query["command"],
		Stdin:   isTrue(query.Get("input")), Stdout: isTrue(query.Get("output")), Stderr: isTrue(query.Get("error")), TTY: isTrue(query.Get("tty")),
	}
	exec.Stderr = exec.Stderr && !exec.TTY // a terminal has one output
	switch {
	case len(exec.Command) == 0:
		return exec, errors.New("no command was given")
	case !exec.Stdin && !exec.Stdout && !exec.Stderr:
		return exec, errors.New("no stream was asked for: input, output or error")
	}
	return exec, nil
}

// passOn hands a request and the connection that it becomes to a runtime. The runtime gets no credentials, and an answer of it that sends the client
// elsewhere is an error (CVE-2020-8559).
func passOn(to *url.URL) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL, r.Out.Host = to, to.Host
			r.Out.Header.Del("Authorization")
			r.Out.Header.Del("Cookie")
		},
		ModifyResponse: func(response *http.Response) error {
			if response.StatusCode >= 300 && response.StatusCode < 400 {
				return fmt.Errorf("the runtime answers %s, which is not followed", response.Status)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "streams of the runtime: "+err.Error(), http.StatusBadGateway)
		},
		Transport: &http.Transport{DisableKeepAlives: true}, // no proxy of the environment: the runtime is near
	}
}
