package volume

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/volume/internal/canary"
)

func localSource(path string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}}
}

// A local volume is bound to the kubelet's place, with parts of it where they are wanted, and what is in it outlives the pod.
func TestLocalVolume(t *testing.T) {
	testenv.Root(t)
	for _, restart := range []bool{false, true} {
		r := claimRig(t)
		data := canary.Tree(t)
		r.objects.Bind(claim("c"), persistent("pv-1", localSource(data)))
		pod := podOf(claimSource("c"))
		for range 2 {
			if path := r.mount(pod); path != r.place(pod, "kubernetes.io~local-volume", "pv-1") || read(t, filepath.Join(path, "sub/file")) != "precious sub/file" {
				t.Errorf("the volume is at %s", path)
			}
		}
		part, err := r.part(pod, "sub/sub")
		must(t, err)
		if want := filepath.Join(r.root, "pods", string(pod.UID), "volume-subpaths/pv-1/uses-v/0"); part != want || read(t, filepath.Join(part, "file")) != "precious sub/sub/file" {
			t.Errorf("the part is at %s, want %s", part, want)
		}
		if restart {
			r.restart()
			must(t, r.Cleanup(t.Context(), func(types.UID) bool { return false }))
		} else {
			r.unmount(pod)
		}
		if left := r.list("pods"); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

func TestLocalVolumesThatCannotBe(t *testing.T) {
	testenv.Root(t)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o644))
	block := corev1.PersistentVolumeBlock
	for _, tt := range []struct {
		path string
		mode *corev1.PersistentVolumeMode
		why  string
	}{
		{filepath.Join(dir, "gone"), nil, "does not exist"}, {filepath.Join(dir, "file"), nil, "not a directory"}, {"relative", nil, "must be absolute"},
		{dir + "/../x", nil, "not contain '..'"}, {filepath.Join(dir, "file"), &block, "is no block device, it's a File"}, {"/dev/null", &block, "is no block device, it's a CharDevice"},
	} {
		r := claimRig(t)
		pv := persistent("pv", localSource(tt.path))
		pv.Spec.VolumeMode = tt.mode
		r.objects.Bind(claim("c"), pv)
		pod := podOf(claimSource("c"))
		if tt.mode != nil {
			pod.Spec.Containers[0].VolumeMounts = nil
			pod.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "v", DevicePath: "/dev/x"}}
		}
		r.notReady(pod, tt.why)
		r.unmount(pod)
	}
}

// The kubelet would make a file system on a block device; that is not done here, and no time heals it.
func TestLocalFilesystemOnABlockDevice(t *testing.T) {
	testenv.Root(t)
	device := filepath.Join(t.TempDir(), "device")
	if err := unix.Mknod(device, unix.S_IFBLK|0o600, int(unix.Mkdev(7, 0))); err != nil {
		t.Skipf("no block device can be made: %v", err)
	}
	r := claimRig(t)
	r.objects.Bind(claim("c"), persistent("pv", localSource(device)))
	if why := r.refused(podOf(claimSource("c"))); !strings.Contains(why, "have to be directories") {
		t.Error(why)
	}
}

// The runtime labels a local volume for its containers, unless they may not write to it: the kubelet's rule.
func TestSELinuxLabelOfALocalVolume(t *testing.T) {
	testenv.Root(t)
	for _, readOnly := range []bool{false, true} {
		r := claimRig(t)
		r.objects.Bind(claim("c"), persistent("pv", localSource(t.TempDir())))
		pod := podOf(claimSource("c"))
		pod.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = readOnly
		volumes, err := r.MountVolumes(t.Context(), pod)
		must(t, err)
		if v := volumes["v"]; v.SELinuxRelabel == readOnly || v.ReadOnly != readOnly {
			t.Errorf("%+v of a volume that is read-only: %v", v, readOnly)
		}
		r.unmount(pod)
	}
}

// The pod's group gets what is in the volume, as its policy says, and nothing else.
func TestFSGroupOfALocalVolume(t *testing.T) {
	testenv.Root(t)
	onMismatch, always := corev1.FSGroupChangeOnRootMismatch, corev1.FSGroupChangeAlways
	for name, tt := range map[string]struct {
		policy   *corev1.PodFSGroupChangePolicy
		rootDone bool // the directory itself is as it should be
		readOnly bool
		want     string
	}{
		"default":                       {nil, true, false, "0:2000 664"},
		"always":                        {&always, true, false, "0:2000 664"},
		"on mismatch, it does":          {&onMismatch, true, false, "0:0 604"},
		"on mismatch, it does not":      {&onMismatch, false, false, "0:2000 664"},
		"read-only, nothing is written": {&always, false, true, "0:0 604"},
	} {
		t.Run(name, func(t *testing.T) {
			r := claimRig(t)
			data := t.TempDir()
			must(t, os.Mkdir(filepath.Join(data, "dir"), 0o700), os.WriteFile(filepath.Join(data, "dir/file"), nil, 0o604), os.Chmod(filepath.Join(data, "dir/file"), 0o604))
			if tt.rootDone {
				must(t, os.Chown(data, 0, 2000), os.Chmod(data, 0o2770|os.ModeSetgid))
			}
			r.objects.Bind(claim("c"), persistent("pv", localSource(data)))
			pod := podOf(claimSource("c"), fsGroupOf(2000), func(pod *corev1.Pod) { pod.Spec.SecurityContext.FSGroupChangePolicy = tt.policy })
			pod.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = tt.readOnly
			r.mount(pod)
			if got := owner(t, filepath.Join(data, "dir/file")); got != tt.want {
				t.Errorf("the file is %s, want %s", got, tt.want)
			}
			// A volume that is in use is not gone through again.
			must(t, os.WriteFile(filepath.Join(data, "new"), nil, 0o600), os.Chown(filepath.Join(data, "new"), 0, 0))
			r.mount(pod)
			if got := owner(t, filepath.Join(data, "new")); !strings.HasPrefix(got, "0:0 ") {
				t.Errorf("what was made meanwhile is %s", got)
			}
			r.unmount(pod)
		})
	}
}

// Of two pods that come to a volume at the same moment and are of different groups one has its way, wholly, and the other is told.
func TestFSGroupsOfALocalVolumeAtTheSameMoment(t *testing.T) {
	testenv.Root(t)
	r := claimRig(t)
	data := t.TempDir()
	for i := range 50 {
		must(t, os.WriteFile(filepath.Join(data, fmt.Sprint(i)), nil, 0o600))
	}
	r.objects.Bind(claim("c"), persistent("pv", localSource(data)))
	for round := range 20 {
		var pods []*corev1.Pod
		for i := range 2 {
			pods = append(pods, podmilltest.Pod(fmt.Sprintf("pod-%d-%d", round, i), volume("v", claimSource("c")), fsGroupOf(int64(2000+i))))
		}
		told := len(r.events.Events())
		var all sync.WaitGroup
		for _, pod := range pods {
			all.Go(func() {
				if _, err := r.MountVolumes(t.Context(), pod); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		gid := owner(t, data)
		for i := range 50 {
			file, _, _ := strings.Cut(owner(t, filepath.Join(data, fmt.Sprint(i))), " ")
			if top, _, _ := strings.Cut(gid, " "); file != top {
				t.Fatalf("round %d: a file is of %s, the directory of %s", round, file, top)
			}
		}
		if n := len(r.events.Events()) - told; n != 1 {
			t.Errorf("round %d: %d pods were told that they do not have it, want 1", round, n)
		}
		for _, pod := range pods {
			r.unmount(pod)
		}
	}
}

// A pod does not get the group of a volume that another has: it is told, also when the agent is another one. When that pod is gone it gets it.
func TestFSGroupOfALocalVolumeThatIsShared(t *testing.T) {
	testenv.Root(t)
	for _, restart := range []bool{false, true} {
		r := claimRig(t)
		data := t.TempDir()
		r.objects.Bind(claim("c"), persistent("pv", localSource(data)))
		group := func() string { gid, _, _ := strings.Cut(owner(t, data), " "); return gid }
		pod := func(name string, gid int64) *corev1.Pod {
			return podmilltest.Pod(name, volume("v", claimSource("c")), fsGroupOf(gid))
		}
		first, same, other := pod("first", 2000), pod("same", 2000), pod("other", 3000)
		r.mount(first)
		if restart {
			r.restart()
		}
		r.mount(same)
		if events := r.events.String(); events != "" {
			t.Errorf("events of pods that are of one group: %s", events)
		}
		r.mount(other)
		const why = "AlreadyMountedVolume default/other: The requested fsGroup is 3000, but the volume pv has GID 2000. The volume may not be shareable."
		if events := r.events.String(); !strings.Contains(events, why) || group() != "0:2000" {
			t.Errorf("the volume is of %s, events: %s", group(), events)
		}
		for _, p := range []*corev1.Pod{first, same, other} {
			r.unmount(p)
		}
		r.mount(other)
		if group() != "0:3000" {
			t.Errorf("the volume that nobody else has is of %s", group())
		}
		r.unmount(other)
	}
}
