package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
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
	// instance still runs. [podmill.ErrNotFound] says that there is no such pod or container; any other error says why there is no such log, and is
	// answered 400.
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
	mux.HandleFunc("GET /exec/{namespace}/{pod}/{container}", s.exec)
	mux.HandleFunc("POST /exec/{namespace}/{pod}/{container}", s.exec)
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

func fail(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	switch {
	case errors.Is(err, podmill.ErrNotFound):
		code = http.StatusNotFound
	case errors.Is(err, errors.ErrUnsupported):
		code = http.StatusNotImplemented
	}
	http.Error(w, err.Error(), code)
}
