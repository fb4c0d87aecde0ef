package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// fakeCRI speaks CRI and runs nothing: sandboxes and containers are there because it was asked for them, and what it was asked for is kept. A container whose
// name begins with init has succeeded at once; where its environment has a FILE, it has left a TEXT there.
type fakeCRI struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	runtimeapi.UnimplementedImageServiceServer

	mu         sync.Mutex
	sandboxes  []*fakeSandbox
	containers []*fakeContainer
	ran        []*runtimeapi.RunPodSandboxRequest // all that it was ever asked for
	created    []*runtimeapi.CreateContainerRequest
}

type fakeSandbox struct{ seen *runtimeapi.PodSandboxStatus }

type fakeContainer struct {
	asked *runtimeapi.CreateContainerRequest
	seen  *runtimeapi.ContainerStatus
}

// serve starts the fake, and returns the path of its socket.
func (f *fakeCRI) serve(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cri.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, f)
	runtimeapi.RegisterImageServiceServer(server, f)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return path
}

func (f *fakeCRI) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "fake", RuntimeVersion: "1", RuntimeApiVersion: "v1"}, nil
}

// Status says that it can do everything.
func (f *fakeCRI) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	able := &runtimeapi.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true, UserNamespaces: true}
	return &runtimeapi.StatusResponse{
		Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
			{Type: runtimeapi.RuntimeReady, Status: true}, {Type: runtimeapi.NetworkReady, Status: true},
		}},
		RuntimeHandlers: []*runtimeapi.RuntimeHandler{{Features: able}, {Name: "kata", Features: able}},
		Features:        &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: true, MountOptions: true},
	}, nil
}

func (f *fakeCRI) RunPodSandbox(_ context.Context, asked *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := asked.GetConfig()
	s := &fakeSandbox{&runtimeapi.PodSandboxStatus{
		Id: fmt.Sprint("sandbox-", len(f.ran)), Metadata: c.GetMetadata(), CreatedAt: time.Now().UnixNano(), Labels: c.GetLabels(), Annotations: c.GetAnnotations(),
		Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.88.0.7", AdditionalIps: []*runtimeapi.PodIP{{Ip: "fd00::7"}}},
		Linux:   &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: c.GetLinux().GetSecurityContext().GetNamespaceOptions()}},
	}}
	f.sandboxes, f.ran = append(f.sandboxes, s), append(f.ran, asked)
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: s.seen.Id}, nil
}

func (f *fakeCRI) CreateContainer(_ context.Context, asked *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := asked.GetConfig()
	made := &fakeContainer{asked: asked, seen: &runtimeapi.ContainerStatus{
		Id: fmt.Sprint("container-", len(f.created)), Metadata: c.GetMetadata(), State: runtimeapi.ContainerState_CONTAINER_CREATED, CreatedAt: time.Now().UnixNano(),
		Image: c.GetImage(), ImageRef: c.GetImage().GetImage(), Labels: c.GetLabels(), Annotations: c.GetAnnotations(),
	}}
	f.containers, f.created = append(f.containers, made), append(f.created, asked)
	return &runtimeapi.CreateContainerResponse{ContainerId: made.seen.Id}, nil
}

func (f *fakeCRI) StartContainer(_ context.Context, asked *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.container(asked.GetContainerId())
	if c == nil {
		return nil, status.Error(codes.NotFound, "no such container")
	}
	c.seen.State, c.seen.StartedAt = runtimeapi.ContainerState_CONTAINER_RUNNING, time.Now().UnixNano()
	if strings.HasPrefix(c.seen.GetMetadata().GetName(), "init") {
		c.end()
		return &runtimeapi.StartContainerResponse{}, c.leave()
	}
	return &runtimeapi.StartContainerResponse{}, nil
}

func (c *fakeContainer) end() {
	c.seen.State, c.seen.FinishedAt = runtimeapi.ContainerState_CONTAINER_EXITED, time.Now().UnixNano()
}

// leave writes the file that the container's environment names, into the volume that is mounted there.
func (c *fakeContainer) leave() error {
	env := map[string]string{}
	for _, v := range c.asked.GetConfig().GetEnvs() {
		env[v.GetKey()] = string(v.GetValue())
	}
	for _, m := range c.asked.GetConfig().GetMounts() {
		if name, ok := strings.CutPrefix(env["FILE"], m.GetContainerPath()+"/"); ok {
			return os.WriteFile(filepath.Join(m.GetHostPath(), name), []byte(env["TEXT"]), 0o600)
		}
	}
	return nil
}

func (f *fakeCRI) container(id string) *fakeContainer {
	for _, c := range f.containers {
		if c.seen.GetId() == id {
			return c
		}
	}
	return nil
}

func (f *fakeCRI) StopContainer(_ context.Context, asked *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.container(asked.GetContainerId()); c != nil && c.seen.State == runtimeapi.ContainerState_CONTAINER_RUNNING {
		c.end()
	}
	return &runtimeapi.StopContainerResponse{}, nil
}

func (f *fakeCRI) RemoveContainer(_ context.Context, asked *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.containers = slices.DeleteFunc(f.containers, func(c *fakeContainer) bool { return c.seen.GetId() == asked.GetContainerId() })
	return &runtimeapi.RemoveContainerResponse{}, nil
}

func (f *fakeCRI) StopPodSandbox(_ context.Context, asked *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sandboxes {
		if s.seen.GetId() == asked.GetPodSandboxId() {
			s.seen.State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
		}
	}
	return &runtimeapi.StopPodSandboxResponse{}, nil
}

func (f *fakeCRI) RemovePodSandbox(_ context.Context, asked *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sandboxes = slices.DeleteFunc(f.sandboxes, func(s *fakeSandbox) bool { return s.seen.GetId() == asked.GetPodSandboxId() })
	f.containers = slices.DeleteFunc(f.containers, func(c *fakeContainer) bool { return c.asked.GetPodSandboxId() == asked.GetPodSandboxId() })
	return &runtimeapi.RemovePodSandboxResponse{}, nil
}

func (f *fakeCRI) ListPodSandbox(_ context.Context, asked *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answer := &runtimeapi.ListPodSandboxResponse{}
	for _, s := range f.sandboxes {
		if uid, some := asked.GetFilter().GetLabelSelector()[podmill.LabelPodUID]; !some || uid == s.seen.GetMetadata().GetUid() {
			answer.Items = append(answer.Items, &runtimeapi.PodSandbox{Id: s.seen.Id, Metadata: s.seen.Metadata, State: s.seen.State, Labels: s.seen.Labels})
		}
	}
	return answer, nil
}

func (f *fakeCRI) ListContainers(_ context.Context, asked *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answer := &runtimeapi.ListContainersResponse{}
	for _, c := range f.containers {
		if uid, some := asked.GetFilter().GetLabelSelector()[podmill.LabelPodUID]; !some || uid == c.seen.GetLabels()[podmill.LabelPodUID] {
			answer.Containers = append(answer.Containers, &runtimeapi.Container{
				Id: c.seen.Id, PodSandboxId: c.asked.PodSandboxId, Metadata: c.seen.Metadata, State: c.seen.State, Labels: c.seen.Labels,
			})
		}
	}
	return answer, nil
}

func (f *fakeCRI) PodSandboxStatus(_ context.Context, asked *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sandboxes {
		if s.seen.GetId() == asked.GetPodSandboxId() {
			return &runtimeapi.PodSandboxStatusResponse{Status: &runtimeapi.PodSandboxStatus{
				Id: s.seen.Id, Metadata: s.seen.Metadata, State: s.seen.State, CreatedAt: s.seen.CreatedAt,
				Network: s.seen.Network, Linux: s.seen.Linux, Labels: s.seen.Labels, Annotations: s.seen.Annotations,
			}}, nil
		}
	}
	return nil, status.Error(codes.NotFound, "no such sandbox")
}

func (f *fakeCRI) ContainerStatus(_ context.Context, asked *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.container(asked.GetContainerId())
	if c == nil {
		return nil, status.Error(codes.NotFound, "no such container")
	}
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{
		Id: c.seen.Id, Metadata: c.seen.Metadata, State: c.seen.State, CreatedAt: c.seen.CreatedAt, StartedAt: c.seen.StartedAt, FinishedAt: c.seen.FinishedAt,
		Image: c.seen.Image, ImageRef: c.seen.ImageRef, Labels: c.seen.Labels, Annotations: c.seen.Annotations,
	}}, nil
}

// ExecSync is a command that succeeds.
func (f *fakeCRI) ExecSync(context.Context, *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	return &runtimeapi.ExecSyncResponse{}, nil
}

// ImageStatus has every image. Its user is in its tag: 1000, or a name.
func (f *fakeCRI) ImageStatus(_ context.Context, asked *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	name := asked.GetImage().GetImage()
	image := &runtimeapi.Image{Id: "sha256:" + name, RepoTags: []string{name}, Size: 1}
	var uid int64
	user := name[strings.LastIndexByte(name, ':')+1:]
	if n, err := fmt.Sscanf(user, "user%d", &uid); n == 1 && err == nil {
		image.Uid = &runtimeapi.Int64Value{Value: uid}
	} else if strings.HasPrefix(user, "named-") {
		image.Username = strings.TrimPrefix(user, "named-")
	}
	return &runtimeapi.ImageStatusResponse{Image: image}, nil
}

func (f *fakeCRI) PullImage(_ context.Context, asked *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	return &runtimeapi.PullImageResponse{ImageRef: "sha256:" + asked.GetImage().GetImage()}, nil
}
