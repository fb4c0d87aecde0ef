package cri

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

func TestObservedContainer(t *testing.T) {
	status := func(state runtimeapi.ContainerState) *runtimeapi.ContainerStatus {
		return &runtimeapi.ContainerStatus{
			Id: "c1", Metadata: &runtimeapi.ContainerMetadata{Name: "web", Attempt: 2}, State: state,
			CreatedAt: 1e9, StartedAt: 2e9, FinishedAt: 3e9, ExitCode: 137, Image: &runtimeapi.ImageSpec{Image: "web:1"}, ImageRef: "web@sha256:1",
			Reason: "OOMKilled", Message: "m", LogPath: "/l", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"},
		}
	}
	base := podmill.Container{
		ID: "c1", Name: "web", Attempt: 2, Image: "web:1", ImageID: "web@sha256:1", CreatedAt: time.Unix(1, 0),
		Reason: "OOMKilled", Message: "m", LogPath: "/l", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"},
	}
	exited := base
	exited.State, exited.StartedAt, exited.FinishedAt, exited.ExitCode = podmill.StateExited, time.Unix(2, 0), time.Unix(3, 0), 137
	lost := exited
	lost.State = podmill.StateUnknown
	running := base
	running.State, running.StartedAt = podmill.StateRunning, time.Unix(2, 0)
	created := base
	created.State = podmill.StateCreated
	for state, want := range map[runtimeapi.ContainerState]podmill.Container{
		runtimeapi.ContainerState_CONTAINER_EXITED:  exited,
		runtimeapi.ContainerState_CONTAINER_UNKNOWN: lost,
		runtimeapi.ContainerState_CONTAINER_RUNNING: running, // what has not finished has neither an end nor a code, whatever is said
		runtimeapi.ContainerState_CONTAINER_CREATED: created,
		42: lost,
	} {
		if diff := cmp.Diff(want, observedContainer(status(state))); diff != "" {
			t.Errorf("%v (-want +got)\n%s", state, diff)
		}
	}
}

func TestObservedSandbox(t *testing.T) {
	status := &runtimeapi.PodSandboxStatus{
		Id: "s1", Metadata: &runtimeapi.PodSandboxMetadata{Attempt: 2}, CreatedAt: 1e9, RuntimeHandler: "kata",
		Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "192.0.2.1"},
		Linux:   &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE}}},
	}
	// CRI-O tells the host's addresses of a pod that has none of its own.
	want := podmill.Sandbox{ID: "s1", Attempt: 2, Ready: true, CreatedAt: time.Unix(1, 0), HostNetwork: true, RuntimeHandler: "kata"}
	if diff := cmp.Diff(want, observedSandbox(status)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	status.State = 42
	if observedSandbox(status).Ready {
		t.Error("a state that is not known is taken for ready")
	}
}

func TestObservedImage(t *testing.T) {
	uid := int64(0) // root by its number is not the same as nobody at all
	want := podmill.Image{ID: "sha256:1", RepoTags: []string{"a:1"}, RepoDigests: []string{"a@sha256:2"}, Size: 3, UID: &uid, Pinned: true}
	got := observedImage(&runtimeapi.Image{
		Id: "sha256:1", RepoTags: []string{"a:1"}, RepoDigests: []string{"a@sha256:2"}, Size: 3, Uid: &runtimeapi.Int64Value{}, Pinned: true,
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := observedImage(&runtimeapi.Image{Username: "web"}); got.UID != nil || got.Username != "web" {
		t.Errorf("%+v", got)
	}
}

func TestNothingIsObserved(t *testing.T) {
	if diff := cmp.Diff(podmill.Sandbox{}, observedSandbox(nil)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(podmill.Container{}, observedContainer(nil)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(podmill.Image{}, observedImage(nil)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&podmill.RuntimeStatus{}, observedStatus(&identity{}, nil)); diff != "" {
		t.Error(diff)
	}
}

// FuzzObserved holds that no status, however contradictory, is a panic or an impossible observation.
func FuzzObserved(f *testing.F) {
	for _, s := range []*runtimeapi.ContainerStatus{
		{}, {State: 99, CreatedAt: -1, StartedAt: math.MinInt64, FinishedAt: math.MaxInt64, ExitCode: -7},
		{State: runtimeapi.ContainerState_CONTAINER_RUNNING, FinishedAt: 1, ExitCode: 255, Metadata: &runtimeapi.ContainerMetadata{Attempt: math.MaxUint32}},
		{State: runtimeapi.ContainerState_CONTAINER_CREATED, StartedAt: 5, Reason: "OOMKilled", Image: &runtimeapi.ImageSpec{}},
		{State: runtimeapi.ContainerState_CONTAINER_UNKNOWN, Labels: map[string]string{"": ""}},
	} {
		data, err := proto.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var container runtimeapi.ContainerStatus
		if proto.Unmarshal(data, &container) == nil {
			c := observedContainer(&container)
			ended := c.State == podmill.StateExited || c.State == podmill.StateUnknown
			if !ended && (!c.FinishedAt.IsZero() || c.ExitCode != 0) || c.State == podmill.StateCreated && !c.StartedAt.IsZero() {
				t.Errorf("%+v", c)
			}
			for _, at := range []time.Time{c.CreatedAt, c.StartedAt, c.FinishedAt} {
				if !at.IsZero() && at.Before(time.Unix(0, 1)) {
					t.Errorf("time %v", at)
				}
			}
		}
		var sandbox runtimeapi.PodSandboxStatus
		if proto.Unmarshal(data, &sandbox) == nil {
			if s := observedSandbox(&sandbox); s.HostNetwork && len(s.IPs) > 0 {
				t.Errorf("%+v", s)
			}
		}
		var image runtimeapi.Image
		if proto.Unmarshal(data, &image) == nil {
			observedImage(&image)
		}
		var status runtimeapi.StatusResponse
		if proto.Unmarshal(data, &status) == nil {
			observedStatus(&identity{}, &status)
		}
		var event runtimeapi.ContainerEventResponse
		if proto.Unmarshal(data, &event) == nil {
			owners{}.of(&event)
		}
	})
}
