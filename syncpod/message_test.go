//go:build unix

package syncpod

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// B096: what a container leaves as its last words is never more than the limits, nor read through a link, nor waited for.
func TestMessage(t *testing.T) {
	var log strings.Builder
	for i := range 200 {
		fmt.Fprintf(&log, "2026-01-02T03:04:05Z stdout F line %d\n", i)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(text string) func(path string) error {
		return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
	}
	var last80 strings.Builder
	for i := 120; i < 200; i++ {
		fmt.Fprintf(&last80, "line %d\n", i)
	}
	for _, tc := range []struct {
		name   string
		make   func(path string) error
		policy corev1.TerminationMessagePolicy
		code   int32
		want   string
	}{
		{"as it is", write("out of tea"), "", 1, "out of tea"},
		{"the end of what is long", write("begin" + strings.Repeat("x", 4096)), "", 1, strings.Repeat("x", 4096)},
		{"the end of 1 GB", func(path string) error { return errors.Join(write("")(path), os.Truncate(path, 1<<30)) }, "", 0, strings.Repeat("\x00", 4096)},
		{"a failure that says nothing, and has a log", write(""), corev1.TerminationMessageFallbackToLogsOnError, 1, last80.String()},
		{"no file, and a log", func(string) error { return nil }, corev1.TerminationMessageFallbackToLogsOnError, 1, last80.String()},
		{"a success needs no log", write(""), corev1.TerminationMessageFallbackToLogsOnError, 0, ""},
		{"the file wins", write("out of tea"), corev1.TerminationMessageFallbackToLogsOnError, 1, "out of tea"},
		{"no log without the policy", write(""), corev1.TerminationMessageReadFile, 1, ""},
		{"a link", func(path string) error { return os.Symlink(secret, path) }, "", 1, "Error on reading termination log PATH: not a regular file"},
		{"a FIFO", func(path string) error { return syscall.Mkfifo(path, 0o600) }, "", 1, "Error on reading termination log PATH: not a regular file"},
		{"a directory", func(path string) error { return os.Mkdir(path, 0o700) }, "", 1, "Error on reading termination log PATH: not a regular file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			s := &Syncer{options: options{root: dir, logRoot: dir}}
			c := &podmill.Container{Name: "app", Attempt: 3, ExitCode: tc.code, LogPath: filepath.Join(dir, "3.log"), Annotations: map[string]string{
				podmill.AnnotationTerminationMessagePath: "/dev/termination-log", podmill.AnnotationTerminationMessagePolicy: string(tc.policy),
			}}
			path, err := s.messageFile("uid", "app", 3)
			if err != nil || os.MkdirAll(filepath.Dir(path), 0o700) != nil || tc.make(path) != nil || write(log.String())(c.LogPath) != nil {
				t.Fatal("the world could not be made", err)
			}
			got, _ := s.message("uid", c)
			if got = strings.ReplaceAll(got, path, "PATH"); got != tc.want {
				t.Errorf("got %d bytes %.60q, want %d bytes %.60q", len(got), got, len(tc.want), tc.want)
			}
		})
	}
}
