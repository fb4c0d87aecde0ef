package cri

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

var update = flag.Bool("update", false, "write the golden files")

// testPod is a pod of one container.
func testPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", UID: "7b4c"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
	}
}

// sandboxSpec resolves a pod as an agent might.
func sandboxSpec(pod *corev1.Pod) *podmill.SandboxSpec {
	spec := &podmill.SandboxSpec{
		Pod: pod, Attempt: 1, Hostname: pod.Name, LogDirectory: fmt.Sprintf("/var/log/pods/%s_%s_%s", pod.Namespace, pod.Name, pod.UID),
		CgroupParent: "/kubepods/pod" + string(pod.UID), Annotations: pod.Annotations,
		Labels: map[string]string{
			podmill.LabelPodUID: string(pod.UID), podmill.LabelPodNamespace: pod.Namespace, podmill.LabelPodName: pod.Name,
		},
	}
	maps.Copy(spec.Labels, pod.Labels)
	if pod.Spec.RuntimeClassName != nil {
		spec.RuntimeHandler = *pod.Spec.RuntimeClassName
	}
	if d := pod.Spec.DNSConfig; d != nil {
		spec.DNS = &podmill.DNS{Servers: d.Nameservers, Searches: d.Searches}
	}
	if pod.Spec.HostUsers != nil && !*pod.Spec.HostUsers {
		ids := []podmill.IDMapping{{Container: 0, Host: 65536, Length: 65536}}
		spec.IDMappings = &podmill.IDMappings{UIDs: ids, GIDs: ids}
	}
	return spec
}

// containerSpec resolves the nth container of a pod, in the order of starts.
func containerSpec(sandbox *podmill.SandboxSpec, n int) *podmill.ContainerSpec {
	var c *corev1.Container
	for each := range lifecycle.Containers(sandbox.Pod) {
		if n--; n == -1 {
			c = each
		}
	}
	spec := &podmill.ContainerSpec{
		Sandbox: sandbox, SandboxID: "s1", Container: c, Attempt: 2, Image: "sha256:" + c.Name,
		Command: c.Command, Args: c.Args, WorkingDir: c.WorkingDir, OOMScoreAdj: 1000, LogPath: c.Name + "/2.log", CgroupParent: sandbox.CgroupParent,
		Labels:      map[string]string{podmill.LabelPodUID: string(sandbox.Pod.UID), podmill.LabelContainerName: c.Name},
		Annotations: map[string]string{podmill.AnnotationRestartCount: "2"},
	}
	for _, v := range c.Env {
		spec.Env = append(spec.Env, podmill.EnvVar{Name: v.Name, Value: v.Value})
	}
	for _, m := range c.VolumeMounts {
		mount := podmill.Mount{ContainerPath: m.MountPath, HostPath: "/volumes/" + m.Name, ReadOnly: m.ReadOnly, Options: m.BindMountOptions}
		if m.RecursiveReadOnly != nil {
			mount.RecursiveReadOnly = *m.RecursiveReadOnly
		}
		if m.MountPropagation != nil {
			mount.Propagation = *m.MountPropagation
		}
		for _, v := range sandbox.Pod.Spec.Volumes {
			if v.Name == m.Name && v.Image != nil {
				mount.HostPath, mount.Image, mount.ImageSubPath = "", "sha256:"+v.Name, m.SubPath
			}
		}
		mount.IDMappings = sandbox.IDMappings
		spec.Mounts = append(spec.Mounts, mount)
	}
	if sc := c.SecurityContext; sc != nil && (sc.RunAsUser != nil || sc.RunAsGroup != nil) {
		spec.User = &podmill.User{UID: sc.RunAsUser, GID: sc.RunAsGroup}
	}
	return spec
}

// translator is one on a machine with cgroup v1, or with cgroup v2 and all that a machine may have.
func translator(v2 bool) *translation {
	t := &translation{cpuPeriod: 100_000, seccompRoot: "/seccomp"}
	if v2 {
		t.host = host{cgroupV2: true, swapLimits: true, pageSizes: []string{"1GB", "2MB"}, masked: []string{"/sys/devices/system/cpu/cpu0/thermal_throttle"}}
	}
	return t
}

// text is a message in protobuf's text format, without the white space that is meant to make it unstable.
func text(m proto.Message) string {
	out := prototext.MarshalOptions{Multiline: true}.Format(m)
	return regexp.MustCompile(`(?m)^(\s*\w+): +`).ReplaceAllString(out, "$1: ")
}

// TestTranslation shows what CRI is told of the pods in testdata. go test -update writes anew what has changed, to be read.
func TestTranslation(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal("no pods in testdata", err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var pod corev1.Pod
			if err := yaml.UnmarshalStrict(data, &pod); err != nil {
				t.Fatal(err)
			}
			got := translated(t, translator(strings.HasSuffix(name, "-v2")), &pod)
			if name != "plain" { // which shows the lists that are always the same
				got = strings.ReplaceAll(got, always(maskedPaths(), "masked_paths"), "    masked_paths: (always)\n")
				got = strings.ReplaceAll(got, always(readonlyPaths(), "readonly_paths"), "    readonly_paths: (always)\n")
			}
			compare(t, strings.TrimSuffix(path, ".yaml")+".golden", got)
		})
	}
}

// always is a list of a message as text.
func always(paths []string, field string) string {
	var out strings.Builder
	for _, p := range paths {
		fmt.Fprintf(&out, "    %s: %q\n", field, p)
	}
	return out.String()
}

func translated(t *testing.T, tr *translation, pod *corev1.Pod) string {
	spec := sandboxSpec(pod)
	sandbox, err := tr.sandbox(spec)
	if err != nil {
		t.Fatal(err)
	}
	out := "# sandbox\n" + text(sandbox)
	n := 0
	for c := range lifecycle.Containers(pod) {
		container, err := tr.container(containerSpec(spec, n))
		if err != nil {
			t.Fatal(err)
		}
		out += "\n# container " + c.Name + "\n" + text(container)
		n++
	}
	return out
}

func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); see the -update flag\n%s", path, diff)
	}
}

// What an agent has resolved wins: nothing of the pod's own words is told.
func TestResolvedFieldsWin(t *testing.T) {
	pod := testPod()
	pod.Spec.Hostname, pod.Spec.RuntimeClassName = "unresolved", new(string)
	pod.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"unresolved"}}
	unresolved := int64(99)
	c := &pod.Spec.Containers[0]
	c.Image, c.Command, c.Args, c.WorkingDir = "", []string{"unresolved"}, []string{"unresolved"}, "/unresolved"
	c.Env = []corev1.EnvVar{{Name: "UNRESOLVED"}}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "unresolved", MountPath: "/unresolved"}}
	c.SecurityContext = &corev1.SecurityContext{RunAsUser: &unresolved, RunAsGroup: &unresolved}
	spec := sandboxSpec(pod)
	spec.Hostname, spec.DNS, spec.RuntimeHandler = "", nil, ""
	container := containerSpec(spec, 0)
	container.Command, container.Args, container.WorkingDir, container.Env, container.Mounts, container.User = nil, nil, "", nil, nil, nil
	tr := translator(false)
	sandboxConfig, err := tr.sandbox(spec)
	if err != nil {
		t.Fatal(err)
	}
	containerConfig, err := tr.container(container)
	if err != nil {
		t.Fatal(err)
	}
	for _, told := range []string{text(sandboxConfig), text(containerConfig)} {
		if strings.Contains(strings.ToLower(told), "unresolved") || strings.Contains(told, "99") {
			t.Error(told)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// B112: under another period a limit means the same, of a container and of its pod. And the options are those of what is told.
func TestOptionsReachTheRuntime(t *testing.T) {
	s := newServer(t)
	var told *runtimeapi.CreateContainerRequest
	s.on("CreateContainer", func(_ context.Context, request any) (any, error) {
		told = request.(*runtimeapi.CreateContainerRequest)
		return &runtimeapi.CreateContainerResponse{ContainerId: "c1"}, nil
	})
	pod := testPod()
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: "Localhost", LocalhostProfile: ptr("a/b.json")}}
	c := s.start(t).dial(t, WithCPUPeriod(10*time.Millisecond), WithSeccompRoot("/profiles"))
	if _, err := c.CreateContainer(t.Context(), containerSpec(sandboxSpec(pod), 0)); err != nil {
		t.Fatal(err)
	}
	linux := told.GetConfig().GetLinux()
	for name, r := range map[string]*runtimeapi.LinuxContainerResources{"container": linux.GetResources(), "pod": told.GetSandboxConfig().GetLinux().GetResources()} {
		if r.GetCpuQuota() != 5000 || r.GetCpuPeriod() != 10000 || r.GetCpuShares() != 512 {
			t.Errorf("500m of the %s is %v", name, r)
		}
	}
	if got := linux.GetSecurityContext().GetSeccomp().GetLocalhostRef(); got != "/profiles/a/b.json" {
		t.Errorf("the profile is %s", got)
	}
	if told.GetPodSandboxId() != "s1" || told.GetConfig().GetImage().GetImage() != "sha256:web" || told.GetConfig().GetImage().GetUserSpecifiedImage() != "web:1" {
		t.Errorf("told %v", told)
	}
}

// An image's user may have a name only, which the runtime looks up; a number is never looked up.
func TestUserByName(t *testing.T) {
	for _, tc := range []struct {
		user     podmill.User
		wantName string
		wantUID  *int64
	}{
		{podmill.User{Name: "web", GID: ptr(int64(5))}, "web", nil},
		{podmill.User{Name: "web", UID: ptr(int64(7))}, "", ptr(int64(7))},
	} {
		spec := containerSpec(sandboxSpec(testPod()), 0)
		spec.User = &tc.user
		config, err := translator(false).container(spec)
		if err != nil {
			t.Fatal(err)
		}
		got := config.GetLinux().GetSecurityContext()
		if got.GetRunAsUsername() != tc.wantName || (got.GetRunAsUser() == nil) != (tc.wantUID == nil) || got.GetRunAsGroup().GetValue() != int64Value(tc.user.GID).GetValue() {
			t.Errorf("%+v is told as %v", tc.user, got)
		}
	}
}

// Swap is none of what a container may use, where the kernel can say so: with cgroup v1 the limit is of memory and swap together.
func TestSwapWithCgroupV1(t *testing.T) {
	spec := containerSpec(sandboxSpec(testPod()), 0)
	spec.Container.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}
	for able, want := range map[bool]int64{true: 1 << 20, false: 0} {
		tr := translator(false)
		tr.host.swapLimits = able
		if got := tr.containerResources(spec.Sandbox.Pod, spec.Container).GetMemorySwapLimitInBytes(); got != want {
			t.Errorf("with swap accounted for: %t, the limit is %d, want %d", able, got, want)
		}
	}
}

// B117: a container is slowed down before it reaches its limit, unless all of it is guaranteed; without the option it never is.
func TestMemoryQoS(t *testing.T) {
	const mi = 1 << 20
	for name, tc := range map[string]struct {
		request, limit, want string // nothing is not set
		off, v1              bool
	}{
		"best effort":              {want: "966365184"},                                            // 0.9 of 1 GiB, in whole pages
		"request and limit":        {request: "100Mi", limit: "200Mi", want: fmt.Sprint(190 * mi)}, // 100 + 0.9 * 100
		"request alone":            {request: "100Mi", want: "976850944"},                          // 100 + 0.9 * (1024 - 100)
		"limit alone":              {limit: "200Mi", want: fmt.Sprint(180 * mi)},                   // 0.9 * 200
		"guaranteed":               {request: "200Mi", limit: "200Mi"},                             // nothing is to be had back
		"more than the node has":   {request: "2Gi"},                                               // no bound below the request
		"odd":                      {request: "1", limit: "10000", want: "8192"},                   // 9000.1
		"off":                      {request: "100Mi", limit: "200Mi", off: true},
		"the kernel has cgroup v1": {request: "100Mi", limit: "200Mi", v1: true},
	} {
		tr := translator(!tc.v1)
		if !tc.off {
			tr.memoryQoS = memoryQoS{factor: 0.9, allocatable: 1 << 30}
		}
		spec := containerSpec(sandboxSpec(testPod()), 0)
		r := &spec.Container.Resources
		r.Requests, r.Limits = corev1.ResourceList{}, corev1.ResourceList{}
		for list, q := range map[*corev1.ResourceList]string{&r.Requests: tc.request, &r.Limits: tc.limit} {
			if q != "" {
				(*list)[corev1.ResourceMemory] = resource.MustParse(q)
			}
		}
		if got := tr.containerResources(spec.Sandbox.Pod, spec.Container).GetUnified()["memory.high"]; got != tc.want {
			t.Errorf("%s: memory.high is %q, want %q", name, got, tc.want)
		}
	}
}

// What is requested is reserved, by the class of the pod, where that is asked for (KEP-2570).
func TestMemoryReservation(t *testing.T) {
	for name, tc := range map[string]struct{ request, limit, min, low string }{
		"guaranteed":  {request: "1Mi", limit: "1Mi", min: "1048576"},
		"burstable":   {request: "1Mi", limit: "2Mi", low: "1048576"},
		"best effort": {},
	} {
		spec := containerSpec(sandboxSpec(testPod()), 0)
		if tc.request != "" {
			spec.Container.Resources = corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse(tc.request)},
				Limits:   corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse(tc.limit)},
			}
		}
		tr := translator(true)
		tr.memoryQoS.tiers = true
		got := tr.containerResources(spec.Sandbox.Pod, spec.Container).GetUnified()
		if got["memory.min"] != tc.min || got["memory.low"] != tc.low {
			t.Errorf("%s: %v", name, got)
		}
		if got := translator(true).containerResources(spec.Sandbox.Pod, spec.Container).GetUnified(); got["memory.min"]+got["memory.low"] != "" {
			t.Errorf("%s, without being asked: %v", name, got)
		}
	}
}

// Containers of burstable pods share the node's swap by what they request of its memory, where that is asked for (KEP-2400).
func TestLimitedSwap(t *testing.T) {
	priority := int32(systemCritical)
	for name, tc := range map[string]struct {
		request, limit, want string
		cpu                  string
		priority             *int32
	}{
		"burstable":                         {request: "1Gi", limit: "2Gi", want: "536870912"},
		"without a limit":                   {request: "2Gi", want: "1073741824"},
		"limited to what it requests":       {request: "1Gi", limit: "1Gi", want: "0"},
		"guaranteed":                        {request: "1Gi", limit: "1Gi", cpu: "1", want: "0"},
		"it requests no memory":             {cpu: "1", want: "0"},
		"best effort":                       {want: "0"},
		"what the system cannot do without": {request: "1Gi", priority: &priority, want: "0"},
	} {
		spec := containerSpec(sandboxSpec(testPod()), 0)
		r := &spec.Container.Resources
		r.Requests, r.Limits = corev1.ResourceList{}, corev1.ResourceList{}
		spec.Sandbox.Pod.Spec.Priority = tc.priority
		if tc.request != "" {
			r.Requests["memory"] = resource.MustParse(tc.request)
		}
		if tc.limit != "" {
			r.Limits["memory"] = resource.MustParse(tc.limit)
		}
		if tc.cpu != "" {
			r.Requests["cpu"], r.Limits["cpu"] = resource.MustParse(tc.cpu), resource.MustParse(tc.cpu)
		}
		tr := translator(true)
		tr.swap = swap{memory: 8 << 30, swap: 4 << 30}
		if got := tr.containerResources(spec.Sandbox.Pod, spec.Container).GetUnified()["memory.swap.max"]; got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
		if got := translator(true).containerResources(spec.Sandbox.Pod, spec.Container).GetUnified()["memory.swap.max"]; got != "0" {
			t.Errorf("%s, without being asked: %s", name, got)
		}
	}
}

// Every signal that a Pod may name is one that CRI has.
func TestSignals(t *testing.T) {
	for _, signal := range []corev1.Signal{corev1.SIGABRT, corev1.SIGTERM, corev1.SIGUSR1, corev1.SIGRTMIN, corev1.SIGRTMINPLUS15, corev1.SIGRTMAXMINUS14, corev1.SIGRTMAX} {
		spec := containerSpec(sandboxSpec(testPod()), 0)
		spec.Container.Lifecycle = &corev1.Lifecycle{StopSignal: &signal}
		config, err := translator(false).container(spec)
		if err != nil {
			t.Error(err)
			continue
		}
		want := strings.NewReplacer("+", "PLUS", "-", "MINUS").Replace(string(signal))
		if got := config.StopSignal.String(); got != "SIGNAL_"+want {
			t.Errorf("%s is %s", signal, got)
		}
	}
}

// A container may share the processes of another one, which an ephemeral one does that has a target.
func TestTarget(t *testing.T) {
	spec := containerSpec(sandboxSpec(testPod()), 0)
	spec.TargetID = "c-7"
	config, err := translator(true).container(spec)
	if err != nil {
		t.Fatal(err)
	}
	got := config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	if got.GetPid() != runtimeapi.NamespaceMode_TARGET || got.GetTargetId() != "c-7" {
		t.Errorf("namespaces %v", got)
	}
}
