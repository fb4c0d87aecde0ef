package syncpod

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// deadlineFile holds until when a pod may take to end. Neither a manifest that was removed nor the runtime can say that
// to an agent that was restarted meanwhile.
const deadlineFile = "termination.json"

// keepDeadline joins a termination with the one that is on disk, and returns and keeps the stricter of the two: the deadline
// only ever comes nearer, and the first reason stays. The termination that is returned is good also with an error.
func (s *Syncer) keepDeadline(uid types.UID, t podmill.Termination) (podmill.Termination, error) {
	dir, err := s.podDir(uid)
	if err != nil || dir == "" {
		return t, err
	}
	path := filepath.Join(dir, deadlineFile)
	kept, err := readDeadline(path)
	if err == nil {
		joined := stricter(kept, t)
		if joined == kept {
			return joined, nil
		}
		t = joined
	}
	return t, writeDeadline(path, t)
}

// dropDeadline removes the deadline of an end that was called off.
func (s *Syncer) dropDeadline(uid types.UID) error {
	dir, err := s.podDir(uid)
	if err != nil || dir == "" {
		return err
	}
	return removeFile(filepath.Join(dir, deadlineFile))
}

func stricter(kept, t podmill.Termination) podmill.Termination {
	if kept.Reason == "" {
		kept.Reason, kept.Message = t.Reason, t.Message
	}
	if t.Deadline.Before(kept.Deadline) {
		kept.Deadline, kept.GracePeriodSeconds = t.Deadline, t.GracePeriodSeconds
	}
	return kept
}

func readDeadline(path string) (t podmill.Termination, err error) {
	b, err := os.ReadFile(path) //nolint:gosec // ours
	if err != nil {
		return t, err
	}
	if err := json.Unmarshal(b, &t); err != nil {
		return t, fmt.Errorf("read %s: %w", path, err)
	}
	return t, nil
}

// writeDeadline replaces the file as a whole: a reader sees the old one or the new one.
func writeDeadline(path string, t podmill.Termination) error {
	b, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	err = os.WriteFile(path+".tmp", b, 0o600)
	if err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("keep the deadline: %w", err), removeFile(path+".tmp"))
	}
	return nil
}

// ownFile reports that a file of a pod's directory, by its path in there, was written here.
func ownFile(path string) bool {
	switch path {
	case hostsFile, deadlineFile, deadlineFile + ".tmp":
		return true
	}
	return false
}
