package syncpod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/crilog"
)

// The kubelet's limits of what is read of a container's last words.
const (
	maxMessage      = 4 << 10 // of its file
	maxMessageLog   = 2 << 10 // of its log
	maxMessageLines = 80      // of its log
)

// messageFile returns the file that an instance of a container sees at its terminationMessagePath, empty if pods have no directories.
func (o *options) messageFile(uid types.UID, container string, attempt uint32) (string, error) {
	dir, err := o.podDir(uid)
	if err != nil || dir == "" {
		return "", err
	}
	into, err := below(filepath.Join(dir, containersDir), container)
	return filepath.Join(into, strconv.FormatUint(uint64(attempt), 10)), err
}

// isMessageFile reports that a file of a pod's directory, by its path in there, is for termination messages.
func isMessageFile(path string) bool {
	parts := strings.Split(filepath.ToSlash(path), "/")
	if len(parts) != 3 || parts[0] != containersDir {
		return false
	}
	_, err := strconv.ParseUint(parts[2], 10, 32)
	return err == nil
}

// makeMessageFile makes the file for a container's termination message, which whoever runs in it may write, and returns its path.
func (s *Syncer) makeMessageFile(pod *corev1.Pod, c *corev1.Container, attempt uint32) (string, error) {
	path, err := s.messageFile(pod.UID, c.Name, attempt)
	if err != nil || path == "" || c.TerminationMessagePath == "" {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return "", err
	}
	if err := removeFile(path); err != nil { // of a try that came to nothing
		return "", err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // ours
	if err != nil {
		return "", err
	}
	return path, errors.Join(f.Chmod(0o666), f.Close()) // whatever the umask
}

// report tells the reporter how a pod stands, its containers' last words included.
func (s *Syncer) report(ctx context.Context, pod *corev1.Pod, seen *podmill.RuntimePod, p podmill.Progress) error {
	for i := range seen.Containers {
		c := &seen.Containers[i]
		if c.State != podmill.StateExited {
			continue
		}
		if text, ok := s.message(pod.UID, c); ok {
			if p.Messages == nil {
				p.Messages = map[string]string{}
			}
			p.Messages[c.ID] = text
		}
	}
	return s.Reporter.Report(ctx, pod, seen, p)
}

// message returns what a container that has ended has left as its last words: the end of its file or, where that is empty, it failed and its policy is
// FallbackToLogsOnError, the end of its log. ok says that something could be found out.
func (s *Syncer) message(uid types.UID, c *podmill.Container) (text string, ok bool) {
	path, err := s.messageFile(uid, c.Name, c.Attempt)
	if err == nil && path != "" && c.Annotations[podmill.AnnotationTerminationMessagePath] != "" {
		text, err = tail(path, maxMessage)
		switch {
		case err == nil:
			ok = true
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Sprintf("Error on reading termination log %s: %v", path, err), true
		}
	}
	fallback := c.Annotations[podmill.AnnotationTerminationMessagePolicy] == string(corev1.TerminationMessageFallbackToLogsOnError)
	if text == "" && fallback && c.ExitCode != 0 && s.logRoot != "" && c.LogPath != "" {
		// Every line has a head that is not told; a line is at most 16 KiB.
		if raw, err := tail(c.LogPath, 64<<10); err == nil {
			return crilog.Last(raw, maxMessageLines, maxMessageLog), true
		}
	}
	return text, ok
}

// tail returns the end of a file. Containers write it, so it may be anything: a link is not followed, nothing but a regular file is read, and that not
// from its begin.
func tail(path string, limit int64) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("not a regular file")
	}
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0) //nolint:gosec // ours, and if it is not, it is seen
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	// What was opened may be another file than the one above.
	if info, err = f.Stat(); err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("not a regular file")
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-limit), limit))
	return string(text), err
}
