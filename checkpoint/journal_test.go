package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func open(t testing.TB, path string) (*journal, error) {
	t.Helper()
	j, damage, err := openJournal(path, func(key string) bool { return strings.HasPrefix(key, "secret") })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.close() })
	return j, damage
}

func values(t testing.TB, j *journal) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, key := range j.keys("") {
		var value string
		if !j.get(key, &value) {
			t.Errorf("key %s has no value", key)
		}
		all[key] = value
	}
	return all
}

func put(t testing.TB, j *journal, key, value string) {
	t.Helper()
	if err := j.put(key, value); err != nil {
		t.Fatal(err)
	}
}

func commit(t testing.TB, j *journal) {
	t.Helper()
	if _, _, err := j.commit(false); err != nil {
		t.Fatal(err)
	}
}

// A crash leaves a file that was cut at any place behind the last fsync: what the journal says then was true at a moment after the last commit.
func TestACrashAtAnyByteLeavesWhatWasTrueOnce(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		path := filepath.Join(dir, "journal")
		_ = os.Remove(path)
		j, _, err := openJournal(path, func(string) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = j.close() }()
		now := map[string]string{}
		change := func() {
			key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
			if rapid.Bool().Draw(t, "gone") {
				j.drop(func(k string) bool { return k == key })
				delete(now, key)
				return
			}
			value := rapid.StringN(0, 20, -1).Draw(t, "value")
			if err := j.put(key, value); err != nil {
				t.Fatal(err)
			}
			now[key] = value
		}
		for range rapid.IntRange(1, 5).Draw(t, "commits") {
			for range rapid.IntRange(0, 4).Draw(t, "changes") {
				change()
			}
			if _, _, err := j.commit(false); err != nil {
				t.Fatal(err)
			}
		}
		synced := maps.Clone(now)
		before := j.size
		change() // one at a time, so that every prefix of lines is a moment
		states := []map[string]string{synced, maps.Clone(now)}
		if _, _, err := j.commit(false); err != nil {
			t.Fatal(err)
		}
		cut := rapid.Int64Range(min(before, j.size), j.size).Draw(t, "cut")
		if err := os.Truncate(path, cut); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		again, damage, err := openJournal(path, func(string) bool { return false })
		if err != nil || damage != nil {
			t.Fatalf("open again: %v, damage: %v", err, damage)
		}
		got := map[string]string{}
		for _, key := range again.keys("") {
			var value string
			again.get(key, &value)
			got[key] = value
		}
		if !maps.Equal(got, states[0]) && !maps.Equal(got, states[1]) {
			t.Fatalf("after a cut at %d of %d: %v, want %v or %v", cut, j.size, got, states[0], states[1])
		}
	})
}

func TestWhatIsDamagedIsSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, path)
	put(t, j, "a", "1")
	put(t, j, "b", "2")
	commit(t, j)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	broken := bytes.Replace(data, []byte(`{"key":"a"`), []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), 1)
	if err := os.WriteFile(path, broken, 0o600); err != nil {
		t.Fatal(err)
	}
	again, damage := open(t, path)
	if damage == nil || !strings.Contains(damage.Error(), "line 1") {
		t.Errorf("damage is %v, want line 1 named", damage)
	}
	if diff := cmp.Diff(map[string]string{"b": "2"}, values(t, again)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	commit(t, again)
	if aside, err := os.ReadFile(path + ".damaged"); err != nil || !bytes.HasPrefix(broken, aside) || len(aside) == 0 {
		t.Errorf("what was damaged is not set aside: %v", err)
	}
	if healed, damage := open(t, path); damage != nil || len(values(t, healed)) != 1 {
		t.Errorf("after a write the file has damage: %v", damage)
	}
}

// What is put or dropped ten thousand times costs no more than twice what is live, and a little.
func TestTheFileIsBoundedByWhatIsLive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, path)
	most := int64(0)
	for i := range 3000 {
		put(t, j, fmt.Sprint("key", i%7), strings.Repeat("x", 500)+fmt.Sprint(i))
		commit(t, j)
		most = max(most, j.size)
	}
	if limit := int64(2*j.bytes + slack + 1000); most > limit || most < slack {
		t.Errorf("the file had %d bytes, want at most %d", most, limit)
	}
	again, _ := open(t, path)
	if diff := cmp.Diff(values(t, j), values(t, again)); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
}

// Whoever reads the disk later finds no Secret that was replaced or dropped.
func TestNoOldSecretStaysInTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, path)
	put(t, j, "secret/a", "canary-1")
	put(t, j, "secret/b", "canary-2")
	commit(t, j)
	put(t, j, "secret/a", "canary-3")
	commit(t, j)
	j.drop(func(key string) bool { return key == "secret/b" })
	commit(t, j)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for canary, want := range map[string]bool{"canary-1": false, "canary-2": false, "canary-3": true} {
		if got := bytes.Contains(data, []byte(canary)); got != want {
			t.Errorf("%s is in the file: %v, want %v", canary, got, want)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v, %v, want 0600", info.Mode(), err)
	}
}

// A disk that takes nothing loses nothing: what could not be written is written when it can.
func TestAWriteThatFailsIsMadeUpFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, path)
	put(t, j, "a", "1")
	commit(t, j)
	_ = j.file.Close() // every write fails from now on
	put(t, j, "b", "2")
	if _, _, err := j.commit(false); err == nil {
		t.Fatal("a write to a closed file has no error")
	}
	put(t, j, "c", "3")
	if err := os.Mkdir(path+".new", 0o700); err != nil { // and no new file can be made either
		t.Fatal(err)
	}
	if _, _, err := j.commit(false); err == nil {
		t.Fatal("a file in the place of a directory has no error")
	}
	if diff := cmp.Diff(map[string]string{"a": "1"}, values(t, first(open(t, path)))); diff != "" {
		t.Errorf("on disk meanwhile (-want +got):\n%s", diff)
	}
	if err := os.Remove(path + ".new"); err != nil {
		t.Fatal(err)
	}
	commit(t, j)
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "2", "c": "3"}, values(t, first(open(t, path)))); diff != "" {
		t.Errorf("on disk in the end (-want +got):\n%s", diff)
	}
}

func first(j *journal, _ error) *journal { return j }
