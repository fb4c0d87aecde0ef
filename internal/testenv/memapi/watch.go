package memapi

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// change is one change of one object, as those who watch are told of it.
type change struct {
	version int
	key     key
	line    []byte
	object  Object
}

// watch is a request that is told of changes.
type watch struct {
	key      key // the name is empty
	selector string
	lines    queue
}

// queue holds lines until they are read. Nobody who writes to it waits.
type queue struct {
	mu    sync.Mutex
	lines [][]byte
	ended bool
	wake  chan struct{}
}

func (q *queue) add(line []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lines = append(q.lines, line)
	q.signal()
}

func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue) take() (lines [][]byte, ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	lines, q.lines = q.lines, nil
	return lines, q.ended
}

// in reports whether a key is in the resource and namespace of another, if that has one.
func in(of, k key) bool {
	return of.resource == k.resource && (of.namespace == "" || of.namespace == k.namespace)
}

// selects reports whether an object has the fields that a selector names.
func selects(selector string, object Object) bool {
	for term := range strings.SplitSeq(selector, ",") {
		field, value, _ := strings.Cut(term, "=")
		switch field {
		case "metadata.name":
			if object.GetName() != value {
				return false
			}
		case "spec.nodeName":
			if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != value {
				return false
			}
		}
	}
	return true
}

func (s *Server) sorted() []key {
	return slices.SortedFunc(maps.Keys(s.objects), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
}

// tell notes a change, and tells it to those who watch.
func (s *Server) tell(c change) {
	s.log = append(s.log, c)
	for w := range s.watches {
		w.take(c)
	}
}

func (w *watch) take(c change) {
	if in(w.key, c.key) && selects(w.selector, c.object) {
		w.lines.add(c.line)
	}
}

func (s *Server) watch(r *http.Request, k key) *http.Response {
	query := r.URL.Query()
	w := &watch{key: key{resource: k.resource, namespace: k.namespace}, selector: query.Get("fieldSelector"), lines: queue{wake: make(chan struct{}, 1)}}
	since, _ := strconv.Atoi(query.Get("resourceVersion"))
	switch {
	case query.Get("sendInitialEvents") == "true":
		s.begin(w)
	case since < s.version && (len(s.log) == 0 || s.log[0].version > since+1):
		return refuse(http.StatusGone, metav1.StatusReasonExpired, "too old resource version")
	default:
		for _, c := range s.log {
			if c.version > since {
				w.take(c)
			}
		}
	}
	s.watches[w] = true
	reader, writer := io.Pipe()
	seconds, _ := strconv.Atoi(query.Get("timeoutSeconds"))
	go func() {
		defer s.leave(w)
		_ = writer.CloseWithError(s.speak(r.Context(), w, writer, time.Duration(seconds)*time.Second))
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: reader}
}

// speak writes what a watch is told, with a bookmark every minute, for as long as the client wants it.
func (s *Server) speak(ctx context.Context, w *watch, to io.Writer, long time.Duration) error {
	if long > 0 {
		limited, cancel := context.WithTimeout(ctx, long)
		defer cancel()
		ctx = limited
	}
	bookmark := time.NewTicker(time.Minute)
	defer bookmark.Stop()
	for {
		lines, ended := w.lines.take()
		for _, line := range lines {
			if _, err := to.Write(line); err != nil {
				return err
			}
		}
		if ended {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.lines.wake:
		case <-bookmark.C:
			s.mu.Lock()
			w.lines.add(s.bookmark(w, nil))
			s.mu.Unlock()
		}
	}
}

// bookmark tells a watch how far it has come.
func (s *Server) bookmark(w *watch, annotations map[string]string) []byte {
	kind := kindOf(w.key.resource)
	return line("BOOKMARK", map[string]any{"apiVersion": kind.version, "kind": kind.name, "metadata": map[string]any{
		"resourceVersion": strconv.Itoa(s.version), "annotations": annotations,
	}})
}

// begin tells a watch what there is, and that this is all.
func (s *Server) begin(w *watch) {
	for _, at := range s.sorted() {
		if in(w.key, at) && selects(w.selector, s.objects[at]) {
			w.lines.add(line("ADDED", s.objects[at]))
		}
	}
	w.lines.add(s.bookmark(w, map[string]string{metav1.InitialEventsAnnotationKey: "true"}))
}

func (s *Server) leave(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watches, w)
}

func line(event string, object any) []byte {
	data, _ := json.Marshal(map[string]any{"type": event, "object": object})
	return append(data, '\n')
}
