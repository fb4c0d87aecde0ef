package atomicdir

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/volume/internal/canary"
)

// CVE-2017-1002102: what the agent finds in a volume was put there by an attacker.
func TestAttacks(t *testing.T) {
	for name, attack := range map[string]func(t *testing.T, path, version, outside string){
		"..data leads out": func(t *testing.T, path, _, outside string) {
			must(t, os.Remove(filepath.Join(path, "..data")), os.Symlink(outside, filepath.Join(path, "..data")))
		},
		"..data leads out by a name like a version's": func(t *testing.T, path, _, outside string) {
			must(t, os.Symlink(outside, filepath.Join(path, "..2_evil")), os.Remove(filepath.Join(path, "..data")), os.Symlink("..2_evil", filepath.Join(path, "..data")))
		},
		"..data leads out by steps": func(t *testing.T, path, _, outside string) {
			must(t, os.Remove(filepath.Join(path, "..data")), os.Symlink("..2/../../"+filepath.Base(outside), filepath.Join(path, "..data")))
		},
		"..data is a directory": func(t *testing.T, path, _, outside string) {
			must(t, os.Remove(filepath.Join(path, "..data")), os.Mkdir(filepath.Join(path, "..data"), 0o755), os.Symlink(outside, filepath.Join(path, "..data/x")))
		},
		"..data is a file": func(t *testing.T, path, _, _ string) {
			must(t, os.Remove(filepath.Join(path, "..data")), os.WriteFile(filepath.Join(path, "..data"), nil, 0o644))
		},
		"the version leads out": func(t *testing.T, path, version, outside string) {
			must(t, os.RemoveAll(filepath.Join(path, version)), os.Symlink(outside, filepath.Join(path, version)))
		},
		"a directory in the version leads out": func(t *testing.T, path, version, outside string) {
			must(t, os.RemoveAll(filepath.Join(path, version, "d")), os.Symlink(outside, filepath.Join(path, version, "d")))
		},
		"a file in the version leads out": func(t *testing.T, path, version, outside string) {
			must(t, os.Remove(filepath.Join(path, version, "k")), os.Symlink(filepath.Join(outside, "file"), filepath.Join(path, version, "k")))
		},
		"a file in the version is a pipe": func(t *testing.T, path, version, _ string) {
			must(t, os.Remove(filepath.Join(path, version, "empty")), unix.Mkfifo(filepath.Join(path, version, "empty"), 0o644))
		},
		"..data_tmp leads out": func(t *testing.T, path, _, outside string) {
			must(t, os.Symlink(outside, filepath.Join(path, "..data_tmp")))
		},
		"..data_tmp is a directory": func(t *testing.T, path, _, outside string) {
			must(t, os.Mkdir(filepath.Join(path, "..data_tmp"), 0o755), os.Symlink(outside, filepath.Join(path, "..data_tmp/x")))
		},
		"a key leads out": func(t *testing.T, path, _, outside string) {
			must(t, os.Remove(filepath.Join(path, "k")), os.Symlink(filepath.Join(outside, "file"), filepath.Join(path, "k")))
		},
		"a key is a directory": func(t *testing.T, path, _, outside string) {
			must(t, os.Remove(filepath.Join(path, "k")), os.Mkdir(filepath.Join(path, "k"), 0o755), os.Symlink(outside, filepath.Join(path, "k/x")))
		},
		"an old version leads out": func(t *testing.T, path, _, outside string) {
			must(t, os.Symlink(outside, filepath.Join(path, "..2020_01_01_00_00_00.1")))
		},
	} {
		for _, next := range []string{"same", "new"} {
			t.Run(name+", then "+next, func(t *testing.T) {
				outside := canary.Tree(t)
				dir, path := open(t)
				files := map[string]string{"k": "same", "d/k": "same", "empty": ""}
				write(t, dir, path, files)
				version, _ := os.Readlink(filepath.Join(path, "..data"))
				attack(t, path, version, outside)
				files["k"] = next
				write(t, dir, path, files)
			})
		}
	}
}

// A directory of somebody else's is no version, even if it has the same files.
func TestDataLinkLeadsToAVersion(t *testing.T) {
	dir, path := open(t)
	files := map[string]string{"k": "v"}
	write(t, dir, path, files)
	version, _ := os.Readlink(filepath.Join(path, "..data"))
	must(t, os.Rename(filepath.Join(path, version), filepath.Join(path, "theirs")), os.Remove(filepath.Join(path, "..data")),
		os.Symlink("theirs", filepath.Join(path, "..data")))
	if changed, err := Write(dir, text(files), 0o755); err != nil || !changed {
		t.Errorf("changed %v, error %v", changed, err)
	}
	if version, _ = os.Readlink(filepath.Join(path, "..data")); !isVersion(version) {
		t.Errorf("..data leads to %s", version)
	}
}

// A privileged container can mount over what the agent wrote.
func TestOldVersionIsNotRemovedAcrossAMount(t *testing.T) {
	testenv.Root(t)
	outside := canary.Tree(t)
	dir, path := open(t)
	write(t, dir, path, map[string]string{"d/k": "1"})
	version, _ := os.Readlink(filepath.Join(path, "..data"))
	at := filepath.Join(path, version, "d")
	must(t, unix.Mount(outside, at, "", unix.MS_BIND, ""))
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	if _, err := Write(dir, text(map[string]string{"d/k": "2"}), 0o755); err == nil {
		t.Error("no error tells of what stays")
	}
	if data, err := os.ReadFile(filepath.Join(path, "d/k")); string(data) != "2" {
		t.Errorf("d/k is %q, %v, want the new version all the same", data, err)
	}
	if !slices.Contains(list(t, path), version) {
		t.Error("the version with the mount is gone")
	}
}
