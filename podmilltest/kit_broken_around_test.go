package podmilltest

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// brokenStatusSink is a sink that breaks a promise.
type brokenStatusSink struct {
	*StatusSink
	update func(ctx context.Context, pod *corev1.Pod, status *corev1.PodStatus) error
	finish func(ctx context.Context, pod *corev1.Pod) error
}

func (b *brokenStatusSink) UpdateStatus(ctx context.Context, pod *corev1.Pod, status *corev1.PodStatus) error {
	if b.update != nil {
		return b.update(ctx, pod, status)
	}
	return b.StatusSink.UpdateStatus(ctx, pod, status)
}

func (b *brokenStatusSink) FinishPod(ctx context.Context, pod *corev1.Pod) error {
	if b.finish != nil {
		return b.finish(ctx, pod)
	}
	return b.StatusSink.FinishPod(ctx, pod)
}

func sinkPromises() map[string]func(*brokenStatusSink) {
	return map[string]func(*brokenStatusSink){
		"the first status stays": func(b *brokenStatusSink) {
			b.update = func(ctx context.Context, pod *corev1.Pod, status *corev1.PodStatus) error {
				if b.Status(pod.UID) != nil {
					return nil
				}
				return b.StatusSink.UpdateStatus(ctx, pod, status)
			}
		},
		"pods are known by name": func(b *brokenStatusSink) {
			var mu sync.Mutex
			last := map[string]types.UID{}
			b.update = func(ctx context.Context, pod *corev1.Pod, status *corev1.PodStatus) error {
				mu.Lock()
				if _, known := last[pod.Name]; !known || pod.UID == "latter" {
					last[pod.Name] = pod.UID
				}
				of := pod.DeepCopy()
				of.UID = last[pod.Name]
				mu.Unlock()
				return b.StatusSink.UpdateStatus(ctx, of, status)
			}
		},
		"each call is a write": func(b *brokenStatusSink) {
			b.update = func(ctx context.Context, pod *corev1.Pod, status *corev1.PodStatus) error {
				_ = b.StatusSink.UpdateStatus(ctx, pod, &corev1.PodStatus{})
				return b.StatusSink.UpdateStatus(ctx, pod, status)
			}
		},
		"finishes once": func(b *brokenStatusSink) {
			b.finish = func(ctx context.Context, pod *corev1.Pod) error {
				if b.Finished(pod.UID) {
					return podmill.ErrGone
				}
				return b.StatusSink.FinishPod(ctx, pod)
			}
		},
		"changes the caller's status": func(b *brokenStatusSink) {
			b.update = func(ctx context.Context, pod *corev1.Pod, status *corev1.PodStatus) error {
				err := b.StatusSink.UpdateStatus(ctx, pod, status)
				status.QOSClass = corev1.PodQOSBurstable
				return err
			}
		},
	}
}

func brokenSink(t *testing.T, breakIt func(*brokenStatusSink)) {
	StatusSinkTest(t, func(t *testing.T) StatusSinkEnv {
		env := memorySink(t)
		b := &brokenStatusSink{StatusSink: env.Sink.(*StatusSink)}
		breakIt(b)
		env.Sink = b
		return env
	})
}

// brokenPodSource is a source whose deliveries are changed.
type brokenPodSource struct {
	*PodSource
	change func(u podmill.PodUpdate, deliver func(podmill.PodUpdate))
	run    func(ctx context.Context, deliver func(podmill.PodUpdate)) error
}

func (b *brokenPodSource) Run(ctx context.Context, deliver func(podmill.PodUpdate)) error {
	if b.run != nil {
		return b.run(ctx, deliver)
	}
	return b.PodSource.Run(ctx, func(u podmill.PodUpdate) { b.change(u, deliver) })
}

func sourcePromises() map[string]func(*brokenPodSource) {
	runs := 0
	changes := func(change func(u podmill.PodUpdate, deliver func(podmill.PodUpdate))) func(*brokenPodSource) {
		return func(b *brokenPodSource) { b.change = change }
	}
	return map[string]func(*brokenPodSource){
		"begins with an upsert": changes(func(u podmill.PodUpdate, deliver func(podmill.PodUpdate)) {
			if u.Op == podmill.ReplacePods {
				u.Op = podmill.UpsertPods
			}
			deliver(u)
		}),
		"says nothing of nothing": changes(func(u podmill.PodUpdate, deliver func(podmill.PodUpdate)) {
			if len(u.Pods) > 0 {
				deliver(u)
			}
		}),
		"tells one by one": changes(func(u podmill.PodUpdate, deliver func(podmill.PodUpdate)) {
			for i := range u.Pods {
				deliver(podmill.PodUpdate{Op: u.Op, Pods: u.Pods[i : i+1]})
			}
			if len(u.Pods) == 0 {
				deliver(u)
			}
		}),
		"never deletes": changes(func(u podmill.PodUpdate, deliver func(podmill.PodUpdate)) {
			if u.Op != podmill.DeletePods {
				deliver(u)
			}
		}),
		"without UIDs": changes(func(u podmill.PodUpdate, deliver func(podmill.PodUpdate)) {
			u.Pods = slices.Clone(u.Pods)
			for i := range u.Pods {
				u.Pods[i] = u.Pods[i].DeepCopy()
				u.Pods[i].UID = ""
			}
			deliver(u)
		}),
		"new UIDs in each run": func(b *brokenPodSource) {
			b.run = func(ctx context.Context, deliver func(podmill.PodUpdate)) error {
				runs++
				return b.PodSource.Run(ctx, func(u podmill.PodUpdate) {
					u.Pods = slices.Clone(u.Pods)
					for i := range u.Pods {
						u.Pods[i] = u.Pods[i].DeepCopy()
						u.Pods[i].UID += types.UID(rune('0' + runs%10))
					}
					deliver(u)
				})
			}
		},
		"changes pods later": changes(func(u podmill.PodUpdate, deliver func(podmill.PodUpdate)) {
			deliver(u)
			for _, pod := range u.Pods {
				pod.Spec.NodeName = "later"
			}
		}),
		"delivers from two goroutines": changes(func(u podmill.PodUpdate, deliver func(podmill.PodUpdate)) {
			done := make(chan struct{})
			go func() { defer close(done); deliver(u) }()
			deliver(u)
			<-done
		}),
		"outlives its context": func(b *brokenPodSource) {
			b.run = func(ctx context.Context, deliver func(podmill.PodUpdate)) error {
				err := b.PodSource.Run(ctx, deliver)
				time.Sleep(time.Second)
				return err
			}
		},
	}
}

func brokenSource(t *testing.T, breakIt func(*brokenPodSource)) {
	PodSourceTest(t, func(t *testing.T) PodSourceEnv {
		env := memorySource(t)
		b := &brokenPodSource{PodSource: env.Source.(*PodSource)}
		breakIt(b)
		env.Source, env.Patience = b, 100*time.Millisecond
		return env
	})
}

// brokenVolumes is a mounter that breaks a promise.
type brokenVolumes struct {
	*VolumeMounter
	mount   func(ctx context.Context, pod *corev1.Pod) (map[string]podmill.Volume, error)
	unmount func(ctx context.Context, pod types.UID) error
	subPath func(ctx context.Context, pod *corev1.Pod, s podmill.SubPath) (string, error)
}

func (b *brokenVolumes) MountVolumes(ctx context.Context, pod *corev1.Pod) (map[string]podmill.Volume, error) {
	if b.mount != nil {
		return b.mount(ctx, pod)
	}
	return b.VolumeMounter.MountVolumes(ctx, pod)
}

func (b *brokenVolumes) UnmountVolumes(ctx context.Context, pod types.UID) error {
	if b.unmount != nil {
		return b.unmount(ctx, pod)
	}
	return b.VolumeMounter.UnmountVolumes(ctx, pod)
}

func (b *brokenVolumes) MountSubPath(ctx context.Context, pod *corev1.Pod, s podmill.SubPath) (string, error) {
	if b.subPath != nil {
		return b.subPath(ctx, pod, s)
	}
	return b.VolumeMounter.MountSubPath(ctx, pod, s)
}

func volumePromises() map[string]func(*brokenVolumes) {
	return map[string]func(*brokenVolumes){
		"another path each time": func(b *brokenVolumes) {
			n := 0
			b.mount = func(ctx context.Context, pod *corev1.Pod) (map[string]podmill.Volume, error) {
				volumes, err := b.VolumeMounter.MountVolumes(ctx, pod)
				n++
				for name, v := range volumes {
					v.HostPath = path.Join(v.HostPath, string(rune('0'+n%10)))
					volumes[name] = v
				}
				return volumes, err
			}
		},
		"returns what is new": func(b *brokenVolumes) {
			b.mount = func(ctx context.Context, pod *corev1.Pod) (map[string]podmill.Volume, error) {
				before := b.Mounted(pod.UID)
				volumes, err := b.VolumeMounter.MountVolumes(ctx, pod)
				maps.DeleteFunc(volumes, func(name string, _ podmill.Volume) bool { return slices.Contains(before, name) })
				return volumes, err
			}
		},
		"leaves what it mounted": func(b *brokenVolumes) {
			b.unmount = func(context.Context, types.UID) error { return nil }
		},
		"unmounts every pod": func(b *brokenVolumes) {
			b.unmount = func(ctx context.Context, pod types.UID) error {
				return errors.Join(b.VolumeMounter.UnmountVolumes(ctx, pod), b.VolumeMounter.UnmountVolumes(ctx, Pod("b").UID))
			}
		},
		"cannot unmount what is not mounted": func(b *brokenVolumes) {
			b.unmount = func(ctx context.Context, pod types.UID) error {
				if len(b.Mounted(pod)) == 0 {
					return podmill.ErrNotFound
				}
				return b.VolumeMounter.UnmountVolumes(ctx, pod)
			}
		},
		"does not say what is broken": func(b *brokenVolumes) {
			b.mount = func(ctx context.Context, pod *corev1.Pod) (map[string]podmill.Volume, error) {
				volumes, err := b.VolumeMounter.MountVolumes(ctx, pod)
				if err != nil {
					err = errors.New("some volume is not ready")
				}
				return volumes, err
			}
		},
		"takes a subPath anywhere": func(b *brokenVolumes) {
			b.subPath = func(_ context.Context, pod *corev1.Pod, s podmill.SubPath) (string, error) {
				return path.Join(b.root, string(pod.UID), s.Volume, s.Path), nil
			}
		},
		"another subPath each time": func(b *brokenVolumes) {
			n := 0
			b.subPath = func(ctx context.Context, pod *corev1.Pod, s podmill.SubPath) (string, error) {
				n++
				part, err := b.VolumeMounter.MountSubPath(ctx, pod, s)
				return part + strconv.Itoa(n), err
			}
		},
		"leaves what is not ready": func(b *brokenVolumes) {
			b.mount = func(ctx context.Context, pod *corev1.Pod) (map[string]podmill.Volume, error) {
				volumes, err := b.VolumeMounter.MountVolumes(ctx, pod)
				if err != nil {
					return map[string]podmill.Volume{}, nil //nolint:nilerr // the promise that it breaks
				}
				return volumes, nil
			}
		},
	}
}

func brokenMounter(t *testing.T, breakIt func(*brokenVolumes)) {
	VolumeMounterTest(t, func(t *testing.T) VolumeMounterEnv {
		env := memoryVolumes(t)
		b := &brokenVolumes{VolumeMounter: env.Mounter.(*VolumeMounter)}
		breakIt(b)
		env.Mounter, env.Restart = b, func(*testing.T) podmill.VolumeMounter { return b }
		return env
	})
}
