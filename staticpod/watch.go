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
	moving  bool // the last event was that something hidden got another name
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
			if counts, whole := w.take(event); counts {
				return w.settle(ctx, whole)
			}
		case err := <-w.errors:
			w.log.V(1).Info("events were lost: reading the manifests", "reason", err.Error())
			return w.settle(ctx, false)
		}
	}
}

// settle returns when nothing has happened for a while, so that the steps in which editors save, and whoever copies many files, make one change.
// While nothing but whole files has come there are no such steps, and hardly anything to wait for.
func (w *watch) settle(ctx context.Context, whole bool) bool {
	wait := w.quiet
	if whole {
		wait = min(wait, settleWhole)
	}
	most, quiet := time.NewTimer(settleMost*w.quiet), time.NewTimer(wait)
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
			counts, whole := w.take(event)
			if counts && !whole {
				wait = w.quiet
			}
			if counts {
				quiet.Reset(wait)
			}
		case err := <-w.errors:
			w.log.V(1).Info("events were lost", "reason", err.Error())
		}
	}
}

// take says whether an event counts and, if so, whether it is of a file that came whole: it was written under a hidden name, and renamed.
func (w *watch) take(event fsnotify.Event) (counts, whole bool) {
	counts = w.counts(event)
	whole = counts && w.moving && event.Has(fsnotify.Create)
	w.moving = event.Has(fsnotify.Rename) && !counts // its new name follows
	return counts, whole
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
