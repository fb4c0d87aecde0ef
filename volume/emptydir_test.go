package volume

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/podmilltest"
)

func TestEmptyDirIsTheContainersOwn(t *testing.T) {
	r := newRig(t)
	pod := podOf(emptyDirSource(""))
	path := r.mount(pod)
	if want := r.place(pod, "kubernetes.io~empty-dir", "v"); path != want {
		t.Errorf("at %s, want %s", path, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	must(t, os.WriteFile(filepath.Join(path, "file"), []byte("data"), 0o600), os.Chmod(path, 0o700))
	r.restart()
	r.mount(pod)
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o700 {
		t.Errorf("the mode was set again, to %v", info.Mode())
	}
	if data, _ := os.ReadFile(filepath.Join(path, "file")); string(data) != "data" {
		t.Errorf("the file is %q", data)
	}
	r.unmount(pod)
	if left := r.list("pods"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestEmptyDirOfGroup(t *testing.T) {
	testenv.Root(t)
	for _, medium := range []corev1.StorageMedium{corev1.StorageMediumDefault, corev1.StorageMediumMemory} {
		r := newRig(t)
		path := r.mount(podOf(emptyDirSource(medium), fsGroupOf(2000)))
		must(t, os.WriteFile(filepath.Join(path, "file"), nil, 0o644))
		if got := owner(t, path); got != "0:2000 2777" {
			t.Errorf("%q: directory %s, want 0:2000 2777", medium, got)
		}
		if got := owner(t, filepath.Join(path, "file")); got != "0:2000 644" {
			t.Errorf("%q: a file in it %s, want 0:2000 644", medium, got)
		}
	}
}

func TestEmptyDirInMemory(t *testing.T) {
	testenv.Root(t)
	r := newRig(t)
	source := emptyDirSource(corev1.StorageMediumMemory)
	limit := resource.MustParse("1Mi")
	source.EmptyDir.SizeLimit = &limit
	pod := podOf(source)
	path := r.mount(pod)
	if got, want := fileSystem(t, path), fmt.Sprintf("tmpfs %d", 1<<20); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	must(t, os.WriteFile(filepath.Join(path, "file"), []byte("data"), 0o600))
	r.restart() // the agent, not the machine
	r.mount(pod)
	if data, _ := os.ReadFile(filepath.Join(path, "file")); string(data) != "data" {
		t.Errorf("the file is %q", data)
	}
	if err := os.WriteFile(filepath.Join(path, "big"), make([]byte, 2<<20), 0o600); err == nil {
		t.Error("more than its limit fits in")
	}
	r.unmount(pod)
	if left := r.list("pods"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestMemoryWithoutRoot(t *testing.T) {
	if mayMount() {
		t.Skip("needs not to be root")
	}
	r := newRig(t)
	pod := podOf(emptyDirSource(corev1.StorageMediumMemory))
	r.refused(pod)
	r.unmount(pod)
}

func TestEmptyDirOfUnknownMedium(t *testing.T) {
	for medium, why := range map[corev1.StorageMedium]string{
		"HugePages": "medium HugePages needs containers that request huge pages of one size, not of 0", "Tape": `emptyDir medium "Tape" is not supported`,
		"HugePages-2Mi": "medium HugePages-2Mi needs a container that requests huge pages of that size",
	} {
		r := newRig(t)
		want := `unmounted volumes=[v]: MountVolume.SetUp failed for volume "v" : ` + why
		if got := r.refused(podOf(emptyDirSource(medium))); !strings.HasSuffix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestMemorySize(t *testing.T) {
	quantity := func(s string) *resource.Quantity {
		if s == "" {
			return nil
		}
		q := resource.MustParse(s)
		return &q
	}
	for _, tc := range []struct {
		size, pod, node string
		want            int64
	}{
		{"", "", "", 0}, {"1Mi", "", "", 1 << 20}, {"", "2Mi", "", 2 << 20}, {"", "", "4Mi", 4 << 20},
		{"1Mi", "2Mi", "4Mi", 1 << 20}, {"8Mi", "2Mi", "4Mi", 2 << 20}, {"8Mi", "16Mi", "4Mi", 4 << 20}, {"0", "", "4Mi", 4 << 20},
	} {
		var node corev1.ResourceList
		if q := quantity(tc.node); q != nil {
			node = corev1.ResourceList{corev1.ResourceMemory: *q}
		}
		pod := podmilltest.Pod("a", podmilltest.Container("c", "i", func(c *corev1.Container) {
			if q := quantity(tc.pod); q != nil {
				c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: *q}
			}
		}))
		if got := memorySize(pod, &corev1.EmptyDirVolumeSource{SizeLimit: quantity(tc.size)}, node); got != tc.want {
			t.Errorf("limit %q, pod %q, node %q: %d, want %d", tc.size, tc.pod, tc.node, got, tc.want)
		}
	}
}
