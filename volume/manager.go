package volume

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/filename"
	"github.com/podmill/podmill/volume/internal/patience"
)

// The pauses between attempts to make a volume ready when nothing says that its chances have changed: the kubelet's.
const (
	minPause = 500 * time.Millisecond
	maxPause = 2*time.Minute + 2*time.Second
	// renewalPause is how long a volume is left as it was that holds what has ended.
	renewalPause = time.Minute
)

// Manager makes the volumes of pods ready, and takes them away.
type Manager struct {
	pods    string // the directory of all pods
	plugins []Plugin
	opts    options
	waiters waiters
	ledger  ledger
}

var _ podmill.VolumeMounter = (*Manager)(nil)

// New returns a manager of the volumes below a root directory, which it makes when it is needed: an absolute path, the kubelet's is
// /var/lib/kubelet. There is one manager for a root.
func New(root string, opts ...Option) (*Manager, error) {
	if !filepath.IsAbs(root) {
		return nil, fmt.Errorf("root directory %q of volumes is not an absolute path", root)
	}
	m := &Manager{pods: filepath.Join(root, podsDir), opts: newOptions(opts)}
	m.plugins = append(m.plugins, m.opts.plugins...)
	m.plugins = append(m.plugins, m.opts.builtins()...)
	return m, nil
}

// Changed says that an object may have changed. Volumes that MountVolumes waits for because of it are tried again at once. It returns at
// once. Volumes that are ready are brought up to date by the next MountVolumes.
func (m *Manager) Changed(ref podmill.ObjectRef) { m.waiters.wake(ref) }

// MountVolumes implements [podmill.VolumeMounter]. It makes the volumes that some container mounts, side by side, and tries again what fails:
// with growing pauses, and when Changed says that an object has. What is not supported ends the waiting for all, as
// [WithPatience] does; the error is then a [*NotReadyError]. A volume that was ready and cannot be brought up to date stays as it is: an event and
// the observer say so, and there is no error.
func (m *Manager) MountVolumes(ctx context.Context, pod *corev1.Pod) (map[string]podmill.Volume, error) {
	state, err := m.ledger.mount(ctx, pod.UID)
	if err != nil {
		return nil, fmt.Errorf("mount volumes of pod %s: %w", podmill.RefOf(pod), err)
	}
	defer state.done()
	// What is under way when there is no more use in waiting may still come to its end.
	waiting, giveUp := context.WithTimeout(ctx, m.opts.patience)
	defer giveUp()

	all := desired(pod, m.plugins)
	volumes, errs := make([]readyVolume, len(all)), make([]error, len(all))
	var attempts sync.WaitGroup
	for i := range all {
		before, wasReady := state.ready[all[i].Name]
		attempts.Go(func() {
			volumes[i], errs[i] = m.makeReady(ctx, waiting, pod, &all[i], wasReady)
			switch {
			case errs[i] == nil:
			case wasReady:
				volumes[i], errs[i] = before, nil
				if !before.Renew.IsZero() {
					volumes[i].Renew = time.Now().Add(renewalPause)
				}
			case errors.Is(errs[i], errors.ErrUnsupported):
				giveUp()
			}
		})
	}
	attempts.Wait()

	ready, notReady := map[string]podmill.Volume{}, &NotReadyError{Pod: podmill.RefOf(pod)}
	for i := range all {
		if errs[i] != nil {
			notReady.Volumes, notReady.Errs = append(notReady.Volumes, all[i].Name), append(notReady.Errs, errs[i])
			continue
		}
		ready[all[i].Name], state.ready[all[i].Name] = volumes[i].Volume, volumes[i]
	}
	if len(notReady.Volumes) > 0 {
		return nil, notReady
	}
	return ready, nil
}

// makeReady makes a volume ready. With once it tries once only.
func (m *Manager) makeReady(ctx, waiting context.Context, pod *corev1.Pod, w *wanted, once bool) (readyVolume, error) {
	// What changes from here on wakes it, whether before it waits or after.
	changed, forget := m.waiters.add(w.refs)
	defer forget()
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		volume, err := m.setUp(ctx, pod, w)
		if err == nil || once || waiting.Err() != nil || errors.Is(err, errors.ErrUnsupported) {
			return volume, err
		}
		var later LaterError
		_ = errors.As(err, &later) // else there is nobody who tells
		timer := time.NewTimer(pause)
		select {
		case <-changed:
		case <-later.Changed:
		case <-timer.C:
		case <-waiting.Done():
			timer.Stop()
			return readyVolume{}, err
		}
		timer.Stop()
	}
}

// setUp tries once, for as long as there is progress, and tells of a failure unless it comes from giving up.
func (m *Manager) setUp(ctx context.Context, pod *corev1.Pod, w *wanted) (volume readyVolume, err error) {
	start := time.Now()
	attempt, cancel := patience.With(ctx, m.opts.patience)
	defer cancel()
	plugin, mount, err := m.resolve(attempt, pod, w)
	if err == nil {
		volume.place = mount.Place
		volume.Volume, err = plugin.SetUp(attempt, mount)
		volume.ReadOnly = volume.ReadOnly || mount.ReadOnly
	}
	if err != nil {
		volume, err = readyVolume{}, fmt.Errorf("MountVolume.SetUp failed for volume %q : %w", w.Name, patience.Cause(attempt, err))
	}
	m.opts.observer.setUp(podmill.RefOf(pod), w.Name, time.Since(start), err)
	if err != nil && ctx.Err() == nil {
		logr.FromContextOrDiscard(ctx).Info("a volume is not ready", "pod", podmill.RefOf(pod).String(), "volume", w.Name, "reason", err.Error())
		m.opts.event(pod, "FailedMount", err.Error())
	}
	return volume, err
}

// resolve returns who makes a volume, of what, and where.
func (m *Manager) resolve(ctx context.Context, pod *corev1.Pod, w *wanted) (Plugin, Mount, error) {
	mount, plugin, name := Mount{Pod: pod, Volume: w.Volume}, w.plugin, w.Name
	if w.claim != "" && m.opts.claims != nil {
		claim, pv, err := bound(ctx, m.opts.claims, pod, w)
		if err == nil {
			err = matchesNode(pv, m.opts.nodeLabels())
		}
		if err != nil {
			return nil, Mount{}, err
		}
		if plugin = persistentPlugin(m.plugins, pv); plugin == nil {
			return nil, Mount{}, unsupportedError(kindOf(pv.Spec.PersistentVolumeSource) + " persistent volumes are not supported")
		}
		mount.PV, mount.Claim, name = pv, claim, pv.Name
		mount.ReadOnly = w.PersistentVolumeClaim != nil && w.PersistentVolumeClaim.ReadOnly
	}
	switch {
	case plugin == nil:
		return nil, Mount{}, unsupportedError(kindOf(w.VolumeSource) + " volumes are not supported")
	case !filename.Valid(name):
		return nil, Mount{}, unsupportedError("its name is no name for a directory")
	}
	mount.Place = m.place(pod.UID, plugin.Name(), name)
	return plugin, mount, nil
}

func persistentPlugin(plugins []Plugin, pv *corev1.PersistentVolume) Plugin {
	for _, p := range plugins {
		if persistent, ok := p.(PersistentPlugin); ok && persistent.HandlesPersistent(pv) {
			return p
		}
	}
	return nil
}

func (m *Manager) place(pod types.UID, plugin, volume string) Place {
	return Place{UID: pod, Plugin: plugin, Name: volume, pods: m.pods}
}
