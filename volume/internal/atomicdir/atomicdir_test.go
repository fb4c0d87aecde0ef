package atomicdir

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func must(t rapid.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// open returns a new directory that counts what is done to it.
func open(t testing.TB) (*counting, string) {
	t.Helper()
	return openAt(t, t.TempDir())
}

// openInMemory is open where many changes are made: in memory, if there is a place for that.
func openInMemory(t testing.TB) (*counting, string) {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "atomicdir")
	if err != nil {
		return open(t)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return openAt(t, dir)
}

func openAt(t testing.TB, dir string) (*counting, string) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return &counting{Dir: In(root)}, dir
}

func text(files map[string]string) map[string]File {
	all := map[string]File{}
	for name, data := range files {
		all[name] = File{Data: []byte(data), Mode: 0o644, UID: -1}
	}
	return all
}

// write writes files, checks that users see them and nothing else is left, and returns whether they changed.
func write(t testing.TB, dir Dir, path string, files map[string]string) bool {
	t.Helper()
	changed, err := Write(dir, text(files), 0o755)
	must(t, err)
	check(t, path, files)
	return changed
}

func check(t rapid.TB, path string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	version, err := os.Readlink(filepath.Join(path, "..data"))
	must(t, err)
	must(t, filepath.WalkDir(filepath.Join(path, version), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(filepath.Join(path, version), name)
		must(t, err)
		data, err := os.ReadFile(filepath.Join(path, relative)) // by the link that users have
		got[relative] = string(data)
		return err
	}))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("files (-want +got):\n%s", diff)
	}
	entries := []string{"..data", version}
	for name := range want {
		entries = append(entries, strings.Split(name, "/")[0])
	}
	slices.Sort(entries)
	if diff := cmp.Diff(slices.Compact(entries), list(t, path)); diff != "" {
		t.Fatalf("entries (-want +got):\n%s", diff)
	}
}

func list(t rapid.TB, path string) []string {
	t.Helper()
	entries, err := os.ReadDir(path)
	must(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	slices.Sort(names)
	return names
}

func TestLayout(t *testing.T) {
	dir, path := open(t)
	if !write(t, dir, path, map[string]string{"a": "1", "b/c/d": "2", "b/e": ""}) {
		t.Error("not changed")
	}
	if target, _ := os.Readlink(filepath.Join(path, "b")); target != "..data/b" {
		t.Errorf("b leads to %s, want ..data/b", target)
	}
	version, _ := os.Readlink(filepath.Join(path, "..data"))
	if ok, _ := filepath.Match("..20[0-9][0-9]_[0-9][0-9]_[0-9][0-9]_[0-9][0-9]_[0-9][0-9]_[0-9][0-9].?*", version); !ok {
		t.Errorf("..data leads to %s, want a directory like the kubelet's", version)
	}
	write(t, dir, path, map[string]string{}) // an optional ConfigMap that is gone
}

func TestUnchangedIsNotTouched(t *testing.T) {
	dir, path := open(t)
	files := map[string]string{"a": "1", "b/c": "2"}
	write(t, dir, path, files)
	before := stamps(t, path)
	dir.done = nil
	if write(t, dir, path, files) {
		t.Error("changed")
	}
	if len(dir.done) > 0 {
		t.Errorf("done: %v", dir.done)
	}
	if diff := cmp.Diff(before, stamps(t, path)); diff != "" {
		t.Errorf("times of change (-before +after):\n%s", diff)
	}
}

// stamps returns when each file and directory was last written to.
func stamps(t testing.TB, path string) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	must(t, filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		must(t, err)
		info, err := entry.Info()
		must(t, err)
		all[name] = info.ModTime().UnixNano()
		return nil
	}))
	return all
}

func TestChangeIsOneRename(t *testing.T) {
	dir, path := open(t)
	write(t, dir, path, map[string]string{"a": "1", "old": "1"})
	for _, next := range []map[string]string{
		{"a": "2", "old": "1"},
		{"a": "2", "old": "1", "new": "1"},
		{"a": "2", "new": "1"},
		{"a": "2", "b/c": "3"},
		{"a/b": "2", "b": "3"}, // files become directories, and the other way round
		{"a/b": "2x", "b": "3"},
	} {
		dir.done = nil
		if !write(t, dir, path, next) {
			t.Errorf("%v: not changed", next)
		}
		renames := slices.DeleteFunc(slices.Clone(dir.done), func(op string) bool { return !strings.HasPrefix(op, "rename") })
		if len(renames) != 1 || renames[0] != "rename ..data_tmp" {
			t.Errorf("%v: %v", next, dir.done)
		}
	}
}

// B030: the agent dies after the switch and before the links.
func TestMissingLinksAreMade(t *testing.T) {
	dir, path := open(t)
	files := map[string]string{"k": "v", "d/k": "v"}
	write(t, dir, path, files)
	version, _ := os.Readlink(filepath.Join(path, "..data"))
	must(t, os.Remove(filepath.Join(path, "k")), os.Remove(filepath.Join(path, "d")),
		os.Mkdir(filepath.Join(path, "..2020_01_01_00_00_00.1"), 0o755), os.WriteFile(filepath.Join(path, "..2020_01_01_00_00_00.1/k"), nil, 0o644),
		os.Symlink("..2020_01_01_00_00_00.1", filepath.Join(path, "..data_tmp")))
	if write(t, dir, path, files) {
		t.Error("changed")
	}
	if now, _ := os.Readlink(filepath.Join(path, "..data")); now != version {
		t.Errorf("a new version %s was written, want %s", now, version)
	}
}

func TestModes(t *testing.T) {
	dir, path := open(t)
	_, err := Write(dir, map[string]File{"a": {Mode: 0o666, UID: -1}, "d/b": {Mode: 0o400, UID: -1}}, 0o777|fs.ModeSetgid)
	must(t, err)
	for name, want := range map[string]fs.FileMode{"a": 0o666, "d/b": 0o400, "d": 0o777 | fs.ModeDir | fs.ModeSetgid, "..data": 0o777 | fs.ModeDir | fs.ModeSetgid} {
		if info, err := os.Stat(filepath.Join(path, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v whatever the umask", name, info.Mode(), err, want)
		}
	}
}

func TestOthersFilesStay(t *testing.T) {
	dir, path := open(t)
	write(t, dir, path, map[string]string{"a": "1", "b": "1"})
	must(t, os.WriteFile(filepath.Join(path, "theirs"), nil, 0o644), os.Symlink("a", filepath.Join(path, "link")), os.Mkdir(filepath.Join(path, "dir"), 0o755))
	_, err := Write(dir, text(map[string]string{"a": "2"}), 0o755)
	must(t, err)
	got := slices.DeleteFunc(list(t, path), isVersion)
	if diff := cmp.Diff([]string{"..data", "a", "dir", "link", "theirs"}, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestBadPaths(t *testing.T) {
	for _, bad := range []map[string]string{
		{"": ""}, {"/abs": ""}, {"..": ""}, {"../out": ""}, {"a/../../out": ""}, {"a/..": ""}, {"..data": ""}, {"..hidden": ""}, {".": ""}, {"a/./b": ""},
		{"a//b": ""}, {"a/": ""}, {strings.Repeat("x", 256): ""}, {"d/" + strings.Repeat("x", 256): ""}, {strings.Repeat("x/", 2048) + "x": ""},
		{"a": "", "a/b": ""}, {"a/b": "", "a/b/c/d": ""},
	} {
		dir, path := open(t)
		if _, err := Write(dir, text(bad), 0o755); err == nil || len(dir.done) > 0 || len(list(t, path)) > 0 {
			t.Errorf("%.80q: error %v, done %v", slices.Collect(maps.Keys(bad)), err, dir.done)
		}
	}
	dir, path := open(t)
	write(t, dir, path, map[string]string{".x": "", "a..b": "", "d/..x": "", `back\slash`: "", strings.Repeat("x", 255): ""})
}
