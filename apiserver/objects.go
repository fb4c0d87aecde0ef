package apiserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/podmill/podmill"
)

// Objects gives what pods refer to in the API server: it is [podmill.ConfigMaps], [podmill.Secrets], [podmill.Services], [podmill.ObjectWatcher],
// [podmill.RuntimeClasses], [podmill.Claims] and [podmill.ServiceAccountTokens].
//
// An object that a pod of a followed source refers to is watched, once for all pods, for as long as there is one whose containers may still start: a read of it
// costs no request, and a change is told at once. Any other object is asked for with each read, as far as the node may read it. Services are watched while a
// source is followed, and cannot be told without one.
//
// A watch that is not answered yet makes a read wait, up to five seconds.
type Objects struct {
	client *Client

	mu       sync.Mutex
	watches  map[podmill.ObjectRef]*objectWatch
	watchers map[*func(podmill.ObjectRef)]struct{}
}

// objectWatch is a watch that several share.
type objectWatch struct {
	*table
	users int
	stop  context.CancelFunc
	ended chan struct{}
}

var (
	_ podmill.ConfigMaps           = (*Objects)(nil)
	_ podmill.Secrets              = (*Objects)(nil)
	_ podmill.Services             = (*Objects)(nil)
	_ podmill.RuntimeClasses       = (*Objects)(nil)
	_ podmill.ObjectWatcher        = (*Objects)(nil)
	_ podmill.Claims               = (*Objects)(nil)
	_ podmill.ServiceAccountTokens = (*Objects)(nil)
)

// NewObjects returns the objects that the client's node may read.
func NewObjects(client *Client) *Objects {
	return &Objects{
		client: client, watches: map[podmill.ObjectRef]*objectWatch{}, watchers: map[*func(podmill.ObjectRef)]struct{}{},
	}
}

// services is what the watch of all Services is known by.
func services() podmill.ObjectRef { return podmill.ObjectRef{Kind: "Service"} }

// ConfigMap implements [podmill.ConfigMaps].
func (o *Objects) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return find(ctx, o, podmill.ObjectRef{Kind: "ConfigMap", Namespace: namespace, Name: name}, &corev1.ConfigMap{})
}

// Secret implements [podmill.Secrets].
func (o *Objects) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return find(ctx, o, podmill.ObjectRef{Kind: "Secret", Namespace: namespace, Name: name}, &corev1.Secret{})
}

// RuntimeClass implements [podmill.RuntimeClasses]. What a class costs beside a pod's containers the API server has written into the pod, as its overhead.
func (o *Objects) RuntimeClass(ctx context.Context, name string) (*nodev1.RuntimeClass, error) {
	return find(ctx, o, podmill.ObjectRef{Kind: runtimeClass, Name: name}, &nodev1.RuntimeClass{})
}

// find returns a watched object, or asks for it.
func find[T runtime.Object](ctx context.Context, o *Objects, ref podmill.ObjectRef, into T) (T, error) {
	w := o.watch(ref)
	if w == nil {
		return get(ctx, o, ref, into)
	}
	var none T
	if err := w.wait(ctx); err != nil {
		return none, fmt.Errorf("%s: %w", textOf(ref), err)
	}
	found, ok := w.get(ref.Namespace, ref.Name).(T)
	if !ok {
		return none, fmt.Errorf("%s: %w", textOf(ref), podmill.ErrNotFound)
	}
	return found, nil
}

// get asks for an object.
func get[T runtime.Object](ctx context.Context, o *Objects, ref podmill.ObjectRef, into T) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	var none T
	err := o.client.of(ref.Kind).Get().NamespaceIfScoped(ref.Namespace, ref.Namespace != "").Resource(resourceOf(ref.Kind)).Name(ref.Name).Do(ctx).Into(into)
	if apierrors.IsNotFound(err) {
		err = podmill.ErrNotFound
	}
	if err != nil {
		return none, fmt.Errorf("%s: %w", textOf(ref), err)
	}
	return into, nil
}

// Claim implements [podmill.Claims].
func (o *Objects) Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return get(ctx, o, podmill.ObjectRef{Kind: "PersistentVolumeClaim", Namespace: namespace, Name: name}, &corev1.PersistentVolumeClaim{})
}

// PersistentVolume implements [podmill.Claims].
func (o *Objects) PersistentVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	return get(ctx, o, podmill.ObjectRef{Kind: "PersistentVolume", Name: name}, &corev1.PersistentVolume{})
}

// Services implements [podmill.Services].
func (o *Objects) Services(ctx context.Context, namespace string) ([]*corev1.Service, error) {
	w := o.watch(services())
	if w == nil {
		return nil, fmt.Errorf("services of namespace %s: no source of pods is followed yet", namespace)
	}
	if err := w.wait(ctx); err != nil {
		return nil, fmt.Errorf("services of namespace %s: %w", namespace, err)
	}
	var found []*corev1.Service
	for _, service := range w.all(func(s metav1.Object) bool {
		return s.GetNamespace() == namespace || s.GetNamespace() == metav1.NamespaceDefault && s.GetName() == "kubernetes"
	}) {
		if s, ok := service.(*corev1.Service); ok {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b *corev1.Service) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return found, nil
}

// WatchObjects implements [podmill.ObjectWatcher]. It tells of objects that are watched.
func (o *Objects) WatchObjects(ctx context.Context, changed func(podmill.ObjectRef)) error {
	o.mu.Lock()
	o.watchers[&changed] = struct{}{}
	o.mu.Unlock()
	<-ctx.Done()
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.watchers, &changed)
	return ctx.Err()
}

func (o *Objects) tell(ref podmill.ObjectRef) {
	o.mu.Lock()
	watchers := slices.Collect(maps.Keys(o.watchers))
	o.mu.Unlock()
	for _, changed := range watchers {
		(*changed)(ref)
	}
}

func (o *Objects) watch(ref podmill.ObjectRef) *objectWatch {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.watches[ref]
}

// use counts one more user of a watch, and begins it for the first.
func (o *Objects) use(ctx context.Context, ref podmill.ObjectRef) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.watches[ref]
	if w == nil {
		w = &objectWatch{table: newTable(func() { o.tell(ref) }), ended: make(chan struct{})}
		ctx, w.stop = context.WithCancel(context.WithoutCancel(ctx)) // it may outlive its first user
		f := o.feedOf(ref)
		f.take, f.failed = w, w.failed
		go func() {
			defer close(w.ended)
			var asking sync.WaitGroup
			defer asking.Wait()
			if ref.Name != "" {
				asking.Go(func() { o.first(ctx, ref, w, f.example) })
			}
			f.run(ctx)
		}()
		o.watches[ref] = w
	}
	w.users++
}

// first asks for an object whose watch has just begun: the server answers that at once, and a watch not before it is sure that its cache is fresh, which
// takes it some fifty milliseconds.
func (o *Objects) first(ctx context.Context, ref podmill.ObjectRef, w *objectWatch, example runtime.Object) {
	var found any
	err := patiently(ctx, func(ctx context.Context) error {
		object, err := get(ctx, o, ref, example.DeepCopyObject())
		if err == nil {
			found, err = lean(object)
		}
		return err
	})
	switch {
	case err == nil:
		w.first(found)
	case errors.Is(err, podmill.ErrNotFound):
		w.first()
	}
}

// leave counts one user less. With the last the watch ends, which is waited for.
func (o *Objects) leave(ref podmill.ObjectRef) {
	o.mu.Lock()
	w := o.watches[ref]
	w.users--
	last := w.users == 0
	if last {
		delete(o.watches, ref)
	}
	o.mu.Unlock()
	if last {
		w.stop()
		<-w.ended
	}
}

func (o *Objects) feedOf(ref podmill.ObjectRef) *feed {
	f := &feed{client: o.client.of(ref.Kind), resource: resourceOf(ref.Kind), namespace: ref.Namespace, patience: objectPatience}
	switch ref.Kind {
	case "ConfigMap":
		f.example = &corev1.ConfigMap{}
	case "Secret":
		f.example = &corev1.Secret{}
	case runtimeClass:
		f.example = &nodev1.RuntimeClass{}
	default:
		f.example = &corev1.Service{}
	}
	if ref.Name != "" {
		f.selector = fields.OneTermEqualSelector(metav1.ObjectNameField, ref.Name).String()
	}
	return f
}

// runtimeClass is the one kind here that is not of the core group.
const runtimeClass = "RuntimeClass"

// of returns the client for objects of a kind.
func (c *Client) of(kind string) rest.Interface {
	if kind == runtimeClass {
		return c.nodes
	}
	return c.core
}

// resourceOf returns the API's name of a kind.
func resourceOf(kind string) string {
	if kind == runtimeClass {
		return "runtimeclasses"
	}
	return strings.ToLower(kind) + "s"
}

func textOf(ref podmill.ObjectRef) string {
	if ref.Namespace == "" {
		return ref.Kind + " " + ref.Name
	}
	return ref.Kind + " " + ref.Namespace + "/" + ref.Name
}
