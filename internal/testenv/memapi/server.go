// Package memapi is an API server in memory, for a whole node in virtual time: it keeps objects as a real one does, as far as a node can tell, and serves the requests of a
// client as an [http.RoundTripper], in JSON. What goes wrong on the way to it is package apifault's.
//
// It has no admission, no defaults and no rights, but that a node deletes no pod of another; whoever needs those asks a real server.
package memapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/podmill/podmill/internal/testenv/apifault"
)

// Object is what a server keeps.
type Object interface {
	metav1.Object
	runtime.Object
}

// key is where an object is kept.
type key struct{ resource, namespace, name string }

// Server keeps objects. Its methods may be called concurrently.
type Server struct {
	node string // whose pods may be deleted by its clients

	mu      sync.Mutex
	version int
	uids    int
	objects map[key]Object
	log     []change // that a watch can go on from
	watches map[*watch]bool
}

// New returns an empty server for the node of that name.
func New(node string) *Server {
	return &Server{node: node, version: 1, objects: map[key]Object{}, watches: map[*watch]bool{}}
}

// kind is what is kept of a resource.
type kind struct {
	name, version string
	object        func() Object
}

func kindOf(resource string) kind {
	switch resource {
	case "pods":
		return kind{"Pod", "v1", func() Object { return &corev1.Pod{} }}
	case "nodes":
		return kind{"Node", "v1", func() Object { return &corev1.Node{} }}
	case "configmaps":
		return kind{"ConfigMap", "v1", func() Object { return &corev1.ConfigMap{} }}
	case "secrets":
		return kind{"Secret", "v1", func() Object { return &corev1.Secret{} }}
	case "services":
		return kind{"Service", "v1", func() Object { return &corev1.Service{} }}
	case "events":
		return kind{"Event", "v1", func() Object { return &corev1.Event{} }}
	case "leases":
		return kind{"Lease", "coordination.k8s.io/v1", func() Object { return &coordinationv1.Lease{} }}
	case "runtimeclasses":
		return kind{"RuntimeClass", "node.k8s.io/v1", func() Object { return &nodev1.RuntimeClass{} }}
	case "csidrivers":
		return kind{"CSIDriver", "storage.k8s.io/v1", func() Object { return &storagev1.CSIDriver{} }}
	case "csinodes":
		return kind{"CSINode", "storage.k8s.io/v1", func() Object { return &storagev1.CSINode{} }}
	}
	return kind{}
}

// RoundTrip implements [http.RoundTripper].
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	request := apifault.Parse(r)
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if request.Subresource == "token" {
		return respond(http.StatusCreated, token(body)), nil
	}
	k := key{request.Resource, request.Namespace, request.Name}
	if kindOf(k.resource).object == nil {
		return refuse(http.StatusNotFound, metav1.StatusReasonNotFound, "there is no resource "+k.resource), nil
	}
	switch request.Verb {
	case "watch":
		return s.watch(r, k), nil
	case "list":
		return respond(http.StatusOK, s.list(k, r.URL.Query().Get("fieldSelector"))), nil
	case "create":
		return s.create(k, body), nil
	}
	known := s.objects[k]
	switch {
	case known == nil:
		return refuse(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", k.resource, k.name)), nil
	case request.Verb == "get":
		return respond(http.StatusOK, known), nil
	case request.Verb == "update":
		return s.update(k, known, body), nil
	case request.Verb == "patch":
		return s.patch(k, known, body, request.Subresource), nil
	}
	return s.deleteBy(k, known, body), nil
}

// token is one of a service account, as short-lived as asked for and as the real server gives it: ten minutes at least.
func token(body []byte) any {
	var asked struct {
		Spec struct{ ExpirationSeconds *int64 }
	}
	_ = json.Unmarshal(body, &asked)
	life := int64(3600)
	if asked.Spec.ExpirationSeconds != nil {
		life = max(600, *asked.Spec.ExpirationSeconds)
	}
	ends := metav1.NewTime(time.Now().Add(time.Duration(life) * time.Second))
	return map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "status": map[string]any{
		"token": "token-until-" + ends.UTC().Format(time.RFC3339), "expirationTimestamp": ends,
	}}
}

func (s *Server) create(k key, body []byte) *http.Response {
	object := kindOf(k.resource).object()
	if err := json.Unmarshal(body, object); err != nil {
		return refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	}
	k.name = object.GetName()
	if s.objects[k] != nil {
		return refuse(http.StatusConflict, metav1.StatusReasonAlreadyExists, fmt.Sprintf("%s %q already exists", k.resource, k.name))
	}
	return respond(http.StatusCreated, s.add(k, object))
}

// add keeps a new object, as the server makes it.
func (s *Server) add(k key, object Object) Object {
	s.uids++
	object.SetNamespace(k.namespace)
	object.SetUID(types.UID("uid-" + strconv.Itoa(s.uids)))
	object.SetCreationTimestamp(metav1.Now())
	if pod, ok := object.(*corev1.Pod); ok {
		pod.Status.Phase = corev1.PodPending
	}
	s.put(k, object, "ADDED")
	return object
}

// put keeps a version of an object, and tells those who watch.
func (s *Server) put(k key, object Object, event string) {
	s.version++
	object.SetResourceVersion(strconv.Itoa(s.version))
	kind := kindOf(k.resource)
	object.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(kind.version, kind.name))
	if s.objects[k] = object; event == "DELETED" {
		delete(s.objects, k)
	}
	s.tell(change{version: s.version, key: k, line: line(event, object), object: object})
}

func (s *Server) update(k key, known Object, body []byte) *http.Response {
	object := kindOf(k.resource).object()
	if err := json.Unmarshal(body, object); err != nil {
		return refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	}
	if object.GetResourceVersion() != known.GetResourceVersion() {
		return refuse(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")
	}
	s.put(k, object, "MODIFIED")
	return respond(http.StatusOK, object)
}

// patch merges a change into an object. One that changes nothing makes no new version, and one that names another UID is refused.
func (s *Server) patch(k key, known Object, change []byte, subresource string) *http.Response {
	var about struct{ Metadata struct{ UID types.UID } }
	_ = json.Unmarshal(change, &about)
	if uid := about.Metadata.UID; uid != "" && uid != known.GetUID() {
		return refuse(http.StatusConflict, metav1.StatusReasonConflict, fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, known.GetUID()))
	}
	before, _ := json.Marshal(known)
	after, err := strategicpatch.StrategicMergePatch(before, change, known)
	object := kindOf(k.resource).object()
	if err == nil {
		err = json.Unmarshal(after, object)
	}
	if err != nil {
		return refuse(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, err.Error())
	}
	if old, ok := known.(*corev1.Pod); ok && subresource == "status" { // nothing else can be changed there
		pod := old.DeepCopy()
		changed, _ := object.(*corev1.Pod)
		pod.Status, object = changed.Status, pod
	}
	if after, _ = json.Marshal(object); bytes.Equal(before, after) {
		return respond(http.StatusOK, known)
	}
	s.put(k, object, "MODIFIED")
	return respond(http.StatusOK, object)
}

func (s *Server) deleteBy(k key, known Object, body []byte) *http.Response {
	var opts metav1.DeleteOptions
	_ = json.Unmarshal(body, &opts)
	if p := opts.Preconditions; p != nil && p.UID != nil && *p.UID != known.GetUID() {
		return refuse(http.StatusConflict, metav1.StatusReasonConflict, "Precondition failed: another UID")
	}
	if pod, ok := known.(*corev1.Pod); ok && pod.Spec.NodeName != s.node {
		return refuse(http.StatusForbidden, metav1.StatusReasonForbidden, "node can only delete pods with spec.nodeName set to itself")
	}
	return respond(http.StatusOK, s.remove(k, known, opts.GracePeriodSeconds))
}

// remove deletes an object; a pod that runs waits for its node, unless the grace period is zero. A grace period only shrinks.
func (s *Server) remove(k key, known Object, grace *int64) Object {
	pod, ok := known.(*corev1.Pod)
	if !ok || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		grace = new(int64)
	}
	if grace == nil {
		grace = pod.Spec.TerminationGracePeriodSeconds
	}
	if grace == nil {
		grace = new(int64(30))
	}
	if *grace == 0 {
		gone, _ := known.DeepCopyObject().(Object)
		s.put(k, gone, "DELETED")
		return gone
	}
	if pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds <= *grace {
		return pod
	}
	pod = pod.DeepCopy()
	ends := metav1.NewTime(time.Now().Add(time.Duration(*grace) * time.Second))
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &ends, grace
	s.put(k, pod, "MODIFIED")
	return pod
}

func (s *Server) list(k key, selector string) any {
	kind := kindOf(k.resource)
	items := []Object{}
	for _, at := range s.sorted() {
		if in(k, at) && selects(selector, s.objects[at]) {
			items = append(items, s.objects[at])
		}
	}
	return map[string]any{
		"apiVersion": kind.version, "kind": kind.name + "List", "metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)}, "items": items,
	}
}

func refuse(code int, reason metav1.StatusReason, message string) *http.Response {
	return respond(code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: reason, Message: message, Code: int32(code), //nolint:gosec // of HTTP
	})
}

func respond(code int, object any) *http.Response {
	data, _ := json.Marshal(object)
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(data)))}
}
