package staticpod

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
)

// watch tells when something may have changed at a path. It is a help: what it misses is found when the path is read again.
type watch struct {
	path    string
	watcher *fsnotify.Watcher // nil where the system does not tell
	events  <-chan fsnotify.Event
	errors  <-chan error
	dir     string      // that is watched, empty if none
	id      os.FileInfo // of dir when it was
	only    string      // the name of the one file that counts, if the path is not a directory
	quiet   time.Duration
	log     logr.Logger
	told    bool // that it does not work
}

func newWatch(path string, quiet time.Duration, log logr.Logger) *watch {
	w := &watch{path: path, quiet: quiet, log: log}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		log.Info("the system does not tell of changes to manifests: they are read now and then", "reason", err.Error())
		return w
	}
	w.watcher, w.events, w.errors = watcher, watcher.Events, watcher.Errors
	return w
}

func (w *watch) close() {
	if w.watcher != nil {
		_ = w.watcher.Close()
	}
}

// follow makes sure that what is at the path now is watched: it may not have been there before, or be another one. Of a single file it is the
// directory around it, for whoever replaces a file leaves the old one watched.
func (w *watch) follow() {
	if w.watcher == nil {
		return
	}
	dir, only := w.path, ""
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		dir, only = filepath.Split(filepath.Clean(w.path))
		dir = filepath.Clean(dir)
		info, err = os.Stat(dir)
	}
	// A directory that is gone is not watched any more, even if the next one of its name has its inode.
	watched := w.dir != "" && slices.Contains(w.watcher.WatchList(), w.dir)
	if err == nil && watched && dir == w.dir && os.SameFile(info, w.id) {
		return
	}
	if watched {
		_ = w.watcher.Remove(w.dir)
	}
	w.dir = ""
	if err != nil {
		return
	}
	if err := w.watcher.Add(dir); err != nil {
		if !w.told {
			w.log.Info("the system does not tell of changes to manifests: they are read now and then", "reason", err.Error())
		}
		w.told = true
		return
	}
	w.dir, w.id, w.only, w.told = dir, info, only, false
}

// next returns when something may have changed, or after a time. It reports whether ctx goes on.
func (w *watch) next(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case event := <-w.events:
			if w.counts(event) {
				return w.settle(ctx)
			}
		case err := <-w.errors:
			w.log.V(1).Info("events were lost: reading the manifests", "reason", err.Error())
			return w.settle(ctx)
		}
	}
}

// settle returns when nothing has happened for a while, so that the steps in which editors save, and whoever copies many files, make one change.
func (w *watch) settle(ctx context.Context) bool {
	most, quiet := time.NewTimer(settleMost*w.quiet), time.NewTimer(w.quiet)
	defer most.Stop()
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-most.C:
			return true
		case <-quiet.C:
			return true
		case event := <-w.events:
			if w.counts(event) {
				quiet.Reset(w.quiet)
			}
		case err := <-w.errors:
			w.log.V(1).Info("events were lost", "reason", err.Error())
		}
	}
}

// counts says whether an event may be of a manifest. Names that begin with two dots are those of volumes that are updated atomically.
func (w *watch) counts(event fsnotify.Event) bool {
	name := filepath.Base(event.Name)
	switch {
	case strings.HasPrefix(name, ".."), event.Name == w.dir:
		return true
	case w.only != "":
		return name == w.only
	default:
		return !isHidden(name)
	}
}
