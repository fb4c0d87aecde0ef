package logs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"

	"github.com/podmill/podmill"
)

// Option changes a default of a [Rotator].
type Option func(*Rotator)

// WithMaxSize is the size, in bytes, at which a log is rotated; the default is 10 MiB.
func WithMaxSize(bytes int64) Option { return func(r *Rotator) { r.maxSize = bytes } }

// WithMaxFiles is how many files a container's log may have; the default is 5, and fewer than 2 are 2.
func WithMaxFiles(n int) Option { return func(r *Rotator) { r.maxFiles = max(2, n) } }

// WithInterval is how often sizes are looked at; the default is 10 s.
func WithInterval(d time.Duration) Option { return func(r *Rotator) { r.interval = d } }

// WithObserver says who is told, after each rotation, of its outcome. The func returns at once.
func WithObserver(rotated func(pod podmill.PodRef, container, path string, err error)) Option {
	return func(r *Rotator) { r.rotated = rotated }
}

// Rotator rotates logs.
type Rotator struct {
	dir      string
	pods     func() (pods []*podmill.RuntimePod, ok bool)
	runtime  podmill.LogReopener
	maxSize  int64
	maxFiles int
	interval time.Duration
	rotated  func(pod podmill.PodRef, container, path string, err error)
}

// New returns a rotator of the logs below dir, an absolute path, of the containers in pods, which says ok once it knows them.
func New(dir string, pods func() (pods []*podmill.RuntimePod, ok bool), runtime podmill.LogReopener, opts ...Option) *Rotator {
	r := &Rotator{
		dir: filepath.Clean(dir), pods: pods, runtime: runtime, maxSize: 10 << 20, maxFiles: 5, interval: 10 * time.Second,
		rotated: func(podmill.PodRef, string, string, error) {},
	}
	for _, opt := range opts {
		opt(r)
	}
	return r
}

// Run looks at the logs at its interval until ctx ends, and returns nil then.
func (r *Rotator) Run(ctx context.Context) error {
	ticker := time.NewTicker(r.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if pods, ok := r.pods(); ok && !r.look(ctx, pods) {
			logr.FromContextOrDiscard(ctx).Info("the runtime cannot open logs anew: they are not rotated")
			<-ctx.Done()
			return nil
		}
	}
}

// look rotates what has grown too large, and reports whether there is any use in looking again.
func (r *Rotator) look(ctx context.Context, pods []*podmill.RuntimePod) (useful bool) {
	for _, pod := range pods {
		for i := range pod.Containers {
			c := &pod.Containers[i]
			if ctx.Err() != nil || c.State != podmill.StateRunning || !r.large(c.LogPath) {
				continue
			}
			err := r.rotate(ctx, c)
			if errors.Is(err, errors.ErrUnsupported) {
				return false
			}
			if err != nil {
				err = fmt.Errorf("rotate the log of container %s of pod %s: %w", c.Name, pod.PodRef, err)
				logr.FromContextOrDiscard(ctx).Error(err, "a log grows")
			}
			r.rotated(pod.PodRef, c.Name, c.LogPath, err)
		}
	}
	return true
}

// large reports that a log is one of ours and has grown too large. A link, or anything else that is no regular file, is none.
func (r *Rotator) large(path string) bool {
	rel, err := filepath.Rel(r.dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() >= r.maxSize
}

// rotate makes room, gives the log another name, and has the runtime open a new one. If it does not, the log gets its name back.
func (r *Rotator) rotate(ctx context.Context, c *podmill.Container) error {
	dir, err := os.OpenRoot(filepath.Dir(c.LogPath))
	if err != nil {
		return err
	}
	defer dir.Close()
	name := filepath.Base(c.LogPath)
	if err := makeRoom(dir, name, r.maxFiles-2); err != nil {
		return err
	}
	aside := name + "." + time.Now().UTC().Format(timeFormat)
	if _, err := dir.Lstat(aside); err == nil {
		return nil // it was rotated in this very second, and is large again: the next look will do
	}
	if err := dir.Rename(name, aside); err != nil {
		return err
	}
	err = r.runtime.ReopenLog(ctx, c.ID)
	if err == nil {
		return nil
	}
	if _, there := dir.Lstat(name); there == nil {
		return err // it was opened anew all the same
	}
	return errors.Join(err, dir.Rename(aside, name))
}
