package atomicdir

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// B030 and CVE-2017-1002102's neighbours: the agent is killed before, in the middle of or after any operation, any number of times, and what is wanted
// changes in between. A reader sees exactly one version at any time, and the next start repairs everything.
func TestKilledAnywhere(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		path, err := os.MkdirTemp(base, "")
		if err != nil {
			rt.Fatal(err)
		}
		root, err := os.OpenRoot(path)
		if err != nil {
			rt.Fatal(err)
		}
		defer root.Close()
		var visible []map[string]string // what a reader may see: what was last written, and what is being written
		for range rapid.IntRange(1, 6).Draw(rt, "writes") {
			next := drawFiles(rt)
			dir := &counting{
				Dir: In(root), killed: rapid.IntRange(0, 20).Draw(rt, "killed at"),
				when: rapid.SampledFrom([]moment{before, halfway, after}).Draw(rt, "when"),
			}
			visible = append(visible, next)
			_, err := Write(dir, text(next), 0o755)
			switch {
			case err == nil:
				check(rt, path, next)
				visible = []map[string]string{next}
			case !errors.Is(err, errKilled):
				rt.Fatalf("after %v: %v", dir.done, err)
			default:
				seesOne(rt, path, visible, dir.done)
			}
		}
		last := drawFiles(rt)
		if _, err := Write(In(root), text(last), 0o755); err != nil {
			rt.Fatal(err)
		}
		check(rt, path, last)
	})
}

func drawFiles(rt *rapid.T) map[string]string {
	files := map[string]string{}
	names := []string{"a", "b", "d/x", "d/y", "e/f/g"}
	for _, name := range names {
		if rapid.Bool().Draw(rt, name) {
			files[name] = fmt.Sprintf("%s=%d of %s", name, rapid.IntRange(0, 2).Draw(rt, "version"), name)
		}
	}
	return files
}

// seesOne fails unless what is behind ..data is one of the sets.
func seesOne(rt *rapid.T, path string, sets []map[string]string, done []string) {
	got := map[string]string{}
	version := filepath.Join(path, "..data")
	if _, err := os.Lstat(version); os.IsNotExist(err) {
		return // nothing was ever whole
	}
	for _, name := range []string{"a", "b", "d/x", "d/y", "e/f/g"} {
		if data, err := os.ReadFile(filepath.Join(version, name)); err == nil {
			got[name] = string(data)
		}
	}
	for _, want := range sets {
		if maps.Equal(got, want) {
			return
		}
	}
	rt.Fatalf("after %v a reader sees a mix:\n%s", done, cmp.Diff(sets[len(sets)-1], got))
}

func TestFullDiskLeavesNothing(t *testing.T) {
	dir, path := open(t)
	files := map[string]string{"a": "1", "b": "1"}
	write(t, dir, path, files)
	if _, err := Write(&fullDisk{Dir: dir, room: 1}, text(map[string]string{"a": "2", "b": "2", "c": "2"}), 0o755); err == nil {
		t.Fatal("no error")
	}
	check(t, path, files)
}
