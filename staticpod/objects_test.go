package staticpod

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/podmill/podmill"
)

const objects = `
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {a: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: shop}
stringData: {b: "2"}
`

// TestObjects shows that ConfigMaps and Secrets are found as soon as pods are delivered, and that whoever watches is told of what changes and of
// nothing else.
func TestObjects(t *testing.T) {
	r := newRig(t, t.TempDir())
	r.gets()
	changes := make(chan podmill.ObjectRef, 100)
	ctx, stop := context.WithCancel(t.Context())
	watching := make(chan error)
	go func() { watching <- r.source.WatchObjects(ctx, func(ref podmill.ObjectRef) { changes <- ref }) }()
	for registered := false; !registered; { // only what comes afterwards is told of
		r.source.mu.Lock()
		registered = len(r.source.watchers) > 0
		r.source.mu.Unlock()
	}
	told := func(want ...podmill.ObjectRef) {
		t.Helper()
		got, wanted := map[podmill.ObjectRef]bool{}, map[podmill.ObjectRef]bool{}
		for _, ref := range want {
			wanted[ref] = true
			select {
			case ref := <-changes:
				got[ref] = true
			case <-time.After(patience):
			}
		}
		if !maps.Equal(got, wanted) || len(changes) > 0 {
			t.Fatalf("told of %v, want %v", got, wanted)
		}
	}
	c := podmill.ObjectRef{Kind: "ConfigMap", Namespace: "default", Name: "c"}
	s := podmill.ObjectRef{Kind: "Secret", Namespace: "shop", Name: "s"}

	if _, err := r.source.ConfigMap(ctx, "default", "c"); !errors.Is(err, podmill.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	r.put("objects.yaml", objects+"---\n"+manifest("web", "v1"))
	r.gets("web=v1")
	if m, err := r.source.ConfigMap(ctx, "default", "c"); err != nil || m.Data["a"] != "1" {
		t.Errorf("got %v, %v", m, err)
	}
	if m, err := r.source.Secret(ctx, "shop", "s"); err != nil || string(m.Data["b"]) != "2" {
		t.Errorf("got %v, %v", m, err)
	}
	if _, err := r.source.Secret(ctx, "default", "c"); !errors.Is(err, podmill.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	told(c, s)
	r.put("objects.yaml", strings.Replace(objects, `a: "1"`, `a: "3"`, 1)+"---\n"+manifest("web", "v2"))
	r.gets("web=v2")
	told(c)
	r.put("second.yaml", objects) // a second of the same name does not count
	r.says("second.yaml: configmap default/c: is not used: objects.yaml comes first")
	r.put("objects.yaml", "kind: broken")
	r.says("objects.yaml:")
	r.remove("second.yaml")
	r.put("objects.yaml", strings.Replace(objects, "name: c", "name: other", 1)+"---\n"+manifest("web", "v3"))
	r.gets("web=v3")
	told(c, podmill.ObjectRef{Kind: "ConfigMap", Namespace: "default", Name: "other"})
	stop()
	if err := <-watching; err != nil {
		t.Errorf("WatchObjects: %v", err)
	}
	r.stop()
	if _, err := r.source.Secret(t.Context(), "shop", "s"); err != nil {
		t.Errorf("after the end: %v", err)
	}
}

// TestRuntimeClasses shows that RuntimeClasses stand in manifests as ConfigMaps do, and belong to no namespace.
func TestRuntimeClasses(t *testing.T) {
	r := newRig(t, t.TempDir())
	r.gets()
	r.put("classes.yaml", `
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: sandboxed}
handler: kata
overhead: {podFixed: {memory: 120Mi}}
---
`+manifest("web", "v1"))
	r.gets("web=v1")
	class, err := r.source.RuntimeClass(t.Context(), "sandboxed")
	if err != nil || class.Handler != "kata" {
		t.Errorf("got %v, %v", class, err)
	}
	if _, err := r.source.RuntimeClass(t.Context(), "other"); !errors.Is(err, podmill.ErrNotFound) || !strings.Contains(err.Error(), "RuntimeClass other: ") {
		t.Errorf("got %v", err)
	}
	r.put("bad.yaml", `{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: Bad}, handler: "a/b", scheduling: {}}`)
	r.says("bad.yaml:1: runtimeclass Bad: metadata.name: invalid value")
	r.says("bad.yaml:1: runtimeclass Bad: handler: invalid value")
	r.put("second.yaml", "{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: sandboxed}, handler: other}")
	r.says("second.yaml: runtimeclass sandboxed: is not used: classes.yaml comes first")
}
