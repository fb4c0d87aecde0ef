package syncpod

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Cleanup removes the directories and logs of pods that keep does not want, and links to logs that are gone. keep must want every pod that may have
// anything in the runtime. What cannot be removed without a risk to somebody's data stays, is named in the error, and
// hinders nothing else.
func (s *Syncer) Cleanup(ctx context.Context, keep func(types.UID) bool) error {
	var errs []error
	if s.root != "" {
		errs = append(errs, eachEntry(ctx, filepath.Join(s.root, podsDir), func(name string) error {
			if uid := types.UID(name); !keep(uid) {
				return s.removeDirectory(uid)
			}
			return nil
		}))
	}
	if s.logRoot != "" {
		errs = append(errs, eachEntry(ctx, filepath.Join(s.logRoot, podsDir), func(name string) error {
			if uid, ok := uidOfLogs(name); !ok || keep(uid) {
				return nil
			}
			return removeTree(filepath.Join(s.logRoot, podsDir, name), func(string) bool { return true })
		}))
		errs = append(errs, eachEntry(ctx, filepath.Join(s.logRoot, containersDir), s.removeDeadLink))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("clean up after pods: %w", err)
	}
	return nil
}

// removeDirectory removes a pod's directory, and what is kept there with it: the pod's user IDs are anybody's then. Volumes must be gone: of them only empty
// directories and links are left.
func (s *Syncer) removeDirectory(uid types.UID) error {
	if s.users != nil {
		if err := s.users.Release(uid); err != nil {
			return err
		}
	}
	dir, err := s.podDir(uid)
	if err != nil || dir == "" {
		return err
	}
	return removeTree(dir, func(path string) bool { return ownFile(path) || isMessageFile(path) })
}

// uidOfLogs returns whose a directory of logs is, by its name: <namespace>_<name>_<uid>.
func uidOfLogs(name string) (types.UID, bool) {
	parts := strings.SplitN(name, "_", 3)
	return types.UID(parts[len(parts)-1]), len(parts) == 3
}

// removeDeadLink removes a link to a log of ours that is gone.
func (s *Syncer) removeDeadLink(name string) error {
	link := filepath.Join(s.logRoot, containersDir, name)
	target, err := os.Readlink(link)
	if err != nil || !strings.HasPrefix(target, filepath.Join(s.logRoot, podsDir)+string(filepath.Separator)) {
		return nil //nolint:nilerr // not a link that was made here
	}
	if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
		return nil // it is there, or may be
	}
	return removeFile(link)
}

// eachEntry does something about each entry of a directory, which need not exist.
func eachEntry(ctx context.Context, dir string, do func(name string) error) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		errs = append(errs, do(e.Name()))
	}
	return errors.Join(errs...)
}
