package syncpod

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/internal/lifecycle"
)

// makeDirectories makes what a pod needs on disk before anything of it runs.
func (s *Syncer) makeDirectories(pod *corev1.Pod) error {
	dir, err := s.podDir(pod.UID)
	if err != nil {
		return err
	}
	if dir != "" {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return err
		}
	}
	logs, err := s.logDir(pod)
	if err != nil || logs == "" {
		return err
	}
	for c := range lifecycle.Containers(pod) {
		into, err := below(logs, c.Name)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(into, 0o755); err != nil { //nolint:gosec // as the kubelet's: log shippers read it
			return err
		}
	}
	return os.MkdirAll(filepath.Join(s.logRoot, containersDir), 0o755) //nolint:gosec // likewise
}

// logName is the name of a log, rotated or not: the attempt comes first.
var logName = regexp.MustCompile(`^(\d+)\.log(\..*)?$`)

// loggedAttempts returns, by container, one more than the highest attempt that has left a log: what a runtime that has forgotten all,
// as after a reboot, must not begin anew. A directory that cannot be read may hold anything.
func (s *Syncer) loggedAttempts(pod *corev1.Pod) (map[string]uint32, error) {
	logs, err := s.logDir(pod)
	if err != nil || logs == "" {
		return nil, nil // a pod that cannot have logs has none; making its directory says why
	}
	next := map[string]uint32{}
	for c := range lifecycle.Containers(pod) {
		entries, err := os.ReadDir(filepath.Join(logs, c.Name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look for earlier logs of container %s: %w", c.Name, err)
		}
		for _, e := range entries {
			if n, ok := attemptOf(e); ok {
				next[c.Name] = max(next[c.Name], n+1)
			}
		}
	}
	return next, nil
}

func attemptOf(e fs.DirEntry) (uint32, bool) {
	match := logName.FindStringSubmatch(e.Name())
	if match == nil || e.IsDir() {
		return 0, false
	}
	n, err := strconv.ParseUint(match[1], 10, 31) // a restart count is no larger
	return uint32(n), err == nil
}

// linkLog makes the link by which log shippers find a container's log.
func (s *Syncer) linkLog(pod *corev1.Pod, container, id string, attempt uint32) error {
	logs, err := s.logDir(pod)
	if err != nil || logs == "" {
		return err
	}
	link, err := s.linkTo(pod, container, id)
	if err != nil {
		return err
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(filepath.Join(logs, logPath(container, attempt)), link)
}

// unlinkLog removes the link to a container's log.
func (s *Syncer) unlinkLog(pod *corev1.Pod, container, id string) error {
	if s.logRoot == "" {
		return nil
	}
	link, err := s.linkTo(pod, container, id)
	if err != nil {
		return err
	}
	return removeFile(link)
}

// removeLogs removes the logs of a container that was removed, and the link to them.
func (s *Syncer) removeLogs(pod *corev1.Pod, r *Remove) error {
	logs, err := s.logDir(pod)
	if err != nil || logs == "" {
		return err
	}
	dir, err := below(logs, r.Name)
	if err != nil {
		return err
	}
	errs := []error{s.unlinkLog(pod, r.Name, r.ID)}
	if path, err := s.messageFile(pod.UID, r.Name, r.Attempt); err == nil && path != "" {
		errs = append(errs, removeFile(path))
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, e := range entries {
		if n, ok := attemptOf(e); ok && n == r.Attempt {
			errs = append(errs, removeFile(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
