package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill/volume/internal/hostdir"
)

// UnmountVolumes implements [podmill.VolumeMounter]. The error names each path that stays.
func (m *Manager) UnmountVolumes(ctx context.Context, pod types.UID) error {
	state, err := m.ledger.unmount(ctx, pod)
	if err == nil {
		defer state.done()
		if err = m.takeAway(ctx, pod); err == nil {
			m.forget(pod)
		}
	}
	if err != nil {
		return fmt.Errorf("unmount volumes of pod %s: %w", pod, err)
	}
	return nil
}

// Cleanup takes the volumes away of pods that keep does not want and of which an earlier process left something on disk. Those that this manager
// has mounted stay until they are unmounted. What stays of one pod hinders no other, and is named in the error with its path: a
// mount that is not a volume's with all around it, and files where none belong.
func (m *Manager) Cleanup(ctx context.Context, keep func(types.UID) bool) error {
	entries, err := os.ReadDir(m.pods)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := several{err}
	failed := make([]error, len(entries))
	var all errgroup.Group
	all.SetLimit(cleanUps)
	for i, entry := range entries {
		uid := types.UID(entry.Name())
		if !entry.IsDir() || keep(uid) {
			continue
		}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() error {
			if err := m.cleanUp(ctx, uid); err != nil {
				failed[i] = fmt.Errorf("pod %s: %w", uid, err)
			}
			return nil
		})
	}
	_ = all.Wait() // each has its own error
	errs = slices.DeleteFunc(append(errs, failed...), func(err error) bool { return err == nil })
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case len(errs) > 0:
		return fmt.Errorf("clean up after volumes: %w", errs)
	}
	return nil
}

// cleanUps is how many pods are cleaned up after at a time, so that a plugin which takes long for one does not keep the others waiting.
const cleanUps = 16

func (m *Manager) cleanUp(ctx context.Context, uid types.UID) error {
	state := m.ledger.orphan(uid)
	if state == nil {
		return nil
	}
	defer state.done()
	// Also after an error: what is left does not keep a pod of this UID from coming back.
	defer m.forget(uid)
	return m.takeAway(ctx, uid)
}

func (m *Manager) forget(uid types.UID) {
	m.ledger.forget(uid)
	m.opts.issuers.issued.Forget(func(which credentialID) bool { return which.pod == uid })
}

// takeAway takes all volumes of a pod away that are on disk, and its directory if that is empty then.
func (m *Manager) takeAway(ctx context.Context, uid types.UID) error {
	pods, err := os.OpenRoot(m.pods)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer pods.Close()
	pod, err := hostdir.Enter(pods, string(uid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer pod.Close()
	all, err := scan(pod)
	if err != nil {
		return err
	}
	steps, stays := planRemoval(all, m.owner)
	stays = append(stays, m.carryOut(ctx, uid, pod, steps, stays)...)
	var errs several
	for _, p := range stays {
		errs = append(errs, fmt.Errorf("%s: %w", filepath.Join(m.pods, string(uid), filepath.FromSlash(p.path)), p.err))
	}
	if len(errs) == 0 {
		_ = pods.Remove(string(uid)) // others may have something in it
	}
	return errs.orNil()
}

// carryOut unmounts the parts of volumes, takes the volumes away side by side, and then removes what held them, in order. As long as a part
// cannot be unmounted, no volume is touched.
func (m *Manager) carryOut(ctx context.Context, uid types.UID, pod *os.Root, steps []removal, before []problem) []problem {
	var stays []problem
	for _, step := range steps {
		if !step.part {
			continue
		}
		if err := m.removePart(uid, step.path); err != nil {
			stays = append(stays, problem{step.path, err})
		}
	}
	if len(stays) > 0 {
		return stays
	}
	failed := make([]error, len(steps))
	var all sync.WaitGroup
	for i, step := range steps {
		if step.plugin != nil {
			all.Go(func() { failed[i] = m.tearDown(ctx, uid, step) })
		}
	}
	all.Wait()
	for i, step := range steps {
		if step.plugin == nil && !step.part && !keeps(step.path, before) && !keeps(step.path, stays) {
			failed[i] = pod.Remove(filepath.FromSlash(step.path))
		}
		if failed[i] != nil && !errors.Is(failed[i], fs.ErrNotExist) {
			stays = append(stays, problem{step.path, failed[i]})
		}
	}
	return stays
}

func (m *Manager) tearDown(ctx context.Context, uid types.UID, step removal) error {
	start, place := time.Now(), m.place(uid, step.plugin.Name(), path.Base(step.path))
	err := step.plugin.TearDown(ctx, place)
	m.opts.observer.tearDown(place, time.Since(start), err)
	if err != nil {
		return fmt.Errorf("UnmountVolume.TearDown failed for volume %q : %w", place.Name, err)
	}
	return nil
}

// owner returns the plugin of a name, nil if there is none.
func (m *Manager) owner(name string) Plugin {
	for _, p := range m.plugins {
		if p.Name() == name {
			return p
		}
	}
	return nil
}
