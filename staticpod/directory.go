package staticpod

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/podmill/podmill"
)

// The names of the sources, which are the kubelet's.
const (
	sourceFile = "file"
	sourceHTTP = "http"
)

// Directory is a directory of manifests, or a single one.
type Directory struct {
	path   string
	origin origin
	period time.Duration
	quiet  time.Duration    // another one in tests
	tell   teller           // of the goroutine that runs
	files  map[string]*file // likewise

	mu       sync.Mutex
	set      *set // nil as long as nothing could be read
	watchers map[*watcher]bool
}

var (
	_ podmill.PodSource      = (*Directory)(nil)
	_ podmill.ConfigMaps     = (*Directory)(nil)
	_ podmill.Secrets        = (*Directory)(nil)
	_ podmill.RuntimeClasses = (*Directory)(nil)
	_ podmill.ObjectWatcher  = (*Directory)(nil)
)

// NewDirectory returns a source of the manifests in the directory at path, or of the one file there, for the node of that name. It starts nothing.
func NewDirectory(path, node string, opts ...Option) *Directory {
	o := newOptions(opts)
	location, err := filepath.Abs(path)
	if err != nil {
		location = filepath.Clean(path)
	}
	return &Directory{
		path:     path,
		origin:   origin{source: sourceFile, location: location, node: node, strict: o.strict, check: o.check},
		period:   o.period,
		quiet:    settleQuiet,
		tell:     teller{observer: o.observer},
		files:    map[string]*file{},
		watchers: map[*watcher]bool{},
	}
}

// Name is "file".
func (d *Directory) Name() string { return sourceFile }

// Run delivers the pods of the manifests, and again when they change, always as a whole. It returns nil when ctx ends, and not before.
func (d *Directory) Run(ctx context.Context, deliver func(podmill.PodUpdate)) error {
	log := logr.FromContextOrDiscard(ctx).WithValues("source", sourceFile, "path", d.path)
	w := newWatch(d.path, d.quiet, log)
	defer w.close()
	// A decoder takes ten times as long for the first object of a type as for any other: here nobody waits for it.
	_ = utiljson.Unmarshal([]byte("{}"), &corev1.Pod{})
	var delivered []*corev1.Pod
	synced := false
	for {
		w.follow() // before reading: what happens afterwards is told of
		wait := d.period
		if now := d.scan(log); now == nil {
			wait = min(minRetry, d.period)
		} else if !synced || !slices.Equal(delivered, now.pods) {
			deliver(podmill.PodUpdate{Op: podmill.ReplacePods, Pods: slices.Clone(now.pods)})
			delivered, synced = now.pods, true
		}
		if !w.next(ctx, wait) {
			return nil
		}
	}
}

// scan reads what there is and makes it what the directory holds. It returns nil if it cannot be known what there is: then all stays as it
// was.
func (d *Directory) scan(log logr.Logger) *set {
	entries, err := readAll(d.path)
	if err != nil {
		d.tell.tell(log, []Problem{{
			File: d.path, Message: "cannot be read: " + cause(err), Cure: "what it held goes on until it can be",
		}})
		return nil
	}
	files, ordered, foreign := map[string]*file{}, []*file(nil), []Problem(nil)
	for _, e := range entries {
		if e.foreign {
			e.problem.File = e.name
			foreign = append(foreign, *e.problem)
			continue
		}
		f := d.files[e.name]
		if f == nil {
			f = &file{name: e.name}
		}
		if e.problem != nil {
			f.fail(*e.problem)
		} else {
			f.take(d.origin, e.data, time.Now())
		}
		files[e.name] = f
		ordered = append(ordered, f)
	}
	d.files = files
	now := merge(ordered)
	d.tell.tell(log, append(foreign, now.problems...))
	d.publish(now)
	return now
}

// publish makes a set the one that is looked at, and tells who watches objects.
func (d *Directory) publish(now *set) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.set
	if old == nil {
		old = &set{}
	}
	d.set = now
	for _, ref := range changed(old, now) {
		for w := range d.watchers {
			w.add(ref)
		}
	}
}

// ConfigMap returns a ConfigMap that stands in a manifest.
func (d *Directory) ConfigMap(_ context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return find[*corev1.ConfigMap](d, podmill.ObjectRef{Kind: "ConfigMap", Namespace: namespace, Name: name})
}

// Secret returns a Secret that stands in a manifest.
func (d *Directory) Secret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	return find[*corev1.Secret](d, podmill.ObjectRef{Kind: "Secret", Namespace: namespace, Name: name})
}

// RuntimeClass returns a RuntimeClass that stands in a manifest.
func (d *Directory) RuntimeClass(_ context.Context, name string) (*nodev1.RuntimeClass, error) {
	return find[*nodev1.RuntimeClass](d, podmill.ObjectRef{Kind: "RuntimeClass", Name: name})
}

func find[T any](d *Directory, ref podmill.ObjectRef) (found T, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.set == nil {
		return found, fmt.Errorf("%s %s: the manifests in %s have not been read yet", ref.Kind, path.Join(ref.Namespace, ref.Name), d.path)
	}
	found, ok := d.set.objects[ref].(T)
	if !ok {
		return found, fmt.Errorf("%s %s: %w in the manifests in %s", ref.Kind, path.Join(ref.Namespace, ref.Name), podmill.ErrNotFound, d.path)
	}
	return found, nil
}
