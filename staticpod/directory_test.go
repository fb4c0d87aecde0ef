package staticpod

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

// TestDirectoryIsASource runs the conformance kit.
func TestDirectoryIsASource(t *testing.T) {
	podmilltest.PodSourceTest(t, func(t *testing.T) podmilltest.PodSourceEnv {
		dir := t.TempDir()
		return podmilltest.PodSourceEnv{
			Source: NewDirectory(dir, "node1"),
			Put: func(t *testing.T, pod *corev1.Pod) {
				pod = pod.DeepCopy()
				pod.UID, pod.APIVersion, pod.Kind = "", "v1", "Pod"
				text, err := yaml.Marshal(pod)
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, pod.Name+".yaml"), text, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			},
			Remove: func(t *testing.T, pod *corev1.Pod) {
				if err := os.Remove(filepath.Join(dir, pod.Name+".yaml")); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

// TestPutBack shows that a manifest that is removed and put back is the same pod again. B001
func TestPutBack(t *testing.T) {
	r := newRig(t, t.TempDir())
	r.gets()
	r.put("web.yaml", web)
	first := r.gets("web=web:1")[0]
	for range 3 {
		r.remove("web.yaml")
		r.gets()
		r.put("web.yaml", web)
		if again := r.gets("web=web:1")[0]; again.UID != first.UID {
			t.Fatalf("the UID was %s and is %s", first.UID, again.UID)
		}
	}
}

// TestRestart shows that a source that runs anew, in the same process or another, finds the same pods. B072
func TestRestart(t *testing.T) {
	r := newRig(t, t.TempDir())
	r.gets()
	r.put("web.yaml", web)
	first := r.gets("web=web:1")[0]
	r.stop()
	r.run()
	if again := r.gets("web=web:1")[0]; again != first {
		t.Errorf("another run has another pod: %s", cmp.Diff(first, again))
	}
	r.stop()
	r.source = NewDirectory(r.dir+"/", "node1")
	r.run()
	if again := r.gets("web=web:1")[0]; again.UID != first.UID {
		t.Errorf("another source has another UID: %s, not %s", again.UID, first.UID)
	}
}

// TestStrangeFiles shows that what is no manifest is passed over, that two pods of one name are one, and that nothing changes when what does
// not count goes. B018
func TestStrangeFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "dir.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"app.yaml": manifest("app", "v2"), "app.yaml.bak": manifest("app", "v1"), ".app.yaml.swp": "\x00", "app.yaml~": "x", "#app.yaml#": "x",
		"sub/x.yaml": manifest("sub", "v1"), "README": "read me", "b.YML": manifest("b", "v1"), "c.json": `{"apiVersion":"v1","kind":"List"}`,
		"zz.yaml": manifest("app", "v3") + "---\n" + manifest("z", "v1"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := newRig(t, dir)
	first := r.gets("app=v2", "b=v1", "z=v1")
	var said []string
	for len(r.problems) > 0 {
		said = append(said, (<-r.problems).String())
	}
	slices.Sort(said)
	want := []string{
		"README: is not read (manifests end in .yaml, .yml or .json)",
		"dir.yaml: is a directory, which is not read (put manifests beside it)",
		"sub: is not read (manifests end in .yaml, .yml or .json)",
		"zz.yaml: pod default/app-node1: is not used: app.yaml comes first and has one of the same name (remove one of them, or give it another name)",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.remove("app.yaml.bak")
	r.put("zz.yaml", manifest("z", "v1"))
	r.put("marker.yaml", manifest("marker", "v1"))
	second := r.gets("app=v2", "b=v1", "marker=v1", "z=v1") // nothing was delivered before
	for _, pod := range first {
		if !slices.Contains(second, pod) {
			t.Errorf("pod %s is another", pod.Name)
		}
	}
	if len(r.problems) > 0 {
		t.Errorf("more is said: %v", <-r.problems)
	}
}

// TestSecondOfTwo shows that of two pods of one name, or of one UID, the second takes the first's place when that goes.
func TestSecondOfTwo(t *testing.T) {
	withUID := func(name string) string {
		return strings.Replace(manifest(name, "v1"), "  name: "+name, "  name: "+name+"\n  uid: same", 1)
	}
	r := newRig(t, t.TempDir())
	r.gets()
	r.put("b.yaml", manifest("web", "v2"))
	second := r.gets("web=v2")[0]
	r.put("a.yaml", manifest("web", "v1"))
	r.gets("web=v1")
	r.says("b.yaml: pod default/web-node1: is not used: a.yaml comes first")
	r.remove("a.yaml")
	if got := r.gets("web=v2")[0]; got != second {
		t.Error("the second is another pod than before")
	}
	r.put("c.yaml", withUID("c"))
	r.gets("c=v1", "web=v2")
	r.put("d.yaml", withUID("d"))
	r.says("d.yaml: pod default/d-node1: is not used: c.yaml comes first and has one of the same UID")
	r.put("e.yaml", manifest("d", "v3"))
	r.gets("c=v1", "d=v3", "web=v2") // d's name is free
}

// TestEditors shows that however a file is saved the pod is replaced once, by the last content, and that no other file is touched. B020
func TestEditors(t *testing.T) {
	r := newRigWith(t, t.TempDir(), time.Second) // for a machine that is busy between the steps
	r.gets()
	r.put("a.yaml", manifest("a", "v1"))
	r.put("b.yaml", manifest("b", "v0"))
	a := r.gets("a=v1", "b=v0")[0]
	path := filepath.Join(r.dir, "b.yaml")
	for i, save := range []struct {
		name string
		do   func(text string)
	}{
		{"in place", func(text string) { r.must(os.WriteFile(path, []byte(text), 0o600)) }},
		{"piece by piece", func(text string) {
			f, err := os.Create(path)
			r.must(err)
			for line := range strings.Lines(text) {
				_, err := f.WriteString(line)
				r.must(err)
			}
			r.must(f.Close())
		}},
		{"as vim does", func(text string) {
			r.must(os.WriteFile(filepath.Join(r.dir, "4913"), nil, 0o600))
			r.must(os.Remove(filepath.Join(r.dir, "4913")))
			r.must(os.Rename(path, path+"~"))
			r.must(os.WriteFile(path, []byte(text), 0o600))
			r.must(os.Remove(path + "~"))
		}},
		{"as sed does", func(text string) { r.put("b.yaml", text) }},
		{"as JSON", func(text string) {
			data, err := yaml.YAMLToJSON([]byte(text))
			r.must(err)
			r.put("b.yaml", string(data))
		}},
	} {
		image := fmt.Sprintf("v%d", i+1)
		save.do(manifest("b", image))
		if pods := r.gets("a=v1", "b="+image); pods[0] != a {
			t.Errorf("%s: the other pod is another", save.name)
		}
	}
}

// TestBrokenForAWhile goes through what may become of a file while it is being worked on: what it last held goes on. B020
func TestBrokenForAWhile(t *testing.T) {
	r := newRig(t, t.TempDir())
	r.gets()
	r.put("a.yaml", manifest("a", "v1"))
	r.gets("a=v1")
	r.put("b.yaml", manifest("b", "v1"))
	r.gets("a=v1", "b=v1")

	r.put("b.yaml", manifest("b", "v2")[:40])
	r.says("b.yaml:")
	r.put("b.yaml", "")
	r.says("b.yaml: is empty")
	r.put("b.yaml", strings.Replace(manifest("b", "v3"), "image", "imag", 1))
	r.says(`b.yaml:8: pod b: spec.containers[0].imag: unknown field (did you mean "image"?)`)
	r.put("b.yaml", "\x00\x01\x02")
	r.says("b.yaml:1: control characters are not allowed")
	r.put("b.yaml", "# "+strings.Repeat("x", maxBytes))
	r.says("b.yaml: is larger than 10 MiB")
	r.put("b.yaml", manifest("b", "v4"))
	r.gets("a=v1", "b=v4")
	r.put("b.yaml", "# not now\n")
	r.gets("a=v1")
}

// TestToldOnce shows that a problem is told of when it appears and not with each look, and again when it comes back.
func TestToldOnce(t *testing.T) {
	dir := t.TempDir()
	var told []string
	d := NewDirectory(dir, "node1", WithObserver(Observer{Problem: func(p Problem) { told = append(told, p.File) }}))
	scan := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d.scan(logr.Discard())
	}
	for _, text := range []string{"x", "x", web, web, "x", "x"} {
		scan(text)
	}
	if diff := cmp.Diff([]string{"web.yaml", "web.yaml"}, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRenamedFile shows that renaming a file restarts nothing. B072
func TestRenamedFile(t *testing.T) {
	r := newRig(t, t.TempDir())
	r.gets()
	r.put("web.yaml", web)
	pod := r.gets("web=web:1")[0]
	r.must(os.Rename(filepath.Join(r.dir, "web.yaml"), filepath.Join(r.dir, "other.yml")))
	r.put("marker.yaml", manifest("marker", "v1"))
	pods := r.gets("marker=v1", "web=web:1")
	if !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.UID == pod.UID }) {
		t.Error("it is another pod")
	}
}

// TestAtomicVolume shows that a directory that is updated as a ConfigMap volume is, by exchanging a link, is read at once.
func TestAtomicVolume(t *testing.T) {
	dir := t.TempDir()
	r := &rig{T: t, dir: dir}
	version := func(name, image string) {
		r.must(os.Mkdir(filepath.Join(dir, name), 0o700))
		r.must(os.WriteFile(filepath.Join(dir, name, "web.yaml"), []byte(manifest("web", image)), 0o600))
		r.must(os.Symlink(name, filepath.Join(dir, "..data_tmp")))
		r.must(os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	version("..1", "v1")
	r.must(os.Symlink("..data/web.yaml", filepath.Join(dir, "web.yaml")))
	r = newRig(t, dir)
	r.gets("web=v1")
	version("..2", "v2")
	r.gets("web=v2")
}

// TestSingleFile shows that a single file of any name may be the source, and is followed however it is saved.
func TestSingleFile(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, filepath.Join(dir, "manifest"))
	r.says(filepath.Join(dir, "manifest") + ": cannot be read: no such file or directory (what it held goes on until it can be)")
	r.dir = dir
	r.put("other.yaml", manifest("other", "v1"))
	r.put("manifest", manifest("web", "v1"))
	r.gets("web=v1")
	r.put("manifest", manifest("web", "v2"))
	r.gets("web=v2")
	r.must(os.WriteFile(filepath.Join(dir, "manifest"), []byte(manifest("web", "v3")), 0o600))
	r.gets("web=v3")
}

// TestMissingDirectory shows that a directory that is not there is waited for and not taken for an empty one, neither at the start nor later.
func TestMissingDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "manifests")
	r := newRig(t, dir)
	r.says(dir + ": cannot be read: no such file or directory")
	if _, err := r.source.ConfigMap(t.Context(), "default", "c"); err == nil || errors.Is(err, podmill.ErrNotFound) {
		t.Errorf("nobody can know that there is no ConfigMap: %v", err)
	}
	r.must(os.Mkdir(dir, 0o700))
	r.put("web.yaml", manifest("web", "v1"))
	pod := r.gets("web=v1")[0] // the first thing that is delivered

	r.must(os.Rename(dir, dir+".away"))
	r.says(dir + ": cannot be read: no such file or directory")
	r.must(os.Rename(dir+".away", dir))
	r.put("b.yaml", manifest("b", "v1"))
	if pods := r.gets("b=v1", "web=v1"); !slices.Contains(pods, pod) { // nothing was delivered in between
		t.Error("it is another pod")
	}
	// What is put in its place is followed as well.
	r.must(os.Mkdir(dir+".new", 0o700))
	r.must(os.WriteFile(filepath.Join(dir+".new", "c.yaml"), []byte(manifest("c", "v1")), 0o600))
	r.must(os.Rename(dir, dir+".old"))
	r.must(os.Rename(dir+".new", dir))
	r.gets("c=v1")
	r.put("c.yaml", manifest("c", "v2"))
	r.gets("c=v2")
}

// TestErrorsOfDirectories shows that an error that is no absence is one as well.
func TestErrorsOfDirectories(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(filepath.Join(file, "below")); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
