package csi

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// registry has the drivers that are registered. Where several have one name, as while one is exchanged for its next version, it is the newest that
// is asked, and when that goes the one before it.
type registry struct {
	mu      sync.Mutex
	drivers map[string][]*driver
	changed chan struct{} // is closed when the drivers are others
}

// find returns the driver of that name, nil if there is none, and what is closed when that may have changed.
func (r *registry) find(name string) (d *driver, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if all := r.drivers[name]; len(all) > 0 {
		d = all[len(all)-1]
	}
	return d, r.watch()
}

// all returns the drivers in the order of their names, and what is closed when they may be others.
func (r *registry) all() ([]*driver, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*driver
	for named := range maps.Values(r.drivers) {
		all = append(all, named[len(named)-1])
	}
	slices.SortFunc(all, func(a, b *driver) int { return cmp.Compare(a.name, b.name) })
	return all, r.watch()
}

func (r *registry) watch() <-chan struct{} {
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

func (r *registry) add(d *driver) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.drivers == nil {
		r.drivers = map[string][]*driver{}
	}
	r.drivers[d.name] = append(r.drivers[d.name], d)
	r.tell()
}

func (r *registry) remove(d *driver) {
	r.mu.Lock()
	defer r.mu.Unlock()
	others := slices.DeleteFunc(slices.Clone(r.drivers[d.name]), func(o *driver) bool { return o == d })
	if r.drivers[d.name] = others; len(others) == 0 {
		delete(r.drivers, d.name)
	}
	r.tell()
}

func (r *registry) tell() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}
