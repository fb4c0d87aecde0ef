package volume

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/podmilltest"
)

// asksFor has the container request huge pages of these sizes.
func asksFor(sizes ...string) podmilltest.PodOption {
	return func(pod *corev1.Pod) {
		list := corev1.ResourceList{}
		for _, size := range sizes {
			list[corev1.ResourceName(corev1.ResourceHugePagesPrefix+size)] = resource.MustParse("4Mi")
		}
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	}
}

func TestHugePages(t *testing.T) {
	testenv.Root(t)
	if _, err := os.Stat("/sys/kernel/mm/hugepages/hugepages-2048kB"); err != nil {
		t.Skip("the kernel has no huge pages of 2Mi")
	}
	for _, medium := range []corev1.StorageMedium{corev1.StorageMediumHugePages, "HugePages-2Mi"} {
		r := newRig(t)
		pod := podOf(emptyDirSource(medium), asksFor("2Mi"), fsGroupOf(2000))
		path := r.mount(pod)
		var st unix.Statfs_t
		must(t, unix.Statfs(path, &st))
		if uint32(st.Type) != unix.HUGETLBFS_MAGIC || st.Bsize != 2<<20 {
			t.Errorf("%s: type %x with pages of %d", medium, st.Type, st.Bsize)
		}
		if got := owner(t, path); got != "0:2000 2777" {
			t.Errorf("%s: %s, want 0:2000 2777", medium, got)
		}
		r.restart()
		r.mount(pod)
		r.unmount(pod)
		if left := r.list("pods"); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	r := newRig(t)
	if why := r.refused(podOf(emptyDirSource("HugePages-3Mi"), asksFor("3Mi"))); !strings.Contains(why, "the kernel has no huge pages of 3145728 bytes") {
		t.Error(why)
	}
}

func TestPageSize(t *testing.T) {
	for _, tt := range []struct {
		medium corev1.StorageMedium
		asked  []string
		want   int64
	}{
		{"HugePages", []string{"2Mi"}, 2 << 20}, {"HugePages", nil, 0}, {"HugePages", []string{"2Mi", "1Gi"}, 0},
		{"HugePages-1Gi", []string{"2Mi", "1Gi"}, 1 << 30}, {"HugePages-1Gi", []string{"2Mi"}, 0}, {"HugePages-1Gi", nil, 0},
		{"HugePages-", []string{"2Mi"}, 0}, {"HugePages-x", []string{"2Mi"}, 0}, {"HugePages-1048576Ki", []string{"1Gi"}, 1 << 30},
	} {
		size, err := pageSize(podOf(emptyDirSource(tt.medium), asksFor(tt.asked...)), tt.medium)
		if size != tt.want || (err == nil) != (tt.want > 0) || err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s of %v: %d, %v, want %d", tt.medium, tt.asked, size, err, tt.want)
		}
	}
}
