package syncpod

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
	"github.com/podmill/podmill/podmilltest"
)

func ptr[T any](v T) *T { return &v }

// TestContainerSpec compares whole specs with testdata/specs, in YAML and without the parts that are the pod's own words.
func TestContainerSpec(t *testing.T) {
	volumes := map[string]podmill.Volume{
		"data": {HostPath: "/lib/volumes/data", SELinuxRelabel: true}, "conf": {HostPath: "/lib/volumes/conf", ReadOnly: true}, "tools": {Image: "sha256:7001"},
	}
	for _, tt := range []struct {
		name string
		pod  []podmilltest.PodOption
		c    podmilltest.ContainerOption
		r    resolved
	}{
		{name: "plain", c: func(*corev1.Container) {}, r: resolved{hosts: "/lib/etc-hosts"}},
		{
			name: "everything",
			pod: []podmilltest.PodOption{podmilltest.Label("app", "cart"), func(p *corev1.Pod) {
				p.DeletionGracePeriodSeconds = ptr[int64](5)
				p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr[int64](1000), RunAsGroup: ptr[int64](2000)}
			}},
			c: func(c *corev1.Container) {
				c.WorkingDir = "/srv"
				c.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 80, Protocol: corev1.ProtocolTCP}}
				c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/bye", Port: intstr.FromInt32(80)}}}
				c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
				c.VolumeMounts = []corev1.VolumeMount{
					{Name: "data", MountPath: "/data", MountPropagation: ptr(corev1.MountPropagationHostToContainer)},
					{Name: "conf", MountPath: "etc/conf"},
					{Name: "tools", MountPath: "/tools/", ReadOnly: true, RecursiveReadOnly: ptr(corev1.RecursiveReadOnlyEnabled)},
					{Name: "tools", MountPath: "/tools2", ReadOnly: true, RecursiveReadOnly: ptr(corev1.RecursiveReadOnlyIfPossible), BindMountOptions: []string{"noexec"}},
					{Name: "tools", MountPath: "/tools3", ReadOnly: true, RecursiveReadOnly: ptr(corev1.RecursiveReadOnlyDisabled)},
				}
			},
			r: resolved{
				attempt: 3, hosts: "/lib/etc-hosts", volumes: volumes, oomScoreAdj: 900,
				env: []podmill.EnvVar{{Name: "A", Value: "b"}}, command: []string{"serve"}, args: []string{"-p", "80"},
			},
		},
		{
			name: "own-hosts-file",
			c: func(c *corev1.Container) {
				c.VolumeMounts = []corev1.VolumeMount{{Name: "conf", MountPath: "/etc/hosts"}}
			},
			r: resolved{hosts: "/lib/etc-hosts", volumes: volumes},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := podmilltest.Pod("shop/cart", append(tt.pod, podmilltest.UID("u-1"), podmilltest.Container("web", "img:1", tt.c))...)
			tt.r.sandbox, tt.r.sandboxID = &podmill.SandboxSpec{CgroupParent: "/kubepods/podu-1"}, "s-1"
			tt.r.image = &podmill.Image{ID: "sha256:1234", UID: ptr[int64](101)}
			spec, err := containerSpec(pod, &pod.Spec.Containers[0], &tt.r)
			if err != nil {
				t.Fatal(err)
			}
			if spec.Sandbox != tt.r.sandbox || spec.Container != &pod.Spec.Containers[0] {
				t.Error("the spec is not of this pod")
			}
			spec.Sandbox, spec.Container = nil, nil
			golden(t, filepath.Join("testdata", "specs", tt.name+".yaml"), spec)
		})
	}
}

func golden(t *testing.T, file string, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if b, err = yaml.JSONToYAML(b); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(b)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMountsThatAreRefused(t *testing.T) {
	volumes := map[string]podmill.Volume{"data": {HostPath: "/d"}, "disk": {HostPath: "/dev/sda", Block: true}}
	for want, c := range map[string]corev1.Container{
		`there is no volume "gone"`:       {VolumeMounts: []corev1.VolumeMount{{Name: "gone"}}},
		`volume "disk" is a block device`: {VolumeMounts: []corev1.VolumeMount{{Name: "disk"}}},
	} {
		_, err := mountsOf(&c, &resolved{sandbox: &podmill.SandboxSpec{}, volumes: volumes})
		wantConfigError(t, err, want)
	}
}

// A volume that is a block device is handed over as one, after those that the container was allotted.
func TestVolumeDevices(t *testing.T) {
	r := &resolved{volumes: map[string]podmill.Volume{
		"data": {HostPath: "/d"}, "disk": {HostPath: "/dev/sda", Block: true}, "old": {HostPath: "/dev/sdb", Block: true, ReadOnly: true},
	}}
	r.devices.Devices = []podmill.Device{{ContainerPath: "/dev/x", HostPath: "/dev/x", Permissions: "rw"}}
	got, err := devicesOf(&corev1.Container{VolumeDevices: []corev1.VolumeDevice{{Name: "disk", DevicePath: "/dev/a"}, {Name: "old", DevicePath: "/dev/b"}}}, r)
	want := []podmill.Device{
		{ContainerPath: "/dev/x", HostPath: "/dev/x", Permissions: "rw"}, {ContainerPath: "/dev/a", HostPath: "/dev/sda", Permissions: "mrw"},
		{ContainerPath: "/dev/b", HostPath: "/dev/sdb", Permissions: "r"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for volume, why := range map[string]string{"data": `volumeDevices: volume "data" is no block device`, "gone": `volumeDevices: there is no volume "gone"`} {
		_, err := devicesOf(&corev1.Container{VolumeDevices: []corev1.VolumeDevice{{Name: volume}}}, r)
		wantConfigError(t, err, why)
	}
}

func TestSubPaths(t *testing.T) {
	vars := []podmill.EnvVar{{Name: "POD", Value: "a"}, {Name: "EMPTY"}, {Name: "UP", Value: "x/../.."}, {Name: "ROOT", Value: "/etc"}}
	for _, tt := range []struct {
		mount corev1.VolumeMount
		path  string
		err   string
	}{
		{corev1.VolumeMount{}, "", ""},
		{corev1.VolumeMount{SubPath: "a/b"}, "a/b", ""},
		{corev1.VolumeMount{SubPath: "$(POD)"}, "$(POD)", ""}, // nothing is put in
		{corev1.VolumeMount{SubPath: "a/..b"}, "a/..b", ""},
		{corev1.VolumeMount{SubPathExpr: "logs/$(POD)/x"}, "logs/a/x", ""},
		{corev1.VolumeMount{SubPathExpr: "$$(POD)"}, "$(POD)", ""},
		{corev1.VolumeMount{SubPathExpr: "$(NONE)/$(EMPTY)/$(NONE)"}, "", `volumeMounts of volume "v": subPathExpr "$(NONE)/$(EMPTY)/$(NONE)": missing value for EMPTY, NONE`},
		{corev1.VolumeMount{SubPathExpr: "$(UP)"}, "", `subPathExpr "x/../.." must not contain '..'`},
		{corev1.VolumeMount{SubPathExpr: "$(ROOT)"}, "", `subPathExpr "/etc" must not be an absolute path`},
		{corev1.VolumeMount{SubPath: "../a"}, "", `subPath "../a" must not contain '..'`},
		{corev1.VolumeMount{SubPath: "/a"}, "", `subPath "/a" must not be an absolute path`},
	} {
		tt.mount.Name = "v"
		path, err := subPathOf(&tt.mount, vars)
		switch {
		case tt.err != "":
			wantConfigError(t, err, tt.err)
		case err != nil || path != tt.path:
			t.Errorf("%+v: %q, %v, want %q", tt.mount, path, err, tt.path)
		}
	}
}

// A part of a directory is what was mounted of it; that of an image is left to the runtime.
func TestMountsOfParts(t *testing.T) {
	c := corev1.Container{VolumeMounts: []corev1.VolumeMount{
		{Name: "data", MountPath: "/whole"}, {Name: "data", MountPath: "/part", SubPath: "a", ReadOnly: true}, {Name: "image", MountPath: "/image", SubPath: "b"},
	}}
	mounts, err := mountsOf(&c, &resolved{
		sandbox: &podmill.SandboxSpec{}, volumes: map[string]podmill.Volume{"data": {HostPath: "/d"}, "image": {Image: "sha256:1", ReadOnly: true}},
		parts: map[int]part{1: {path: "a", hostPath: "/parts/1"}, 2: {path: "b"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []podmill.Mount{
		{ContainerPath: "/whole", HostPath: "/d"}, {ContainerPath: "/part", HostPath: "/parts/1", ReadOnly: true},
		{ContainerPath: "/image", Image: "sha256:1", ImageSubPath: "b", ReadOnly: true},
	}
	if diff := cmp.Diff(want, mounts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func wantConfigError(t *testing.T, err error, message string) {
	t.Helper()
	var reason *podmill.ReasonError
	if !errors.As(err, &reason) || reason.Reason != "CreateContainerConfigError" || !strings.Contains(reason.Message, message) {
		t.Errorf("error = %v, want a CreateContainerConfigError with %q", err, message)
	}
}

func TestUser(t *testing.T) {
	nobody, named, root, silent := &podmill.Image{UID: ptr[int64](65534)}, &podmill.Image{Username: "app"}, &podmill.Image{UID: ptr[int64](0)}, &podmill.Image{}
	for _, tt := range []struct {
		name  string
		pod   *corev1.PodSecurityContext
		c     *corev1.SecurityContext
		image *podmill.Image
		want  *podmill.User
		err   string
	}{
		{name: "the image's own", image: named},
		{name: "the pod's", pod: &corev1.PodSecurityContext{RunAsUser: ptr[int64](7)}, image: named, want: &podmill.User{UID: ptr[int64](7)}},
		{
			name: "the container's before the pod's", pod: &corev1.PodSecurityContext{RunAsUser: ptr[int64](7), RunAsGroup: ptr[int64](8)},
			c: &corev1.SecurityContext{RunAsUser: ptr[int64](9)}, image: root, want: &podmill.User{UID: ptr[int64](9), GID: ptr[int64](8)},
		},
		{
			name: "a group goes with the image's user", c: &corev1.SecurityContext{RunAsGroup: ptr[int64](8)},
			image: named, want: &podmill.User{Name: "app", GID: ptr[int64](8)},
		},
		{
			name: "a group goes with root where the image says nothing", c: &corev1.SecurityContext{RunAsGroup: ptr[int64](8)},
			image: silent, want: &podmill.User{UID: ptr[int64](0), GID: ptr[int64](8)},
		},
		{
			name: "not root, as the image's number proves", c: &corev1.SecurityContext{RunAsNonRoot: ptr(true)},
			image: nobody, want: &podmill.User{UID: ptr[int64](65534)},
		},
		{
			name: "not root, as the spec proves", pod: &corev1.PodSecurityContext{RunAsNonRoot: ptr(true), RunAsUser: ptr[int64](7)},
			image: root, want: &podmill.User{UID: ptr[int64](7)},
		},
		{name: "the container may be root", pod: &corev1.PodSecurityContext{RunAsNonRoot: ptr(true)}, c: &corev1.SecurityContext{RunAsNonRoot: ptr(false)}, image: root},
		{name: "root by the spec", c: &corev1.SecurityContext{RunAsNonRoot: ptr(true), RunAsUser: ptr[int64](0)}, image: nobody, err: "breaks non-root policy"},
		{name: "root by the image", c: &corev1.SecurityContext{RunAsNonRoot: ptr(true)}, image: root, err: "image will run as root"},
		{name: "root by silence", c: &corev1.SecurityContext{RunAsNonRoot: ptr(true)}, image: silent, err: "image will run as root"},
		{name: "a name proves nothing", c: &corev1.SecurityContext{RunAsNonRoot: ptr(true)}, image: named, err: "non-numeric user (app)"},
		// CVE-2024-40635: a number that overflows is read as root.
		{name: "2^32", c: &corev1.SecurityContext{RunAsNonRoot: ptr(true)}, image: &podmill.Image{UID: ptr[int64](1 << 32)}, err: "user 4294967296 is out of range"},
		{name: "2^32-1", c: &corev1.SecurityContext{RunAsNonRoot: ptr(true)}, image: &podmill.Image{UID: ptr[int64](1<<32 - 1)}, err: "out of range"},
		// CVE-2021-25749: no name proves anything, however root is written, and a number that a runtime gives as a name is one.
		{name: "ROOT", c: &corev1.SecurityContext{RunAsNonRoot: ptr(true)}, image: &podmill.Image{Username: "ROOT"}, err: "non-numeric user (ROOT)"},
		{name: "a number as a name", c: &corev1.SecurityContext{RunAsNonRoot: ptr(true)}, image: &podmill.Image{Username: "4294967296"}, err: "non-numeric user (4294967296)"},
		{name: "negative", c: &corev1.SecurityContext{RunAsNonRoot: ptr(true)}, image: &podmill.Image{UID: ptr[int64](-1)}, err: "out of range"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := userOf(&corev1.Pod{Spec: corev1.PodSpec{SecurityContext: tt.pod}}, &corev1.Container{SecurityContext: tt.c}, tt.image)
			if tt.err != "" {
				wantConfigError(t, err, tt.err)
				return
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestOOMScoreAdj(t *testing.T) {
	memory := func(request string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"memory": resource.MustParse(request)}}}
	}
	full := corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse("1Gi"), "cpu": resource.MustParse("1")}}}
	pod := func(priority string, containers ...corev1.Container) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{PriorityClassName: priority, Containers: containers}}
	}
	const node = 8 << 30
	for _, tt := range []struct {
		name string
		pod  *corev1.Pod
		kind lifecycle.Kind
		node int64
		want int64
	}{
		{"guaranteed", pod("", full), lifecycle.App, node, -997},
		{"best effort", pod("", corev1.Container{}), lifecycle.App, node, 1000},
		{"burstable, by its share of the node", pod("", memory("2Gi")), lifecycle.App, node, 750},
		{"burstable goes after best effort", pod("", memory("1")), lifecycle.App, node, 999},
		{"burstable goes before guaranteed", pod("", memory("8Gi")), lifecycle.App, node, 3},
		{"burstable asks for more than there is", pod("", memory("1Ti")), lifecycle.App, node, 3},
		{"burstable on a node of unknown size", pod("", memory("2Gi")), lifecycle.App, 0, 999},
		{"a sidecar goes no sooner than its app", pod("", memory("1"), memory("4Gi")), lifecycle.Sidecar, node, 500},
		{"node critical", pod("system-node-critical", corev1.Container{}), lifecycle.App, node, -997},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := oomScoreAdj(tt.pod, &tt.pod.Spec.Containers[0], tt.kind, tt.node); got != tt.want {
				t.Errorf("oomScoreAdj = %d, want %d", got, tt.want)
			}
		})
	}
}

// B025: what is hashed is name and image, and a hash is told from one that other software made.
func TestHash(t *testing.T) {
	a := &corev1.Container{Name: "web", Image: "img:1"}
	same := &corev1.Container{Name: "web", Image: "img:1", TTY: true, ImagePullPolicy: corev1.PullAlways, Ports: []corev1.ContainerPort{{}}}
	if hashOf(a) != hashOf(same) {
		t.Error("another field changes the hash")
	}
	for _, other := range []corev1.Container{{Name: "web", Image: "img:2"}, {Name: "log", Image: "img:1"}, {Name: "webi", Image: "mg:1"}} {
		if hashOf(a) == hashOf(&other) {
			t.Errorf("%s %s has the same hash", other.Name, other.Image)
		}
	}
	if !ourHash(hashOf(a)) || ourHash("5b3f9a1c") || ourHash("") {
		t.Error("our hashes are not told from others")
	}
	if hashOf(a) != "v1-ed3bb6aaeffa01d3" {
		t.Errorf("the hash is now %s: an upgrade would restart every container; give it another prefix", hashOf(a))
	}
}

func TestRecall(t *testing.T) {
	got := recall(&corev1.PodStatus{
		InitContainerStatuses: []corev1.ContainerStatus{
			{Name: "done", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 0}}},
		},
		ContainerStatuses: []corev1.ContainerStatus{
			{Name: "runs", RestartCount: 2, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			{
				Name: "waits", RestartCount: 5, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}},
			},
			{Name: "never", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}},
			{Name: "wrong", RestartCount: -1, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		},
	})
	want := map[string]Record{
		"done": {}, "runs": {Attempt: 2, ExitCode: 137}, "waits": {Attempt: 5, ExitCode: 3}, "wrong": {ExitCode: 137},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// B025: a container that other software made is compared with the spec with which it was first met.
func TestContainersOfOtherSoftwareAreAdopted(t *testing.T) {
	pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1"), podmilltest.Container("log", "img:1"))
	m := &memory{known: map[string]Record{}, ended: map[string]time.Time{}, adopted: map[string]string{}}
	seen := &podmill.RuntimePod{Containers: []podmill.Container{
		{ID: "1", Name: "web", State: podmill.StateRunning, Annotations: map[string]string{podmill.AnnotationContainerHash: "5b3f9a1c"}},
		{ID: "2", Name: "log", State: podmill.StateRunning, Annotations: map[string]string{podmill.AnnotationContainerHash: hashOf(&pod.Spec.Containers[1])}},
	}}
	m.learn(pod, seen, time.Now())
	first := hashOf(&pod.Spec.Containers[0])
	m.learn(podmilltest.Edit(pod, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "img:2" }), seen, time.Now())
	if diff := cmp.Diff(map[string]string{"1": first}, m.adopted); diff != "" {
		t.Error(diff)
	}
}

func TestRecordOf(t *testing.T) {
	running := podmill.Container{Attempt: 2, SandboxID: "s", State: podmill.StateRunning, StartedAt: now}
	want := Record{Attempt: 2, SandboxID: "s", ExitCode: 137, FinishedAt: now} // as far as anyone knows, if it is never seen again
	if got, ran := recordOf(&running); got != want || !ran {
		t.Errorf("running: %+v, %v", got, ran)
	}
	exited := podmill.Container{State: podmill.StateExited, StartedAt: now, FinishedAt: now.Add(1), ExitCode: 3}
	if got, ran := recordOf(&exited); got != (Record{ExitCode: 3, FinishedAt: now.Add(1)}) || !ran {
		t.Errorf("exited: %+v, %v", got, ran)
	}
	if _, ran := recordOf(&podmill.Container{State: podmill.StateCreated}); ran {
		t.Error("a container that was only created has run")
	}
}

// What keeps a whole pod from starting is said of each container that waits for it, where the kubelet has a reason for it.
func TestWhatKeepsAPodFromStartingIsSaidOfItsContainers(t *testing.T) {
	refused := &podmill.ReasonError{Reason: "CreateContainerConfigError", Message: "spec.securityContext.sysctls[0].name: it is not allowed"}
	starts := []Start{{Container: &corev1.Container{Name: "a"}}, {Container: &corev1.Container{Name: "b"}}}
	m := &memory{failed: map[string]corev1.ContainerStateWaiting{}}
	m.blame(starts, errors.New("the runtime is away"))
	if len(m.failed) > 0 {
		t.Errorf("%v", m.failed)
	}
	m.blame(starts, fmt.Errorf("make the sandbox spec: %w", refused))
	for _, s := range starts {
		if w := m.failed[s.Container.Name]; w.Reason != refused.Reason || w.Message != refused.Message {
			t.Errorf("container %s: %v", s.Container.Name, w)
		}
	}
}
