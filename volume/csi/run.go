package csi

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

const (
	// rescan is how often the directory of sockets is read.
	rescan = time.Second
	// The pauses between attempts of a driver to register: the kubelet's.
	minPause = 500 * time.Millisecond
	maxPause = 2*time.Minute + 2*time.Second
)

// Run lets drivers register, and tells the cluster of them, until ctx ends. Each socket in the directory of registrations has a goroutine of its own, so that one that
// hangs keeps no other from registering; a socket that fails is tried again, after growing pauses. Names that begin with a dot are left alone, and so is what lies in
// directories there.
func (d *Drivers) Run(ctx context.Context) error {
	dir := d.layout.registrations()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make the directory in which CSI drivers register: %w", err)
	}
	log := logr.FromContextOrDiscard(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	if d.opts.cluster != nil {
		all.Go(func() { d.publishDrivers(ctx) })
	}
	followed := map[string]*following{}
	defer func() {
		for _, f := range followed {
			f.stop()
		}
	}()
	tick := time.NewTicker(rescan)
	defer tick.Stop()
	for said := ""; ; {
		found, err := sockets(dir)
		if err == nil {
			d.followAll(ctx, followed, found, &all)
		} else if err.Error() != said { // what is registered stays
			said = err.Error()
			log.Error(err, "CSI drivers cannot register", "directory", dir)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// following is a socket that is followed.
type following struct {
	info fs.FileInfo
	stop context.CancelFunc
}

// followAll stops following sockets that have gone or been replaced, and begins with those that are new.
func (d *Drivers) followAll(ctx context.Context, followed map[string]*following, found map[string]fs.FileInfo, all *sync.WaitGroup) {
	for path, f := range followed {
		if info := found[path]; info == nil || !sameSocket(f.info, info) {
			f.stop()
			delete(followed, path)
		}
	}
	for path, info := range found {
		if followed[path] == nil {
			own, stop := context.WithCancel(ctx)
			followed[path] = &following{info, stop}
			all.Go(func() { d.follow(own, path) })
		}
	}
}

// sameSocket reports whether it is still the same one. A driver that is started anew makes another, which may even get the inode of the one before.
func sameSocket(a, b fs.FileInfo) bool { return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) }

// sockets returns the sockets in a directory, by path.
func sockets(dir string) (map[string]fs.FileInfo, error) {
	entries, err := os.ReadDir(dir)
	found := map[string]fs.FileInfo{}
	for _, entry := range entries {
		if entry.Type() != fs.ModeSocket || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if info, err := entry.Info(); err == nil { // else it has just gone
			found[filepath.Join(dir, entry.Name())] = info
		}
	}
	return found, err
}

// follow has the driver behind a socket register, and keeps it registered until the socket has gone.
func (d *Drivers) follow(ctx context.Context, socket string) {
	log := logr.FromContextOrDiscard(ctx).WithValues("socket", socket)
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		registered, name, err := d.register(ctx, socket)
		if ctx.Err() != nil {
			return
		}
		d.opts.observer.registered(socket, name, err)
		if err == nil {
			log.Info("a CSI driver has registered", "driver", name, "endpoint", registered.endpoint)
			d.serve(ctx, registered)
			log.Info("a CSI driver has gone", "driver", name)
			d.opts.observer.gone(socket, name)
			return
		}
		log.Error(err, "a plugin cannot register", "driver", name)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// serve has a driver among those that are registered until ctx ends.
func (d *Drivers) serve(ctx context.Context, own *driver) {
	d.registry.add(own)
	defer d.registry.remove(own)
	if err := notify(ctx, own.socket, nil); err != nil && ctx.Err() == nil {
		logr.FromContextOrDiscard(ctx).Error(err, "a CSI driver does not hear that it has registered", "driver", own.name)
	}
	d.cleanUp(ctx, own.name)
	<-ctx.Done()
}
