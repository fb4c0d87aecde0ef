package cri

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

func TestRuntimeStatus(t *testing.T) {
	s := newServer(t)
	s.on("Status", says(&runtimeapi.StatusResponse{
		Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
			{Type: "RuntimeReady", Status: true}, {Type: "NetworkReady", Reason: "NetworkPluginNotReady", Message: "no CNI"}, {Type: "Other", Status: true}, {},
		}},
		RuntimeHandlers: []*runtimeapi.RuntimeHandler{{}, {Name: "kata", Features: &runtimeapi.RuntimeHandlerFeatures{UserNamespaces: true}}},
		Features:        &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: true},
	}))
	for driver, answer := range map[string]answer{
		"systemd":  says(&runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_SYSTEMD}}),
		"cgroupfs": says(&runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS}}),
		"":         fails(status.Error(codes.Unimplemented, "unknown method RuntimeConfig for service runtime.v1.RuntimeService")),
	} {
		s.on("RuntimeConfig", answer)
		if s.grpc == nil {
			s.start(t)
		}
		got, err := s.dial(t).RuntimeStatus(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := &podmill.RuntimeStatus{
			Name: "fake", Version: "1", CgroupDriver: driver, RuntimeReady: podmill.Condition{OK: true},
			NetworkReady: podmill.Condition{Reason: "NetworkPluginNotReady", Message: "no CNI"},
			Handlers:     []podmill.RuntimeHandler{{}, {Name: "kata", UserNamespaces: true}}, SupplementalGroupsPolicy: true,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

// A runtime that is too old for a field leaves it out without a word. What a pod's security hangs on is refused instead.
func TestWhatARuntimeCannotDoIsRefused(t *testing.T) {
	strict := corev1.SupplementalGroupsPolicyStrict
	ids := &podmill.IDMappings{UIDs: []podmill.IDMapping{{Host: 65536, Length: 65536}}, GIDs: []podmill.IDMapping{{Host: 65536, Length: 65536}}}
	able := &runtimeapi.StatusResponse{
		Features: &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: true, UserNamespacesHostNetwork: true, MountOptions: true},
		RuntimeHandlers: []*runtimeapi.RuntimeHandler{
			{}, {Name: "runc", Features: &runtimeapi.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true, UserNamespaces: true}},
		},
	}
	for name, tc := range map[string]struct {
		change func(*podmill.ContainerSpec)
		want   string
	}{
		"strict groups": {func(c *podmill.ContainerSpec) {
			c.Sandbox.Pod.Spec.SecurityContext = &corev1.PodSecurityContext{SupplementalGroupsPolicy: &strict}
		}, "securityContext.supplementalGroupsPolicy Strict"},
		"user namespace": {func(c *podmill.ContainerSpec) { c.Sandbox.IDMappings = ids }, "hostUsers: false"},
		"user namespace in the host's network": {func(c *podmill.ContainerSpec) {
			c.Sandbox.IDMappings, c.Sandbox.Pod.Spec.HostNetwork = ids, true
		}, "hostUsers: false"},
		"recursive read-only": {func(c *podmill.ContainerSpec) {
			c.Mounts = []podmill.Mount{{ContainerPath: "/m", HostPath: "/m", ReadOnly: true, RecursiveReadOnly: corev1.RecursiveReadOnlyEnabled}}
		}, "recursiveReadOnly of the mount at /m"},
		"mount options": {func(c *podmill.ContainerSpec) {
			c.Mounts = []podmill.Mount{{ContainerPath: "/m", HostPath: "/m", Options: []string{"noexec"}}}
		}, "bindMountOptions of the mount at /m"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t).on("RunPodSandbox", says(&runtimeapi.RunPodSandboxResponse{PodSandboxId: "s1"})).
				on("CreateContainer", says(&runtimeapi.CreateContainerResponse{ContainerId: "c1"}))
			s.start(t)
			old := s.dial(t)
			spec := containerSpec(sandboxSpec(testPod()), 0)
			spec.Sandbox.RuntimeHandler = "runc"
			tc.change(spec)
			_, err := old.CreateContainer(t.Context(), spec)
			var refused *podmill.ReasonError
			if !errors.As(err, &refused) || refused.Reason != "CreateContainerConfigError" ||
				!strings.Contains(refused.Message, "container web of pod shop/cart(7b4c): "+tc.want+": the runtime, fake 1, does not support it") {
				t.Errorf("error %v, want that of %s", err, tc.want)
			}
			if len(spec.Mounts) == 0 {
				if _, err := old.RunSandbox(t.Context(), spec.Sandbox); !errors.As(err, &refused) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error of the sandbox %v, want that of %s", err, tc.want)
				}
			}
			if n := s.called("CreateContainer") + s.called("RunPodSandbox"); n != 0 {
				t.Errorf("the runtime was asked %d times", n)
			}

			s.on("Status", says(able))
			able := s.dial(t)
			if _, err := able.CreateContainer(t.Context(), spec); err != nil {
				t.Error(err)
			}
			if _, err := able.RunSandbox(t.Context(), spec.Sandbox); err != nil {
				t.Error(err)
			}
			spec.Sandbox.RuntimeHandler = "another"
			if _, err := able.CreateContainer(t.Context(), spec); name != "strict groups" && name != "mount options" && err == nil {
				t.Error("the features of one runtime handler are taken for those of another")
			}
		})
	}
}

// Devices by name are passed over by containerd before 1.7, which does not say so: its version does.
func TestDevicesByName(t *testing.T) {
	for version, able := range map[string]bool{"1.6.20~ds1": false, "v1.6.38": false, "1.7.0": true, "v2.4.2": true, "unknown": false} {
		s := newServer(t).on("CreateContainer", says(&runtimeapi.CreateContainerResponse{ContainerId: "c1"})).
			on("Version", says(&runtimeapi.VersionResponse{RuntimeName: "containerd", RuntimeVersion: version, RuntimeApiVersion: "v1"}))
		c := s.start(t).dial(t)
		spec := containerSpec(sandboxSpec(testPod()), 0)
		spec.CDIDevices = []string{"example.com/gpu=7"}
		_, err := c.CreateContainer(t.Context(), spec)
		var refused *podmill.ReasonError
		if (err == nil) != able || !able && (!errors.As(err, &refused) || !strings.Contains(refused.Message, "device example.com/gpu=7: the runtime, containerd "+version)) {
			t.Errorf("containerd %s: %v", version, err)
		}
	}
}

// Where the runtime cannot say what it can do, nothing is refused for good: that would end up in the pod's status.
func TestWhoCannotSayWhatItCanDoIsAskedAgain(t *testing.T) {
	strict := corev1.SupplementalGroupsPolicyStrict
	for _, method := range []string{"Version", "Status", "RuntimeConfig"} {
		s := newServer(t).on(method, fails(status.Error(codes.Unavailable, "server is not initialized yet")))
		c, err := newClient(s.start(t).path, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		spec := containerSpec(sandboxSpec(testPod()), 0)
		spec.Sandbox.Pod.Spec.SecurityContext = &corev1.PodSecurityContext{SupplementalGroupsPolicy: &strict}
		_, run := c.RunSandbox(t.Context(), spec.Sandbox)
		_, create := c.CreateContainer(t.Context(), spec)
		_, look := c.RuntimeStatus(t.Context())
		for _, err := range []error{run, create, look} {
			is(t, err, ErrUnavailable, errors.ErrUnsupported)
			if refused := new(podmill.ReasonError); errors.As(err, &refused) {
				t.Errorf("%v", err)
			}
		}
	}
}

// An ordinary pod costs no call but its own.
func TestOrdinaryPodsAskForNothing(t *testing.T) {
	s := newServer(t).on("RunPodSandbox", says(&runtimeapi.RunPodSandboxResponse{PodSandboxId: "s1"})).on("CreateContainer", says(&runtimeapi.CreateContainerResponse{ContainerId: "c1"}))
	c, err := newClient(s.start(t).path, nil) // that has not asked who it is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	sandbox, err := c.RunSandbox(t.Context(), sandboxSpec(testPod()))
	if err != nil || sandbox != "s1" {
		t.Errorf("%q, %v", sandbox, err)
	}
	container, err := c.CreateContainer(t.Context(), containerSpec(sandboxSpec(testPod()), 0))
	if err != nil || container != "c1" {
		t.Errorf("%q, %v", container, err)
	}
	if n := s.called("Status") + s.called("Version"); n != 0 {
		t.Errorf("%d calls more", n)
	}
}

// KEP-4639: which runtimes mount images is known by their versions alone.
func TestImageVolumes(t *testing.T) {
	for _, tt := range []struct {
		name, version string
		want          bool
	}{
		{"containerd", "1.6.20~ds1", false}, {"containerd", "v1.7.27", false}, {"containerd", "2.0.5", false}, {"containerd", "2.1.0-rc.0", true},
		{"containerd", "v2.4.2", true}, {"containerd", "3.0", true}, {"containerd", "unknown", false}, {"containerd", "", false},
		{"cri-o", "1.30.9", false}, {"cri-o", "1.31.0", true}, {"another", "0", true},
	} {
		i := &identity{name: tt.name, version: tt.version}
		unmet := false
		for _, d := range demands(sandboxSpec(testPod()), &podmill.ContainerSpec{Mounts: []podmill.Mount{{ContainerPath: "/m", Image: "i"}}}) {
			unmet = unmet || !d.met(i)
		}
		if unmet == tt.want {
			t.Errorf("%s %s mounts images: %v, want %v", tt.name, tt.version, !unmet, tt.want)
		}
	}
}

// A part of an image is mounted by more recent runtimes than an image is.
func TestPartsOfImages(t *testing.T) {
	for _, tt := range []struct {
		name, version string
		want          bool
	}{
		{"containerd", "2.0.5", false}, {"containerd", "v2.1.6", false}, {"containerd", "v2.2.0-rc.1", true},
		{"cri-o", "1.32.5", false}, {"cri-o", "1.33.0", true}, {"another", "0", true},
	} {
		i, field := &identity{name: tt.name, version: tt.version}, ""
		for _, d := range demands(sandboxSpec(testPod()), &podmill.ContainerSpec{Mounts: []podmill.Mount{{ContainerPath: "/m", Image: "i", ImageSubPath: "a/b"}}}) {
			if !d.met(i) {
				field = d.field
			}
		}
		if (field == "") != tt.want || !tt.want && field != "subPath of the mount of an image at /m" && field != "mount of an image at /m" {
			t.Errorf("%s %s mounts parts of images: %v, want %v: %q", tt.name, tt.version, field == "", tt.want, field)
		}
	}
}

// What need not be recursively read-only is where the runtime can, and is read-only where it cannot.
func TestRecursiveReadOnlyIfPossible(t *testing.T) {
	for _, can := range []bool{false, true} {
		s := newServer(t).on("Status", says(&runtimeapi.StatusResponse{RuntimeHandlers: []*runtimeapi.RuntimeHandler{
			{Name: "runc", Features: &runtimeapi.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: can}},
		}}))
		var got *runtimeapi.CreateContainerRequest
		s.on("CreateContainer", func(_ context.Context, request any) (any, error) {
			got = request.(*runtimeapi.CreateContainerRequest)
			return &runtimeapi.CreateContainerResponse{ContainerId: "c1"}, nil
		})
		s.start(t)
		spec := containerSpec(sandboxSpec(testPod()), 0)
		spec.Sandbox.RuntimeHandler = "runc"
		spec.Mounts = []podmill.Mount{{ContainerPath: "/m", HostPath: "/m", ReadOnly: true, RecursiveReadOnly: corev1.RecursiveReadOnlyIfPossible}}
		if _, err := s.dial(t).CreateContainer(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		if m := got.GetConfig().GetMounts()[0]; !m.GetReadonly() || m.GetRecursiveReadOnly() != can {
			t.Errorf("can: %v, the mount is %v", can, m)
		}
	}
}
