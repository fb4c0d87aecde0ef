//go:build unix

package syncpod

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/podmill/podmill"
)

func TestEnvFile(t *testing.T) {
	dir := t.TempDir()
	volume, outside := filepath.Join(dir, "volume"), filepath.Join(dir, "outside")
	must(t, os.MkdirAll(filepath.Join(volume, "sub", "deep"), 0o755))
	must(t, os.WriteFile(outside, []byte("A='precious'"), 0o600))
	must(t, os.WriteFile(filepath.Join(volume, "sub", "deep", "good"), []byte("A='1'"), 0o600))
	must(t, os.WriteFile(filepath.Join(volume, "large"), make([]byte, maxEnvFile+1), 0o600))
	must(t, os.Symlink(outside, filepath.Join(volume, "link")))
	must(t, os.Symlink("sub/deep/good", filepath.Join(volume, "inner")))
	must(t, os.Symlink("sub", filepath.Join(volume, "subs")))
	must(t, os.Symlink(dir, filepath.Join(volume, "up")))
	must(t, syscall.Mkfifo(filepath.Join(volume, "fifo"), 0o600))
	volumes := map[string]podmill.Volume{"data": {HostPath: volume}, "image": {Image: "sha256:1"}, "disk": {HostPath: outside, Block: true}}

	for path, want := range map[string]string{ // an error, or what is read
		"sub/deep/good": "A='1'", "./sub//deep/good": "A='1'",
		"none": "not found", "sub/none": "not found", "sub": "not what it should be", ".": "not what it should be",
		"link": "link is not what", "inner": "inner is not what", "subs/deep/good": "subs is not what", "up/outside": "up is not what",
		"fifo": "fifo is not what", "large": "larger than", "sub/deep/good/more": "good is not what",
		"../outside": "leads out", "/etc/passwd": "leads out", "sub/../../outside": "leads out", "": "leads out",
	} {
		text, err := readEnvFile(volumes, "data", path)
		if err == nil && string(text) != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v, want %q", path, text, err, want)
		}
		if (want == "not found") != errors.Is(err, podmill.ErrNotFound) {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, volume := range []string{"other", "image", "disk"} {
		if _, err := readEnvFile(volumes, volume, "a"); err == nil || errors.Is(err, podmill.ErrNotFound) {
			t.Errorf("volume %s: %v", volume, err)
		}
	}
}

// A container exchanges the directory for a link out of the volume, again and again: what is read is never from there.
func TestEnvFileUnderAttack(t *testing.T) {
	dir := t.TempDir()
	volume := filepath.Join(dir, "volume")
	must(t, os.MkdirAll(filepath.Join(volume, "sub"), 0o755))
	must(t, os.Mkdir(filepath.Join(dir, "outside"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "outside", "env"), []byte("precious"), 0o600))
	must(t, os.WriteFile(filepath.Join(volume, "sub", "env"), []byte("A='1'"), 0o600))
	must(t, os.Symlink(filepath.Join(dir, "outside"), filepath.Join(volume, "link")))
	stop := make(chan struct{})
	var attack sync.WaitGroup
	attack.Go(func() {
		sub, link, aside := filepath.Join(volume, "sub"), filepath.Join(volume, "link"), filepath.Join(volume, "aside")
		for {
			select {
			case <-stop:
				return
			default:
			}
			_, _, _ = os.Rename(sub, aside), os.Rename(link, sub), os.Rename(sub, link)
			_ = os.Rename(aside, sub)
		}
	})
	volumes, read := map[string]podmill.Volume{"data": {HostPath: volume}}, 0
	for range 20_000 {
		text, err := readEnvFile(volumes, "data", "sub/env")
		if strings.Contains(string(text), "precious") {
			t.Fatal("it was read from outside")
		}
		if err == nil {
			read++
		}
	}
	close(stop)
	attack.Wait()
	if read == 0 {
		t.Error("nothing was read at all")
	}
}
