package crilog

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const sample = `2026-01-02T03:04:05.1Z stdout F one
2026-01-02T03:04:06.1Z stderr F two
2026-01-02T03:04:07.1Z stdout P thr
2026-01-02T03:04:07.1Z stdout F ee
not in the format
`

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCopy(t *testing.T) {
	n := func(i int64) *int64 { return &i }
	for _, tc := range []struct {
		name           string
		opts           Options
		stdout, stderr string
	}{
		{"all", Options{}, "one\nthree\nnot in the format\n", "two\n"},
		{"tail", Options{Tail: n(2)}, "ee\nnot in the format\n", ""},
		{"tail of more than there is", Options{Tail: n(99)}, "one\nthree\nnot in the format\n", "two\n"},
		{"tail of nothing", Options{Tail: n(0)}, "", ""},
		{"since", Options{Since: time.Date(2026, 1, 2, 3, 4, 7, 0, time.UTC)}, "three\nnot in the format\n", ""},
		{"limit", Options{LimitBytes: n(6)}, "one\n", "tw"},
		{"timestamps", Options{Timestamps: true, Tail: n(5), LimitBytes: n(10)}, "2026-01-02", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "0.log")
			write(t, path, sample)
			var stdout, stderr bytes.Buffer
			if err := Copy(t.Context(), path, tc.opts, &stdout, &stderr); err != nil {
				t.Fatal(err)
			}
			if stdout.String() != tc.stdout || stderr.String() != tc.stderr {
				t.Errorf("stdout %q, stderr %q; want %q, %q", &stdout, &stderr, tc.stdout, tc.stderr)
			}
		})
	}
}

func TestCopyFollowsThroughARotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	write(t, path, "2026-01-02T03:04:05Z stdout F before\n2026-01-02T03:04:05Z stdout F ha")
	steps := 0
	follow := func() bool {
		switch steps++; steps {
		case 2: // the line is finished, the file rotated, and a new one begun
			write(t, path, "2026-01-02T03:04:05Z stdout F before\n2026-01-02T03:04:05Z stdout F half\n")
			if err := os.Rename(path, path+".old"); err != nil {
				t.Error(err)
			}
		case 3:
			write(t, path, "2026-01-02T03:04:06Z stdout F after\n")
		}
		return steps < 4
	}
	var out bytes.Buffer
	if err := Copy(t.Context(), path, Options{Follow: follow}, &out, &out); err != nil {
		t.Fatal(err)
	}
	if want := "before\nhalf\nafter\n"; out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
}

func TestCopyEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	write(t, path, sample)
	ctx, cancel := context.WithCancel(t.Context())
	follow := func() bool { cancel(); return true }
	if err := Copy(ctx, path, Options{Follow: follow}, &bytes.Buffer{}, &bytes.Buffer{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := Copy(t.Context(), path+".not", Options{}, nil, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestCopyBoundsALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	write(t, path, strings.Repeat("x", 10*maxLine))
	var out bytes.Buffer
	if err := Copy(t.Context(), path, Options{}, &out, &out); err != nil {
		t.Fatal(err)
	}
	if out.Len() < 9*maxLine {
		t.Errorf("only %d bytes came through", out.Len())
	}
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte("2026-01-02T03:04:05.1Z stdout F one"))
	f.Add([]byte("  "))
	f.Fuzz(func(t *testing.T, line []byte) {
		if stamp, _, _, text := split(line); stamp == nil && !bytes.Equal(text, line) {
			t.Errorf("%q lost text: %q", line, text)
		}
	})
}
