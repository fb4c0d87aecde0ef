package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/podmill/podmill"
)

// server is an API server of pods in memory, which a test can take away, stall, and make forget. It answers in virtual time.
type server struct {
	mu       sync.Mutex
	version  int
	pods     map[string]*corev1.Pod
	log      []change // that a watch can go on from
	watches  map[chan []byte]bool
	requests []string

	// fault answers in place of the server, where it returns something.
	fault func(r *http.Request) (*http.Response, error)
	// answer answers what is not about lists and watches of pods.
	answer func(r *http.Request, body []byte) (code int, object any)
	mute   bool // watches say nothing
}

type change struct {
	version int
	line    []byte
}

func newServer() *server {
	return &server{version: 1, pods: map[string]*corev1.Pod{}, watches: map[chan []byte]bool{}}
}

func (s *server) client(t testing.TB) *Client {
	t.Helper()
	client, err := NewClient(&rest.Config{Host: "http://server", Transport: s, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, "n")
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// put creates or changes a pod. drop deletes one.
func (s *server) put(name string, uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := "MODIFIED"
	if s.pods[name] == nil {
		kind = "ADDED"
	}
	s.version++
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name, UID: uid, ResourceVersion: strconv.Itoa(s.version), ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
	}
	s.pods[name] = pod
	s.tell(kind, pod)
}

func (s *server) drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	pod := s.pods[name].DeepCopy()
	pod.ResourceVersion = strconv.Itoa(s.version)
	delete(s.pods, name)
	s.tell("DELETED", pod)
}

func (s *server) tell(kind string, pod *corev1.Pod) {
	line := event(kind, pod)
	s.log = append(s.log, change{s.version, line})
	for w := range s.watches {
		if !s.mute {
			w <- line
		}
	}
}

func event(kind string, object any) []byte {
	line, _ := json.Marshal(map[string]any{"type": kind, "object": object})
	return append(line, '\n')
}

// forget makes it impossible to go on from an older version, and ends all watches with that word.
func (s *server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = nil
	s.version++
	for w := range s.watches {
		w <- event("ERROR", apierrors.NewResourceExpired("too old").Status())
		close(w)
	}
	clear(s.watches)
}

// cut ends all watches without a word.
func (s *server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		close(w)
	}
	clear(s.watches)
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	if s.fault != nil {
		if response, err := s.fault(r); response != nil || err != nil {
			return response, err
		}
	}
	query := r.URL.Query()
	switch {
	case r.URL.Path != "/api/v1/pods":
		var body []byte
		if r.Body != nil {
			body, _ = io.ReadAll(r.Body)
		}
		return respond(s.answer(r, body)), nil
	case query.Get("fieldSelector") != "spec.nodeName=n":
		return respond(http.StatusForbidden, apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("not this node's")).Status()), nil
	case query.Get("watch") == "":
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}}
		for _, name := range slices.Sorted(maps.Keys(s.pods)) {
			list.Items = append(list.Items, *s.pods[name])
		}
		return respond(http.StatusOK, list), nil
	}
	return s.watch(r.Context(), query.Get("sendInitialEvents") == "true", query.Get("resourceVersion"))
}

func (s *server) watch(ctx context.Context, initial bool, from string) (*http.Response, error) {
	lines := make(chan []byte, 1000)
	since, _ := strconv.Atoi(from)
	switch {
	case initial:
		for _, name := range slices.Sorted(maps.Keys(s.pods)) {
			lines <- event("ADDED", s.pods[name])
		}
		lines <- event("BOOKMARK", &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: strconv.Itoa(s.version), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}})
	case since < s.version && (len(s.log) == 0 || s.log[0].version > since+1):
		return respond(http.StatusGone, apierrors.NewResourceExpired("too old").Status()), nil
	default:
		for _, c := range s.log {
			if c.version > since {
				lines <- c.line
			}
		}
	}
	s.watches[lines] = true
	reader, writer := io.Pipe()
	go func() {
		for {
			select {
			case <-ctx.Done():
				_ = writer.CloseWithError(ctx.Err())
				return
			case line, ok := <-lines:
				if !ok {
					_ = writer.Close()
					return
				}
				_, _ = writer.Write(line)
			}
		}
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: reader}, nil
}

func respond(code int, object any) *http.Response {
	data, _ := json.Marshal(object)
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(data))}
}

func away(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }

// set makes a change while no request is answered.
func (s *server) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// asked returns what was asked since it was called last.
func (s *server) asked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := strings.Join(s.requests, "\n")
	s.requests = nil
	return all
}

// deliveries notes what a source delivers.
type deliveries struct {
	mu  sync.Mutex
	all []string
}

func (d *deliveries) deliver(u podmill.PodUpdate) {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := []string{}
	for _, pod := range u.Pods {
		names = append(names, pod.Name+"="+string(pod.UID))
	}
	slices.Sort(names)
	d.all = append(d.all, u.Op.String()+" "+strings.Join(names, " "))
}

// take returns what was delivered since it was called last.
func (d *deliveries) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.all
	d.all = nil
	return all
}
