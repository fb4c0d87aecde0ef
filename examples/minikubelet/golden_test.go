package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	"github.com/podmill/podmill/cri"
	"github.com/podmill/podmill/internal/lifecycle"
	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/internal/testenv/testcsi"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/podspec"
	"github.com/podmill/podmill/probe"
	"github.com/podmill/podmill/probe/grpcprobe"
	"github.com/podmill/podmill/sandbox"
	"github.com/podmill/podmill/syncpod"
	"github.com/podmill/podmill/volume"
)

// goldenDir has pods as <name>.yaml, and in <name>.golden what the runtime is asked for.
const goldenDir = "testdata/pods"

// TestGoldenPods shows, for pods with every field that is served, what a whole agent asks of a CRI runtime. Run it with -update after a change, and read
// what has changed. A field that becomes served needs a pod there that has it.
func TestGoldenPods(t *testing.T) {
	testenv.Root(t)
	pods := goldenPods(t)
	fake := &fakeCRI{}
	runtime, err := cri.Dial(t.Context(), fake.serve(t))
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.Close()
	root, source := t.TempDir(), podmilltest.NewPodSource("api")
	drivers := driversIn(t, root, testcsi.New(t, filepath.Join(root, "plugins_registry")))
	a, err := agent.New(runtime, root, []podmill.PodSource{source}, append(goldenOptions(t), agent.WithVolumeOptions(volume.WithPlugins(drivers)))...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	source.Replace(pods...)
	for _, pod := range pods {
		t.Run(pod.Name, func(t *testing.T) {
			got := fake.await(t, pod, func() []*corev1.Pod { pods, _ := a.Pods(); return pods })
			got = strings.NewReplacer(root, "ROOT", string(pod.UID), "UID").Replace(got)
			golden := filepath.Join(goldenDir, pod.Name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got); see the -update flag\n%s", diff)
			}
		})
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	everyServedFieldIsIn(t, a.Features(), pods)
}

// goldenPods are the pods as an API server would have them.
func goldenPods(t *testing.T) (pods []*corev1.Pod) {
	t.Helper()
	files, err := filepath.Glob(goldenDir + "/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 80 {
		t.Errorf("there are %d pods, 80 were promised", len(files))
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{}
		if err := yaml.UnmarshalStrict(data, pod); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		pod.Name = strings.TrimSuffix(filepath.Base(file), ".yaml")
		pod.UID = types.UID("uid-of-" + pod.Name)
		if pod.Namespace == "" {
			pod.Namespace = "shop"
		}
		podspec.Default(pod)
		created := pod.DeepCopy()
		created.Spec.EphemeralContainers = nil // they are added later
		if errs := podspec.Validate(created); len(errs) > 0 {
			t.Fatalf("%s: %v", file, errs)
		}
		pods = append(pods, pod)
	}
	return pods
}

// goldenOptions compose an agent with all that it can be given, on a machine that is always the same.
func goldenOptions(t *testing.T) []agent.Option {
	t.Helper()
	objects := &goldenObjects{podmilltest.NewObjects()}
	objects.SetConfigMap(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "config"}, Data: map[string]string{"KEY": "value", "OTHER": "$(KEY)", "a-b.c": "x"}})
	objects.SetSecret(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "secret"}, Data: map[string][]byte{"PASSWORD": []byte("hunter2")}})
	objects.Bind(
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "claim", UID: "claim-uid"}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv"}},
		}})
	resolvConf := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(resolvConf, []byte("nameserver 192.0.2.53\nsearch example.com\noptions timeout:1\noptions attempts:3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []agent.Option{
		agent.WithObjects(objects),
		agent.WithStopPodsOnExit(),
		agent.WithVolumeOptions(volume.WithPlugins(blockDevice{})),
		agent.WithStatusSink(podmilltest.NewStatusSink()),
		agent.WithNode(syncpod.Node{IPs: []string{"192.0.2.1"}, MemoryBytes: 8 << 30, Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("7Gi"),
		}}),
		agent.WithProbeOptions(probe.WithGRPC(grpcprobe.Check)),
		agent.WithSandboxOptions(sandbox.WithResolvConf(resolvConf), sandbox.WithClusterDNS(netip.MustParseAddr("10.96.0.10")), sandbox.WithClusterDomain("cluster.local"),
			sandbox.WithAllowedSysctls("net.core.*", "kernel.shm*")),
		agent.WithSyncPodOptions(syncpod.WithDevices(func(_ context.Context, _ *corev1.Pod, c *corev1.Container) (*podmill.DeviceAllotment, error) {
			return &podmill.DeviceAllotment{
				Devices: []podmill.Device{{ContainerPath: "/dev/gpu", HostPath: "/dev/gpu7", Permissions: "rw"}}, CDIDevices: []string{"example.com/gpu=7"},
				Mounts: []podmill.Mount{{ContainerPath: "/opt/gpu", HostPath: "/usr/lib/gpu", ReadOnly: true}}, Env: []podmill.EnvVar{{Name: "GPU_OF", Value: c.Name}},
				Annotations: map[string]string{"example.com/gpu": "7"},
			}, nil
		})),
	}
}

// goldenObjects are objects with Services and RuntimeClasses.
type goldenObjects struct{ *podmilltest.Objects }

func (goldenObjects) Services(_ context.Context, namespace string) ([]*corev1.Service, error) {
	if namespace != "served" {
		return nil, nil
	}
	service := func(namespace, name, ip string, port int32) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: port}}}}
	}
	return []*corev1.Service{service("default", "kubernetes", "10.96.0.1", 443), service("served", "db", "10.96.0.7", 5432)}, nil
}

func (goldenObjects) RuntimeClass(_ context.Context, name string) (*nodev1.RuntimeClass, error) {
	if name != "sandboxed" {
		return nil, podmill.ErrNotFound
	}
	return &nodev1.RuntimeClass{Handler: "kata"}, nil
}

// blockDevice makes the claim named block, of a device that need not exist.
type blockDevice struct{}

func (blockDevice) Name() string { return "golden/block" }
func (blockDevice) Handles(v *corev1.Volume) bool {
	return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "block"
}
func (blockDevice) SetUp(context.Context, volume.Mount) (podmill.Volume, error) {
	return podmill.Volume{HostPath: "/dev/sdz", Block: true}, nil
}
func (blockDevice) TearDown(context.Context, volume.Place) error { return nil }

// await returns what the runtime was asked for, as text, once it was asked for all containers of a pod.
func (f *fakeCRI) await(t *testing.T, pod *corev1.Pod, status func() []*corev1.Pod) string {
	t.Helper()
	var names []string
	for c := range lifecycle.Containers(pod) {
		names = append(names, c.Name)
	}
	for i := range pod.Spec.EphemeralContainers {
		names = append(names, pod.Spec.EphemeralContainers[i].Name)
	}
	timeout := time.After(time.Minute)
	for {
		if text, ok := f.told(pod.UID, names); ok {
			return text
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-timeout:
			for _, p := range status() {
				if p.UID == pod.UID {
					t.Fatalf("it does not start: %+v", p.Status.ContainerStatuses)
				}
			}
			t.Fatal("it does not start")
		}
	}
}

func (f *fakeCRI) told(uid types.UID, containers []string) (text string, all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out strings.Builder
	for _, asked := range f.ran {
		if asked.GetConfig().GetMetadata().GetUid() != string(uid) {
			continue
		}
		asked = proto.Clone(asked).(*runtimeapi.RunPodSandboxRequest)
		anyMachine(asked.GetConfig().GetLinux().GetResources())
		anyMachine(asked.GetConfig().GetLinux().GetOverhead())
		fmt.Fprintf(&out, "# sandbox, handler %q\n%s", asked.GetRuntimeHandler(), textOf(asked.GetConfig()))
	}
	for _, name := range containers {
		i := slices.IndexFunc(f.created, func(r *runtimeapi.CreateContainerRequest) bool {
			return r.GetConfig().GetLabels()[podmill.LabelPodUID] == string(uid) && r.GetConfig().GetMetadata().GetName() == name
		})
		if i < 0 {
			return "", false
		}
		config := proto.Clone(f.created[i].GetConfig()).(*runtimeapi.ContainerConfig)
		anyMachine(config.GetLinux().GetResources())
		// What is always masked and read-only is in a golden file of package cri.
		security := config.GetLinux().GetSecurityContext()
		security.MaskedPaths, security.ReadonlyPaths = security.MaskedPaths[:min(1, len(security.MaskedPaths))], security.ReadonlyPaths[:min(1, len(security.ReadonlyPaths))]
		if target := f.container(security.NamespaceOptions.TargetId); target != nil {
			security.NamespaceOptions.TargetId = "that of " + target.seen.GetMetadata().GetName()
		}
		fmt.Fprintf(&out, "\n# container %s\n%s", name, textOf(config))
	}
	return out.String(), true
}

// anyMachine takes out of resources what depends on the kernel that the test runs on.
func anyMachine(r *runtimeapi.LinuxContainerResources) {
	if r == nil {
		return
	}
	r.Unified, r.MemorySwapLimitInBytes = nil, 0
	r.HugepageLimits = slices.DeleteFunc(r.HugepageLimits, func(l *runtimeapi.HugepageLimit) bool { return l.Limit == 0 })
}

// textOf is a message in protobuf's text format, without the white space that is meant to make it unstable, with pairs on a line each, and without the
// place of user namespaces, of which each pod has another one.
func textOf(m proto.Message) string {
	out := prototext.MarshalOptions{Multiline: true}.Format(m)
	for _, r := range []struct{ from, to string }{
		{`(?m)^(\s*\w+): +`, "$1: "}, {`host_id: [1-9]\d*`, "host_id: SOME"}, {`(\w+): \{\n +key: (".*")\n +value: (".*")\n\}`, "$1: $2 = $3"},
	} {
		out = regexp.MustCompile(r.from).ReplaceAllString(out, r.to)
	}
	return out
}

// everyServedFieldIsIn fails on a field that is said to be served and that no pod has.
func everyServedFieldIsIn(t *testing.T, features podmill.Features, pods []*corev1.Pod) {
	t.Helper()
	shown, none := map[string]bool{}, podspec.NewChecker(nil) // which refuses every field that a pod has
	index := regexp.MustCompile(`\[[^]]*\]`)
	for _, pod := range pods {
		for _, err := range none.Refused(pod) {
			key := strings.TrimPrefix(index.ReplaceAllString(err.Field, ""), "spec.")
			for _, list := range []string{"initContainers.", "ephemeralContainers."} {
				if rest, ok := strings.CutPrefix(key, list); ok && rest != "targetContainerName" {
					key = "containers." + rest
				}
			}
			shown[key] = true
		}
	}
	for _, key := range podspec.Fields() {
		if how, _ := features.Of(key); !how.Refused && how.Why == "" && !shown[key] {
			t.Errorf("%s is served, and no pod in %s has it", key, goldenDir)
		}
	}
}
