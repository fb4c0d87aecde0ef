package apiserver

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
)

// firstAnswer is how long a reader waits for the first list of what it asks for.
const firstAnswer = 5 * time.Second

// table holds the objects of one feed, for others to read. Objects are shared and read-only.
type table struct {
	changed func() // is told of each change, from the feed's goroutine

	synced chan struct{} // is closed when the whole list is known

	mu      sync.Mutex
	objects map[podmill.ObjectRef]metav1.Object
	trouble error // the last failure before the list is known
}

func newTable(changed func()) *table {
	return &table{changed: changed, synced: make(chan struct{}), objects: map[podmill.ObjectRef]metav1.Object{}}
}

func keyOf(o metav1.Object) podmill.ObjectRef {
	return podmill.ObjectRef{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// first takes what was asked for beside the feed, unless the feed has told by now.
func (t *table) first(objects ...any) {
	if t.replace(objects, true) {
		t.changed()
	}
}

func (t *table) set(objects []any) {
	if t.replace(objects, false) {
		t.changed()
	}
}

// replace reports whether there is news in it.
func (t *table) replace(objects []any, onlyFirst bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.isSynced()
	if onlyFirst && !first {
		return false
	}
	before := t.objects
	t.objects = make(map[podmill.ObjectRef]metav1.Object, len(objects))
	differs := len(objects) != len(before)
	for _, object := range objects {
		o, ok := object.(metav1.Object)
		if !ok {
			continue
		}
		key := keyOf(o)
		t.objects[key] = o
		known, ok := before[key]
		differs = differs || !ok || known.GetResourceVersion() != o.GetResourceVersion()
	}
	if first {
		close(t.synced)
	}
	return first || differs
}

func (t *table) put(object any) {
	o, ok := object.(metav1.Object)
	if !ok {
		return
	}
	t.mu.Lock()
	t.objects[keyOf(o)] = o
	t.mu.Unlock()
	t.changed()
}

func (t *table) drop(object any) {
	o, ok := object.(metav1.Object)
	if !ok {
		return
	}
	t.mu.Lock()
	delete(t.objects, keyOf(o))
	t.mu.Unlock()
	t.changed()
}

// failed notes why the list is not known yet.
func (t *table) failed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trouble = err
}

func (t *table) isSynced() bool {
	select {
	case <-t.synced:
		return true
	default:
		return false
	}
}

// wait returns when the list is known, and an error when that takes too long.
func (t *table) wait(ctx context.Context) error {
	if t.isSynced() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, firstAnswer)
	defer cancel()
	select {
	case <-t.synced:
		return nil
	case <-ctx.Done():
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.trouble != nil {
			return fmt.Errorf("the API server has not shown it yet: %w", t.trouble)
		}
		return fmt.Errorf("the API server has not answered yet: %w", ctx.Err())
	}
}

// get returns an object, nil if there is none.
func (t *table) get(namespace, name string) metav1.Object {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.objects[podmill.ObjectRef{Namespace: namespace, Name: name}]
}

// all returns every object that is wanted.
func (t *table) all(wanted func(metav1.Object) bool) []metav1.Object {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []metav1.Object
	for _, o := range t.objects {
		if wanted(o) {
			all = append(all, o)
		}
	}
	return all
}
