package apiserver

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

const (
	// answerWithin is how long the API server may take to answer, or to begin a watch. One that is overloaded answers; one that does not is not there, or the connection
	// to it has died, and the next attempt makes another.
	answerWithin = 30 * time.Second
	// silence is how long a watch may say nothing. The server sends a bookmark every minute or so; one that does not is asked anew, from where it
	// was, which costs nothing when all is well.
	silence = 3 * time.Minute
	// podPatience and objectPatience are the first waits after a failure. What a pod refers to is refused for the moment in which the
	// authorizer has yet to hear of the pod, and a pod's start waits for it.
	podPatience    = 100 * time.Millisecond
	objectPatience = 2 * time.Millisecond
)

// feed follows a list of objects: the whole of it first, and then its changes, over lost connections and whatever else befalls a watch. The list and
// the watch, and the errors between them, are client-go's Reflector's; here is what a node wants otherwise of it.
type feed struct {
	client    rest.Interface
	resource  string
	namespace string // all of them where it is empty
	selector  string // of fields
	example   runtime.Object
	// patience is how long to wait after the first failure; it doubles up to half a minute.
	patience time.Duration
	// failed is told of each failure; it may be nil.
	failed func(error)
	// take is told what there is and what has changed, from one goroutine.
	take listener

	mu    sync.Mutex
	alarm *time.Timer // stops the watch that says nothing
}

// listener takes what a feed brings. Objects are the listener's own.
type listener interface {
	set(objects []any)
	put(object any)
	drop(object any)
}

// run follows the list until ctx ends.
func (f *feed) run(ctx context.Context) {
	log := logr.FromContextOrDiscard(ctx).WithValues("resource", f.resource, "namespace", f.namespace, "selector", f.selector)
	ctx = logr.NewContext(ctx, log)
	reflector := cache.NewReflectorWithOptions(&cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch},
		f.example, f, cache.ReflectorOptions{
			Name: f.resource, Logger: &log, Clock: hurried{ctx: ctx},
			Backoff: &wait.Backoff{Duration: f.patience, Cap: 30 * time.Second, Steps: 20, Factor: 2, Jitter: 0.5},
		})
	reflector.RunWithContext(ctx)
}

func (f *feed) request(opts metav1.ListOptions) *rest.Request {
	opts.FieldSelector = f.selector
	return f.client.Get().NamespaceIfScoped(f.namespace, f.namespace != "").Resource(f.resource).
		SpecificallyVersionedParams(&opts, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"})
}

func (f *feed) list(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if opts.ResourceVersion == "0" {
		// Any version would do for that, also one from before the agent was restarted, which would bring pods back that are gone.
		opts.ResourceVersion = ""
	}
	list, err := f.request(opts).Do(ctx).Get()
	f.note(err)
	return list, err
}

// note tells of a failure. The Reflector logs it.
func (f *feed) note(err error) {
	if err != nil && f.failed != nil {
		f.failed(err)
	}
}

func (f *feed) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(ctx)
	opts.Watch = true
	hurry := time.AfterFunc(answerWithin, cancel)
	w, err := f.request(opts).Watch(ctx)
	hurry.Stop()
	if err != nil {
		cancel()
		f.note(err)
		return nil, err
	}
	stop := &stopping{w, cancel}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alarm = time.AfterFunc(silence, stop.Stop)
	return stop, nil
}

// heard says that the watch lives.
func (f *feed) heard() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.alarm != nil {
		f.alarm.Reset(silence)
	}
}

// stopping is a watch whose request ends with it.
type stopping struct {
	watch.Interface
	cancel context.CancelFunc
}

func (s *stopping) Stop() {
	s.Interface.Stop()
	s.cancel()
}

// Add, Update, Delete, Replace and Bookmark are what the Reflector calls.
func (f *feed) Add(object any) error {
	return f.Update(object)
}

// Update takes a new or changed object.
func (f *feed) Update(object any) error {
	f.heard()
	object, err := lean(object)
	if err == nil {
		f.take.put(object)
	}
	return err
}

// Delete takes the last version of an object that is gone.
func (f *feed) Delete(object any) error {
	f.heard()
	f.take.drop(object)
	return nil
}

// Replace takes the whole list.
func (f *feed) Replace(objects []any, _ string) error {
	f.heard()
	for i := range objects {
		if _, err := lean(objects[i]); err != nil {
			return err
		}
	}
	f.take.set(objects)
	return nil
}

// Bookmark takes the server's word that nothing has happened.
func (f *feed) Bookmark(string) error {
	f.heard()
	return nil
}

// Resync is never called.
func (f *feed) Resync() error { return nil }

// Transformer has objects made lean while a list comes in.
func (f *feed) Transformer() cache.TransformFunc { return lean }

// hurried is a clock whose waits are over when ctx ends: the Reflector's own do not all heed it, and one may take half a minute.
type hurried struct {
	clock.RealClock
	ctx context.Context
}

// After implements [clock.Clock].
func (h hurried) After(d time.Duration) <-chan time.Time {
	over := make(chan time.Time, 2) // of both
	stop := context.AfterFunc(h.ctx, func() { over <- time.Now() })
	time.AfterFunc(d, func() {
		stop()
		over <- time.Now()
	})
	return over
}

// lean drops what nobody on a node reads, and what often is the greater part of an object: who has written which field.
func lean(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return object, nil
}
