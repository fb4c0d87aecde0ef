package logs

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/podmill/podmill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTidy(t *testing.T) {
	const a, b, c, d = "0.log.20260101-000001", "0.log.20260101-000002", "0.log.20260101-000003", "0.log.20260101-000004"
	for _, tt := range []struct {
		name             string
		names            []string
		remove, compress []string
	}{
		{"nothing was rotated", []string{"0.log"}, nil, nil},
		{"the newest before this is compressed", []string{"0.log", a}, nil, []string{a}},
		{"three stay", []string{a + ".gz", b + ".gz", c + ".gz", d}, []string{a + ".gz"}, []string{d}},
		{"half a file goes", []string{a, a + ".gz.tmp", b + ".tmp"}, []string{a + ".gz.tmp", b + ".tmp"}, []string{a}},
		{"what was compressed goes", []string{a, a + ".gz", b}, []string{a}, []string{b}},
		{
			"other files are none of ours",
			[]string{"1.log", "1.log.20260101-000001", "0.log.bak", "0.log.bak.gz", "0.logs", "10.log.20260101-000001", "0.log.tmp", a + ".gz.gz"},
			nil, nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			remove, compress := tidy(tt.names, "0.log", 3)
			slices.Sort(remove)
			if diff := cmp.Diff([][]string{tt.remove, tt.compress}, [][]string{remove, compress}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// runtime writes a container's log, one line after another, into the file that it opened last.
type runtime struct {
	t    *testing.T
	path string
	file *os.File
	err  error
	line byte
}

func newRuntime(t *testing.T, dir string) *runtime {
	r := &runtime{t: t, path: filepath.Join(dir, "shop_cart_u", "web", "0.log"), line: 'a'}
	if err := os.MkdirAll(filepath.Dir(r.path), 0o755); err != nil {
		t.Fatal(err)
	}
	r.open()
	t.Cleanup(func() { _ = r.file.Close() })
	return r
}

func (r *runtime) open() {
	_ = r.file.Close()
	var err error
	if r.file, err = os.OpenFile(r.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640); err != nil {
		r.t.Fatal(err)
	}
}

// write fills the log with 100 bytes of the next letter.
func (r *runtime) write() {
	if _, err := r.file.WriteString(strings.Repeat(string(r.line), 99) + "\n"); err != nil {
		r.t.Fatal(err)
	}
	r.line++
}

func (r *runtime) ReopenLog(_ context.Context, id string) error {
	if id != "c-1" {
		r.t.Errorf("container %q", id)
	}
	if r.err == nil {
		r.open()
	}
	return r.err
}

func (r *runtime) pods() ([]*podmill.RuntimePod, bool) {
	return []*podmill.RuntimePod{{Containers: []podmill.Container{
		{ID: "c-1", Name: "web", State: podmill.StateRunning, LogPath: r.path},
		{ID: "c-0", Name: "web", State: podmill.StateExited, LogPath: r.path},
	}}}, true
}

// contents returns the first letter of each line, by file.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		file, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		var in io.Reader = file
		if strings.HasSuffix(e.Name(), ".gz") {
			if in, err = gzip.NewReader(file); err != nil {
				t.Fatal(err)
			}
		}
		b, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		letters := ""
		for line := range strings.Lines(string(b)) {
			letters += line[:1]
		}
		out[e.Name()] = letters
	}
	return out
}

func TestALogThatGrowsIsKeptToItsSize(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t, dir)
		ctx, cancel := context.WithCancel(t.Context())
		var rotations int
		r := New(dir, rt.pods, rt, WithMaxSize(200), WithMaxFiles(4), WithObserver(func(_ podmill.PodRef, c, _ string, err error) {
			if c != "web" || err != nil {
				t.Errorf("container %s: %v", c, err)
			}
			rotations++
		}))
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		for range 13 {
			rt.write()
			time.Sleep(10 * time.Second)
			synctest.Wait()
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v", err)
		}
		want := map[string]string{
			"0.log":                    "m",
			"0.log.20000101-000200":    "kl",
			"0.log.20000101-000140.gz": "ij",
			"0.log.20000101-000120.gz": "gh",
		}
		if diff := cmp.Diff(want, contents(t, filepath.Dir(rt.path))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if rotations != 6 {
			t.Errorf("told of %d rotations", rotations)
		}
		info, err := os.Stat(filepath.Join(filepath.Dir(rt.path), "0.log.20000101-000120.gz"))
		if err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("a compressed log has the mode %v, %v", info.Mode(), err)
		}
	})
}

func TestALogThatCannotBeOpenedAnewKeepsItsName(t *testing.T) {
	dir := t.TempDir()
	rt := newRuntime(t, dir)
	rt.write()
	rt.err = errors.New("connection refused")
	var told error
	r := New(dir, rt.pods, rt, WithMaxSize(100), WithObserver(func(_ podmill.PodRef, _, _ string, err error) { told = err }))
	pods, _ := rt.pods()
	if !r.look(t.Context(), pods) || !errors.Is(told, rt.err) {
		t.Errorf("told %v", told)
	}
	rt.write()
	if diff := cmp.Diff(map[string]string{"0.log": "ab"}, contents(t, filepath.Dir(rt.path))); diff != "" {
		t.Error(diff)
	}
	rt.err = errors.ErrUnsupported
	if r.look(t.Context(), pods) {
		t.Error("looks again at a runtime that never can")
	}
}

func TestWhatIsNotALogOfOursIsLeftAlone(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	rt := newRuntime(t, other)
	rt.write()
	link := filepath.Join(dir, "0.log")
	if err := os.Symlink(rt.path, link); err != nil {
		t.Fatal(err)
	}
	r := New(dir, rt.pods, rt, WithMaxSize(1))
	for _, path := range []string{rt.path, link, dir, filepath.Join(dir, "none"), "", filepath.Join(dir, "..", filepath.Base(other), "shop_cart_u", "web", "0.log")} {
		if r.large(path) {
			t.Errorf("%s is taken for a log", path)
		}
	}
}
