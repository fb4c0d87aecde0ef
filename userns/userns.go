package userns

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/atomicfile"
	"github.com/podmill/podmill/internal/filename"
)

// perPod is how many IDs a pod gets.
const perPod = 1 << 16

// ErrExhausted says that every range is allotted. One is free again when a pod that has one has ended.
var ErrExhausted = errors.New("no range of user IDs is free")

// Manager allots ranges of IDs to pods.
type Manager struct {
	pods string // the directory of all pods

	mu     sync.Mutex
	ledger ledger
	known  bool // what is on disk is in the ledger
}

// Option changes a default of a [Manager].
type Option func(*options)

type options struct{ first, count uint64 }

// WithIDs says which IDs of the node pods may have: count IDs from first on, both multiples of 65536, for count/65536 pods at a time. The default is all from
// 65536 on, as the kubelet's without an entry in /etc/subuid. Two agents on one node need ranges of their own, and no user of the node may be in them.
func WithIDs(first, count uint64) Option {
	return func(o *options) { o.first, o.count = first, count }
}

// New returns a manager that keeps what it allots below root, an absolute path, in the directories of the pods.
func New(root string, opts ...Option) (*Manager, error) {
	// The last ID there could be is -1, which means none.
	o := options{first: perPod, count: 1<<32 - 2*perPod}
	for _, opt := range opts {
		opt(&o)
	}
	if !filepath.IsAbs(root) {
		return nil, fmt.Errorf("root directory %q of user namespaces is not an absolute path", root)
	}
	switch {
	case o.first%perPod != 0 || o.count%perPod != 0:
		return nil, fmt.Errorf("user IDs %d and %d more: both have to be multiples of %d", o.first, o.count, perPod)
	case o.first < perPod || o.count == 0 || o.count >= 1<<32 || o.first+o.count >= 1<<32:
		return nil, fmt.Errorf("user IDs %d and %d more: they have to be from %d to %d", o.first, o.count, perPod, uint64(1<<32-perPod-1))
	}
	return &Manager{
		pods:   filepath.Join(root, podsDir),
		ledger: newLedger(block(o.first/perPod), block((o.first+o.count)/perPod)),
	}, nil
}

// Allot returns the range of a pod: the one that it has, or one that no other pod has. It is on disk when Allot returns. The error is [ErrExhausted] where
// there is none.
func (m *Manager) Allot(pod types.UID) (*podmill.IDMappings, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if own, ok := m.ledger.pods[pod]; ok {
		return own.mappings(), nil
	}
	path, err := m.path(pod)
	if err != nil {
		return nil, err
	}
	if err := m.learn(); err != nil {
		return nil, err
	}
	if own, ok := m.ledger.pods[pod]; ok {
		return own.mappings(), nil
	}
	own, err := m.ledger.take(pod)
	if err != nil {
		return nil, fmt.Errorf("allot user IDs to pod %s: %w", pod, err)
	}
	if err := write(path, own); err != nil {
		// It may have been written all the same: what is on disk is looked at again before anybody gets it.
		m.ledger.release(pod)
		m.known = false
		return nil, fmt.Errorf("keep the user IDs of pod %s: %w", pod, err)
	}
	return own.mappings(), nil
}

// Release takes a pod's range back. It is idempotent, and called when nothing of the pod runs any more: the next pod may get the range.
func (m *Manager) Release(pod types.UID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	path, err := m.path(pod)
	if err != nil {
		return nil // one that can have no directory has no range
	}
	for _, file := range []string{path, path + atomicfile.Unfinished} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("release the user IDs of pod %s: %w", pod, err)
		}
	}
	m.ledger.release(pod)
	return nil
}

// learn takes over what is on disk, once. An error leaves it to be done again.
func (m *Manager) learn() error {
	if m.known {
		return nil
	}
	entries, err := os.ReadDir(m.pods)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for the user IDs of pods: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		pod := types.UID(e.Name())
		own, err := read(filepath.Join(m.pods, e.Name(), fileName))
		if err == nil {
			err = m.ledger.record(pod, own)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("no user IDs are allotted while those of pod %s are not known; once it has ended, remove %s: %w",
				pod, filepath.Join(m.pods, e.Name(), fileName), err)
		}
	}
	m.known = true
	return nil
}

// path returns a pod's file. A UID comes from whoever made the pod, and must not lead anywhere else.
func (m *Manager) path(pod types.UID) (string, error) {
	if !filename.Valid(string(pod)) {
		return "", fmt.Errorf("pod UID %q is no name for a directory", pod)
	}
	return filepath.Join(m.pods, string(pod), fileName), nil
}
