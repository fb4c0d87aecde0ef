package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/crilog"
)

// ExitCodeHeader is the header in which /run tells the command's exit code.
const ExitCodeHeader = "Podmill-Exit-Code"

// Backend is what the server asks of an agent. Its methods may be called concurrently.
type Backend interface {
	// Pods returns all pods with their newest statuses, and whether every source has been heard.
	Pods() (pods []*corev1.Pod, synced bool)
	// Healthy returns what is wrong with the agent, nil if nothing is.
	Healthy() error
	// Log returns the log file of a container's newest instance, or of the one before it, and a function that tells whether that
	// instance still runs. [podmill.ErrNotFound] says that there is no such pod, container or instance.
	Log(ctx context.Context, namespace, pod, container string, previous bool) (path string, running func() bool, err error)
	// Exec runs a command in a running container.
	Exec(ctx context.Context, namespace, pod, container string, command []string) (*podmill.ExecResult, error)
}

// New returns a handler that answers for backend.
func New(backend Backend) http.Handler {
	s := &server{backend}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /pods", s.pods)
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.logs)
	mux.HandleFunc("POST /run/{namespace}/{pod}/{container}", s.run)
	return mux
}

type server struct {
	backend Backend
}

func (s *server) healthz(w http.ResponseWriter, _ *http.Request) {
	if err := s.backend.Healthy(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = io.WriteString(w, "ok")
}

func (s *server) pods(w http.ResponseWriter, _ *http.Request) {
	pods, synced := s.backend.Pods()
	if !synced {
		http.Error(w, "not every source of pods has been heard yet; ask again", http.StatusServiceUnavailable)
		return
	}
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: make([]corev1.Pod, len(pods))}
	for i, pod := range pods {
		list.Items[i] = *pod
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

func (s *server) logs(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	opts, err := logOptions(query, time.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	path, running, err := s.backend.Log(r.Context(), r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"), isTrue(query.Get("previous")))
	if err != nil {
		fail(w, err)
		return
	}
	if isTrue(query.Get("follow")) {
		opts.Follow = running
	}
	w.Header().Set("Content-Type", "text/plain")
	out := flushed{w, http.NewResponseController(w)}
	if err := crilog.Copy(r.Context(), path, opts, out, out); err != nil && r.Context().Err() == nil {
		fail(w, fmt.Errorf("read the log of container %s: %w", r.PathValue("container"), err))
	}
}

func (s *server) run(w http.ResponseWriter, r *http.Request) {
	command := r.URL.Query()["cmd"]
	if len(command) == 0 {
		http.Error(w, "no cmd was given", http.StatusBadRequest)
		return
	}
	result, err := s.backend.Exec(r.Context(), r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"), command)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set(ExitCodeHeader, strconv.Itoa(int(result.ExitCode)))
	_, _ = w.Write(result.Stdout)
	_, _ = w.Write(result.Stderr)
}

// logOptions reads the kubelet's parameters.
func logOptions(query url.Values, now time.Time) (crilog.Options, error) {
	opts := crilog.Options{Timestamps: isTrue(query.Get("timestamps"))}
	var since *int64
	for name, to := range map[string]**int64{"tailLines": &opts.Tail, "limitBytes": &opts.LimitBytes, "sinceSeconds": &since} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return opts, fmt.Errorf("%s=%q is not a number of 0 or more", name, text)
		}
		*to = &n
	}
	if since != nil {
		opts.Since = now.Add(-time.Duration(*since) * time.Second)
	}
	return opts, nil
}

func isTrue(text string) bool {
	ok, _ := strconv.ParseBool(text)
	return ok
}

func fail(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	if errors.Is(err, podmill.ErrNotFound) {
		code = http.StatusNotFound
	}
	http.Error(w, err.Error(), code)
}

// flushed hands on each write at once, so that who follows a log sees it grow.
type flushed struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (f flushed) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	if err == nil {
		err = f.control.Flush()
	}
	return n, err
}
