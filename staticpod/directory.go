package staticpod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// maxSettle bounds how long a directory that never comes to rest is waited for.
const maxSettle = time.Second

// Directory is a directory of manifests, or a single one.
type Directory struct {
	path  string
	node  string
	opts  options
	tell  teller
	files map[string]*file // by path; of the goroutine that scans

	mu       sync.Mutex
	set      *set // nil before the first good scan
	watchers map[*watcher]bool
}

var ( // what a directory is
	_ podmill.PodSource     = (*Directory)(nil)
	_ podmill.ConfigMaps    = (*Directory)(nil)
	_ podmill.Secrets       = (*Directory)(nil)
	_ podmill.ObjectWatcher = (*Directory)(nil)
)

// NewDirectory returns a source of the manifests in the directory at path, or of the one file there, for a node of that name.
func NewDirectory(path, node string, opts ...Option) *Directory {
	d := &Directory{path: path, node: node, opts: newOptions(opts), files: map[string]*file{}, watchers: map[*watcher]bool{}}
	d.tell.observer = d.opts.observer
	return d
}

// Name is "file".
func (d *Directory) Name() string { return "file" }

// Run delivers the pods of the manifests, and again when they change. Each delivery is the whole set; a pod that has not changed is the same object
// as before.
func (d *Directory) Run(ctx context.Context, deliver func(podmill.PodUpdate)) error {
	log := logr.FromContextOrDiscard(ctx).WithValues("path", d.path)
	events, stop := d.watch(log)
	defer stop()
	rescan := time.NewTicker(d.opts.period)
	defer rescan.Stop()
	for {
		if d.scan(log) {
			deliver(podmill.PodUpdate{Op: podmill.ReplacePods, Pods: d.current().pods})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-rescan.C:
			d.rewatch(events)
		case <-events.changed:
			events.settle(ctx, d.opts.settle)
		}
	}
}

// current returns the set that was last delivered, nil before the first.
func (d *Directory) current() *set {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.set
}

// scan reads what there is, and reports whether it says something new. A directory that cannot be read says nothing.
func (d *Directory) scan(log logr.Logger) bool {
	names, err := d.list()
	if err != nil {
		d.tell.tell(log, []Problem{{File: d.path, Message: fmt.Sprintf("it cannot be read, and what is known of it goes on: %v", err)}})
		return false
	}
	news := d.current() == nil
	files := map[string]*file{}
	var ordered []*file
	for _, name := range names {
		f := d.files[name]
		if f == nil {
			f = &file{name: name}
			news = true
		}
		news = d.read(f) || news
		files[name] = f
		ordered = append(ordered, f)
	}
	news = news || len(files) != len(d.files)
	d.files = files
	if !news {
		return false
	}
	now := merge(ordered)
	d.tell.tell(log, now.problems)
	return d.publish(now)
}

// publish makes a set the current one, and tells who watches objects. It reports whether the pods are others than before.
func (d *Directory) publish(now *set) bool {
	d.mu.Lock()
	old := d.set
	d.set = now
	if old == nil {
		old = &set{}
	}
	for _, ref := range changed(old, now) {
		for w := range d.watchers {
			w.add(ref)
		}
	}
	d.mu.Unlock()
	return old.objects == nil || !slices.Equal(old.pods, now.pods)
}

// list returns the manifests' paths, in order.
func (d *Directory) list() ([]string, error) {
	info, err := os.Stat(d.path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{d.path}, nil
	}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		path := filepath.Join(d.path, entry.Name())
		if !isManifest(entry.Name()) {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			continue
		}
		names = append(names, path)
	}
	return names, nil
}

// isManifest reports whether a file of this name is looked at: not a hidden one, nor an editor's copy or a person's notes.
func isManifest(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "#")
	default:
		return false
	}
}

// read brings a file up to date, and reports whether that changed anything.
func (d *Directory) read(f *file) bool {
	data, err := readRegular(f.name, d.opts.maxBytes)
	if err != nil {
		problem := []Problem{{File: f.name, Message: err.Error()}}
		changed := !slices.Equal(f.problems, problem)
		f.content, f.problems = "", problem
		return changed
	}
	if string(data) == f.content && (f.content != "" || len(f.problems) > 0) {
		return false
	}
	found, problems := decoder{source: d.Name(), node: d.node, strict: d.opts.strict}.decode(f.name, data)
	f.refresh(string(data), found, problems)
	return true
}

// readRegular reads a regular file, behind a link or not. Nothing else is opened for more than a look: a pipe has no end.
func readRegular(path string, limit int64) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the manifest's path
	if err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", errors.Unwrap(err))
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Type() != fs.FileMode(0) {
		return nil, fmt.Errorf("it is no regular file but a %s", info.Mode().Type())
	}
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it is larger than %d bytes; no manifest is", limit)
	}
	return data, err
}

// events is what the operating system tells of a directory.
type events struct {
	watcher *fsnotify.Watcher
	changed chan struct{} // holds one token
}

// watch follows the directory where the system can tell of changes; a rescan finds everything anyway.
func (d *Directory) watch(log logr.Logger) (e *events, stop func()) {
	e = &events{changed: make(chan struct{}, 1)}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		log.Info("the system does not tell of changes, manifests are looked at now and then", "period", d.opts.period, "reason", err.Error())
		return e, func() {}
	}
	e.watcher = w
	d.rewatch(e)
	var forward sync.WaitGroup
	forward.Go(e.forward)
	return e, func() { _ = w.Close(); forward.Wait() }
}

// rewatch makes sure that the directory is followed, which may not have been there before, or is another one by now.
func (d *Directory) rewatch(e *events) {
	if e.watcher == nil {
		return
	}
	dir := d.path
	if info, err := os.Stat(d.path); err == nil && !info.IsDir() {
		dir = filepath.Dir(d.path)
	}
	_ = e.watcher.Add(dir)
}

func (e *events) forward() {
	for {
		select {
		case _, ok := <-e.watcher.Events:
			if !ok {
				return
			}
		case _, ok := <-e.watcher.Errors:
			if !ok {
				return
			}
		}
		select {
		case e.changed <- struct{}{}:
		default:
		}
	}
}

// settle waits until nothing has happened for a while, so that an editor's several steps are one change.
func (e *events) settle(ctx context.Context, quiet time.Duration) {
	end := time.After(maxSettle)
	for {
		select {
		case <-ctx.Done():
			return
		case <-end:
			return
		case <-time.After(quiet):
			return
		case <-e.changed:
		}
	}
}

// ConfigMap returns a ConfigMap that stands beside the pods.
func (d *Directory) ConfigMap(_ context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return lookUp[*corev1.ConfigMap](d, podmill.ObjectRef{Kind: "ConfigMap", Namespace: namespace, Name: name})
}

// Secret returns a Secret that stands beside the pods.
func (d *Directory) Secret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	return lookUp[*corev1.Secret](d, podmill.ObjectRef{Kind: "Secret", Namespace: namespace, Name: name})
}

func lookUp[T any](d *Directory, ref podmill.ObjectRef) (T, error) {
	var none T
	s := d.current()
	if s == nil {
		return none, fmt.Errorf("%s %s/%s: the manifests in %s have not been read yet", ref.Kind, ref.Namespace, ref.Name, d.path)
	}
	object, ok := s.objects[ref].(T)
	if !ok {
		return none, fmt.Errorf("%s %s/%s is in no manifest in %s: %w", ref.Kind, ref.Namespace, ref.Name, d.path, podmill.ErrNotFound)
	}
	return object, nil
}
