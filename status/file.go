package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/atomicfile"
)

// FileSink is a [podmill.StatusSink] for agents without an API server. It keeps one file a pod, <dir>/<uid>.json, which holds
// a v1 Pod with metadata and status. A file is replaced at once: a reader sees the old one or the new one.
//
// A status that says that something has ended, a container or the pod, is on disk when UpdateStatus returns: a machine that loses its power
// must not run a finished pod again, nor begin to count restarts anew. Any other is written without waiting for the disk, on which runtimes wait for most of
// the time that a start takes: after such a loss its file may be empty, and such a pod is one of which nothing was known.
type FileSink struct {
	dir  string
	sync func(dir string) error // puts on disk what a directory holds: names, not what is in files

	seed maphash.Seed
	mu   sync.Mutex
	put  map[types.UID]uint64 // digests of what this sink has put into files
}

// record is a v1 Pod with nothing but who it is and how it does: an encoder would look through all of an empty spec.
type record struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            corev1.PodStatus `json:"status"`
}

// NewFileSink returns a sink that keeps its files in dir, and makes dir if it is not there.
func NewFileSink(dir string) (*FileSink, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("make status directory: %w", err)
	}
	return &FileSink{dir: dir, sync: atomicfile.SyncDirectory, seed: maphash.MakeSeed(), put: map[types.UID]uint64{}}, nil
}

// UpdateStatus writes the pod's file, unless it says the same already.
func (s *FileSink) UpdateStatus(_ context.Context, pod *corev1.Pod, status *corev1.PodStatus) error {
	path, err := s.path(pod.UID)
	if err != nil {
		return err
	}
	data, err := json.Marshal(record{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Generation: pod.Generation},
		Status:     *status,
	})
	if err != nil {
		return fmt.Errorf("encode status of pod %s: %w", podmill.RefOf(pod), err)
	}
	data = append(data, '\n')
	last := lasting(status)
	if digest := maphash.Bytes(s.seed, data); !s.says(pod.UID, path, data, digest) {
		if err := atomicfile.Replace(path, data, last); err != nil {
			return fmt.Errorf("write status of pod %s: %w", podmill.RefOf(pod), err)
		}
		s.note(pod.UID, digest)
	}
	if last { // also where it says the same: whoever wrote that may have been stopped here
		if err := s.sync(s.dir); err != nil {
			return fmt.Errorf("put status of pod %s on disk: %w", podmill.RefOf(pod), err)
		}
	}
	return nil
}

// says reports whether the pod's file holds data. Nearly always it holds what this sink has put there, which is something else: that needs no look at it.
func (s *FileSink) says(uid types.UID, path string, data []byte, digest uint64) bool {
	s.mu.Lock()
	was, mine := s.put[uid]
	s.mu.Unlock()
	if mine && was != digest {
		return false
	}
	old, err := os.ReadFile(path) //nolint:gosec // path was checked
	return err == nil && bytes.Equal(old, data)
}

func (s *FileSink) note(uid types.UID, digest uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put[uid] = digest
}

func (s *FileSink) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.put, uid)
}

// FinishPod removes the pod's file.
func (s *FileSink) FinishPod(_ context.Context, pod *corev1.Pod) error {
	path, err := s.path(pod.UID)
	if err != nil {
		return err
	}
	s.forget(pod.UID)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove status of pod %s: %w", podmill.RefOf(pod), err)
	}
	return nil
}

// Load returns the statuses that are on disk, by UID: what an agent knew before it was restarted. A file that cannot be read or that is
// not what UpdateStatus writes is left alone and named in the error, which does not keep the others from being returned.
func (s *FileSink) Load() (map[types.UID]corev1.PodStatus, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("read status directory: %w", err)
	}
	statuses := map[types.UID]corev1.PodStatus{}
	var errs []error
	for _, entry := range entries {
		uid, ok := strings.CutSuffix(entry.Name(), ".json")
		if !ok || !entry.Type().IsRegular() {
			continue
		}
		var read record
		data, err := os.ReadFile(filepath.Join(s.dir, entry.Name())) //nolint:gosec // a name that the directory gave
		if err == nil {
			err = json.Unmarshal(data, &read)
		}
		if err == nil && string(read.UID) != uid {
			err = fmt.Errorf("it says that it is of pod %q", read.UID)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("read status file %s: %w", entry.Name(), err))
			continue
		}
		statuses[read.UID] = read.Status
	}
	return statuses, errors.Join(errs...)
}

// Cleanup removes the files of pods that nobody keeps, and what an interrupted write left of one.
func (s *FileSink) Cleanup(_ context.Context, keep func(types.UID) bool) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("read status directory: %w", err)
	}
	var errs []error
	for _, entry := range entries {
		uid, ok := strings.CutSuffix(strings.TrimSuffix(entry.Name(), atomicfile.Unfinished), ".json")
		if !ok || !entry.Type().IsRegular() || keep(types.UID(uid)) {
			continue
		}
		s.forget(types.UID(uid))
		if err := os.Remove(filepath.Join(s.dir, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove status file: %w", err))
		}
	}
	return errors.Join(errs...)
}

// path returns the pod's file. A UID that is not a plain file name is refused.
func (s *FileSink) path(uid types.UID) (string, error) {
	name := string(uid)
	if name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") || len(name) > 200 {
		return "", fmt.Errorf("pod UID %q cannot name a file", name)
	}
	return filepath.Join(s.dir, name+".json"), nil
}

// lasting reports that a status tells of something that nobody else would know after a loss of power.
func lasting(status *corev1.PodStatus) bool {
	if final(status.Phase) {
		return true
	}
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses} {
		for i := range list {
			if c := &list[i]; c.RestartCount > 0 || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil {
				return true
			}
		}
	}
	return false
}

// FuncSink is a [podmill.StatusSink] made of a function. It has nothing to do when a pod is finished.
type FuncSink func(ctx context.Context, pod *corev1.Pod, status *corev1.PodStatus) error

// UpdateStatus calls the function.
func (f FuncSink) UpdateStatus(ctx context.Context, pod *corev1.Pod, status *corev1.PodStatus) error {
	return f(ctx, pod, status)
}

// FinishPod does nothing.
func (f FuncSink) FinishPod(context.Context, *corev1.Pod) error { return nil }
