package cri

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

func labels(pod string) map[string]string {
	return map[string]string{podmill.LabelPodUID: "uid-" + pod, podmill.LabelPodNamespace: "ns", podmill.LabelPodName: pod}
}

// node is a runtime with n pods of a sandbox and two containers each.
func node(n int) (sandboxes []*runtimeapi.PodSandbox, containers []*runtimeapi.Container) {
	for i := range n {
		pod := fmt.Sprintf("pod-%d", i)
		id := fmt.Sprintf("%063x%d", i, 0)
		sandboxes = append(sandboxes, &runtimeapi.PodSandbox{
			Id: id, Labels: labels(pod), Metadata: &runtimeapi.PodSandboxMetadata{Name: pod, Namespace: "ns", Uid: "uid-" + pod, Attempt: 1},
			State: runtimeapi.PodSandboxState_SANDBOX_READY, CreatedAt: 1e18, RuntimeHandler: "runc",
			Annotations: map[string]string{podmill.AnnotationConfigSource: "file", podmill.AnnotationConfigSeen: "2026-11-29T15:23:00.000000000Z"},
		})
		for j := range 2 {
			containers = append(containers, &runtimeapi.Container{
				Id: fmt.Sprintf("%063x%d", i, j+1), PodSandboxId: id, Labels: labels(pod), State: runtimeapi.ContainerState_CONTAINER_RUNNING,
				Metadata: &runtimeapi.ContainerMetadata{Name: fmt.Sprintf("c%d", j), Attempt: uint32(j)}, CreatedAt: 1e18,
				Image: &runtimeapi.ImageSpec{Image: "sha256:" + id}, ImageRef: "sha256:" + id,
				Annotations: map[string]string{
					podmill.AnnotationContainerHash: "5d9c3a1f", podmill.AnnotationRestartCount: "0", podmill.AnnotationPodTerminationGracePeriod: "30",
					podmill.AnnotationTerminationMessagePath: "/dev/termination-log", podmill.AnnotationTerminationMessagePolicy: "File",
				},
			})
		}
	}
	return sandboxes, containers
}

// wire is what comes from a runtime, in no certain order.
func wire(t testing.TB, sandboxes []*runtimeapi.PodSandbox, containers []*runtimeapi.Container) [2][]byte {
	t.Helper()
	sandboxes, containers = slices.Clone(sandboxes), slices.Clone(containers)
	rand.Shuffle(len(sandboxes), func(i, j int) { sandboxes[i], sandboxes[j] = sandboxes[j], sandboxes[i] })
	rand.Shuffle(len(containers), func(i, j int) { containers[i], containers[j] = containers[j], containers[i] })
	s, err := proto.Marshal(&runtimeapi.ListPodSandboxResponse{Items: sandboxes})
	if err != nil {
		t.Fatal(err)
	}
	c, err := proto.Marshal(&runtimeapi.ListContainersResponse{Containers: containers})
	if err != nil {
		t.Fatal(err)
	}
	return [2][]byte{s, c}
}

func fill(snap *podmill.Snapshot, messages [2][]byte) error {
	l := begin(snap)
	err := errors.Join(readItems(messages[0], sandboxLayout(), l.add), readItems(messages[1], containerLayout(), l.add))
	l.end(err == nil)
	return err
}

// asProtobufHasIt is the same by way of protobuf's own reader: what the reader of the wire is held to.
func asProtobufHasIt(messages [2][]byte) ([]podmill.Item, error) {
	var sandboxes runtimeapi.ListPodSandboxResponse
	var containers runtimeapi.ListContainersResponse
	if err := errors.Join(proto.Unmarshal(messages[0], &sandboxes), proto.Unmarshal(messages[1], &containers)); err != nil {
		return nil, err
	}
	var items []podmill.Item
	for _, s := range sandboxes.Items {
		items = append(items, podmill.Item{Pod: podOf(s.Labels), ID: s.Id, Attempt: s.Metadata.GetAttempt(), State: sandboxState(s.State)})
	}
	for _, c := range containers.Containers {
		items = append(items, podmill.Item{
			Pod: podOf(c.Labels), ID: c.Id, Container: c.Metadata.GetName(), Attempt: c.Metadata.GetAttempt(), State: containerState(c.State),
		})
	}
	items = slices.DeleteFunc(items, func(i podmill.Item) bool { return i.Pod.UID == "" })
	slices.SortStableFunc(items, func(a, b podmill.Item) int { return strings.Compare(a.ID, b.ID) })
	return items, nil
}

// A second listing takes what did not change from the first, in whatever order the runtime lists, and keeps nothing of what has gone.
func TestListingKeepsWhatDidNotChange(t *testing.T) {
	sandboxes, containers := node(20)
	var snap podmill.Snapshot
	refill := func() {
		t.Helper()
		messages := wire(t, sandboxes, containers)
		want, err := asProtobufHasIt(messages)
		if err := errors.Join(err, fill(&snap, messages)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, snap.Items); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	}
	refill()
	first := slices.Clone(snap.Items)
	if len(first) != 60 {
		t.Fatalf("%d items", len(first))
	}
	refill()
	if diff := cmp.Diff(first, snap.Items); diff != "" {
		t.Errorf("(-first +second)\n%s", diff)
	}
	for i := range first {
		a, b := &first[i], &snap.Items[i]
		if unsafe.StringData(a.ID) != unsafe.StringData(b.ID) || unsafe.StringData(a.Pod.Name) != unsafe.StringData(b.Pod.Name) ||
			unsafe.StringData(a.Container) != unsafe.StringData(b.Container) {
			t.Errorf("item %d has new strings", i)
		}
	}

	containers[0].State, containers[1].Metadata.Attempt = runtimeapi.ContainerState_CONTAINER_EXITED, 7
	sandboxes, containers = sandboxes[:1], containers[:2]
	refill()
	want := []podmill.Item{
		{Pod: podOf(labels("pod-0")), ID: sandboxes[0].Id, Attempt: 1, State: podmill.StateRunning},
		{Pod: podOf(labels("pod-0")), ID: containers[0].Id, Container: "c0", State: podmill.StateExited},
		{Pod: podOf(labels("pod-0")), ID: containers[1].Id, Container: "c1", Attempt: 7, State: podmill.StateRunning},
	}
	if diff := cmp.Diff(want, snap.Items); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, item := range snap.Items[len(snap.Items):cap(snap.Items)] {
		if item != (podmill.Item{}) {
			t.Fatalf("the snapshot keeps %+v", item)
		}
	}
}

// However many containers there are, those that did not change cost nothing.
func TestListingAllocatesNothingForWhatDidNotChange(t *testing.T) {
	for _, pods := range []int{333, 3333} {
		sandboxes, containers := node(pods)
		messages := wire(t, sandboxes, containers)
		var snap podmill.Snapshot
		got := testing.AllocsPerRun(5, func() {
			if err := fill(&snap, messages); err != nil {
				t.Fatal(err)
			}
		})
		if len(snap.Items) != 3*pods || got > 3 { // the listing itself, and its two funcs
			t.Errorf("%v allocations for %d items", got, len(snap.Items))
		}
	}
}

// What belongs to no pod of Kubernetes is somebody else's, and nothing that a runtime may say is a panic.
func TestListingLeavesOutWhatIsSomebodyElses(t *testing.T) {
	s := newServer(t)
	s.on("ListPodSandbox", says(&runtimeapi.ListPodSandboxResponse{Items: []*runtimeapi.PodSandbox{
		{}, {Id: "theirs", Metadata: &runtimeapi.PodSandboxMetadata{Uid: "made-with-crictl"}}, {Id: "ours", Labels: labels("a"), State: 99},
	}}))
	s.on("ListContainers", says(&runtimeapi.ListContainersResponse{Containers: []*runtimeapi.Container{{}, {Id: "theirs"}}}))
	c := s.start(t).dial(t)
	snap := podmill.Snapshot{Items: []podmill.Item{{ID: "z"}, {ID: "a"}}} // and of somebody else's making
	if err := c.ListPods(t.Context(), &snap); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]podmill.Item{{Pod: podOf(labels("a")), ID: "ours"}}, snap.Items); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// inspected is a pod with a sandbox and three containers, of which the runtime answers for what is asked.
func inspected(t *testing.T) *server {
	sandboxes, containers := node(1)
	containers = append(containers, &runtimeapi.Container{Id: "c2", PodSandboxId: sandboxes[0].Id, Labels: labels("pod-0")})
	s := newServer(t)
	s.on("ListPodSandbox", func(_ context.Context, request any) (any, error) {
		if got := request.(*runtimeapi.ListPodSandboxRequest).GetFilter().GetLabelSelector()[podmill.LabelPodUID]; got != "uid-pod-0" {
			t.Errorf("selects %q", got)
		}
		return &runtimeapi.ListPodSandboxResponse{Items: sandboxes}, nil
	})
	s.on("ListContainers", says(&runtimeapi.ListContainersResponse{Containers: containers}))
	s.on("PodSandboxStatus", says(&runtimeapi.PodSandboxStatusResponse{Status: &runtimeapi.PodSandboxStatus{
		Id: "contradictory", Labels: labels("pod-0"), Metadata: &runtimeapi.PodSandboxMetadata{Attempt: 3},
		Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.1", AdditionalIps: []*runtimeapi.PodIP{{Ip: "fd00::1"}, {}}},
	}}))
	s.on("ContainerStatus", func(_ context.Context, request any) (any, error) {
		id := request.(*runtimeapi.ContainerStatusRequest).GetContainerId()
		if id == "c2" {
			return nil, status.Error(codes.NotFound, "not found")
		}
		return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{
			Metadata: &runtimeapi.ContainerMetadata{Name: "c", Attempt: uint32(id[len(id)-1] - '0')},
			State:    runtimeapi.ContainerState_CONTAINER_EXITED, ExitCode: 3,
		}}, nil
	})
	return s
}

// B038: a container that is listed and has no status has gone; the others are still reported, the newest first.
func TestInspectLeavesOutWhatHasGone(t *testing.T) {
	s := inspected(t).start(t)
	c := s.dial(t)
	pod, err := c.InspectPod(t.Context(), "uid-pod-0")
	if err != nil {
		t.Fatal(err)
	}
	sandboxes, containers := node(1)
	want := &podmill.RuntimePod{
		PodRef:    podmill.PodRef{UID: "uid-pod-0", Namespace: "ns", Name: "pod-0"},
		Sandboxes: []podmill.Sandbox{{ID: sandboxes[0].Id, Attempt: 3, Ready: true, IPs: []string{"10.0.0.1", "fd00::1"}, Labels: labels("pod-0")}},
		Containers: []podmill.Container{
			{ID: containers[1].Id, SandboxID: sandboxes[0].Id, Name: "c", Attempt: 2, State: podmill.StateExited, ExitCode: 3},
			{ID: containers[0].Id, SandboxID: sandboxes[0].Id, Name: "c", Attempt: 1, State: podmill.StateExited, ExitCode: 3},
		},
	}
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if n := s.called("PodSandboxStatus") + s.called("ContainerStatus") + s.called("ListContainers") + s.called("ListPodSandbox"); n != 6 {
		t.Errorf("%d calls, want 6", n)
	}
}

// Anything but "not found" is no answer: half a pod is never taken for all of it.
func TestInspectFailsRatherThanOmits(t *testing.T) {
	for name, tell := range map[string]func(*server){
		"listing fails":     func(s *server) { s.on("ListContainers", fails(status.Error(codes.Unknown, "x"))) },
		"sandbox unknown":   func(s *server) { s.on("PodSandboxStatus", fails(status.Error(codes.Unknown, "sandbox not found"))) },
		"container unknown": func(s *server) { s.on("ContainerStatus", fails(status.Error(codes.Unknown, "not found"))) },
		"no sandbox status": func(s *server) { s.on("PodSandboxStatus", says(&runtimeapi.PodSandboxStatusResponse{})) },
		"no status":         func(s *server) { s.on("ContainerStatus", says(&runtimeapi.ContainerStatusResponse{})) },
	} {
		t.Run(name, func(t *testing.T) {
			s := inspected(t)
			tell(s)
			pod, err := s.start(t).dial(t).InspectPod(t.Context(), "uid-pod-0")
			if err == nil {
				t.Fatalf("it returned %+v", pod)
			}
			if errors.Is(err, podmill.ErrNotFound) {
				t.Errorf("%v is taken for an answer", err)
			}
		})
	}
}

// An empty UID as a selector would mean whatever has none.
func TestInspectNothing(t *testing.T) {
	s := newServer(t).start(t)
	pod, err := s.dial(t).InspectPod(t.Context(), "")
	if err != nil || !pod.Empty() || s.called("ListContainers") != 0 {
		t.Errorf("%+v, %v", pod, err)
	}
}
