package main

import (
	"context"
	"errors"
	"io"
	"net"
	"path"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// tap stands between whoever is measured and the runtime. All go through it, the raw calls too, so that it favours nobody. It notes each call with
// its times and, of those that change something, the messages.
type tap struct {
	endpoint string
	runtime  *grpc.ClientConn
	server   *grpc.Server

	mu      sync.Mutex
	calls   []call
	owner   map[string]string // of a sandbox or container, and of a UID, the name of the pod
	changed chan struct{}     // closed at the next call that ends
}

// call is one call of the runtime.
type call struct {
	method          string
	request, answer []byte
	pod             string
	began, ended    time.Time
	err             error
}

func newTap(dir, runtime string) (*tap, error) {
	conn, err := grpc.NewClient(runtime, grpc.WithAuthority("localhost"), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)))
	if err != nil {
		return nil, err
	}
	t := &tap{endpoint: "unix://" + filepath.Join(dir, "tap.sock"), runtime: conn, owner: map[string]string{}, changed: make(chan struct{})}
	listener, err := net.Listen("unix", filepath.Join(dir, "tap.sock"))
	if err != nil {
		return nil, err
	}
	t.server = grpc.NewServer(grpc.ForceServerCodecV2(untouched{}), grpc.UnknownServiceHandler(t.pass))
	go func() { _ = t.server.Serve(listener) }()
	return t, nil
}

func (t *tap) close() {
	t.server.Stop()
	_ = t.runtime.Close()
}

// pass passes on one call, of any kind.
func (t *tap) pass(_ any, client grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(client)
	c := call{method: path.Base(method), began: time.Now()}
	ctx, cancel := context.WithCancel(client.Context())
	defer cancel()
	err := client.RecvMsg(&c.request)
	if err != nil {
		return err
	}
	stream, err := t.runtime.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method, grpc.ForceCodecV2(untouched{}))
	if err == nil {
		err = errors.Join(stream.SendMsg(&c.request), stream.CloseSend())
	}
	for err == nil {
		var message []byte
		if err = stream.RecvMsg(&message); err == nil {
			c.answer = message
			err = client.SendMsg(&message)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	c.ended, c.err = time.Now(), err
	t.note(c)
	return err
}

// note keeps a call, and finds out whose it is.
func (t *tap) note(c call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := ""
	switch request := c.read().(type) {
	case *runtimeapi.RunPodSandboxRequest:
		var answer runtimeapi.RunPodSandboxResponse
		_ = proto.Unmarshal(c.answer, &answer)
		id, c.pod = answer.PodSandboxId, request.GetConfig().GetMetadata().GetName()
		t.owner[request.GetConfig().GetMetadata().GetUid()] = c.pod
	case *runtimeapi.CreateContainerRequest:
		var answer runtimeapi.CreateContainerResponse
		_ = proto.Unmarshal(c.answer, &answer)
		id, c.pod = answer.ContainerId, request.GetSandboxConfig().GetMetadata().GetName()
	case interface{ GetContainerId() string }:
		c.pod = t.owner[request.GetContainerId()]
	case interface{ GetPodSandboxId() string }:
		c.pod = t.owner[request.GetPodSandboxId()]
	default:
		c.pod = t.owner[c.looksAt()]
		c.request, c.answer = nil, nil
	}
	if id != "" {
		t.owner[id] = c.pod
	}
	t.calls = append(t.calls, c)
	close(t.changed)
	t.changed = make(chan struct{})
}

// read is the request of a call that changes something, nil of any other.
func (c *call) read() proto.Message {
	var m proto.Message
	switch c.method {
	case "RunPodSandbox":
		m = &runtimeapi.RunPodSandboxRequest{}
	case "CreateContainer":
		m = &runtimeapi.CreateContainerRequest{}
	case "StartContainer":
		m = &runtimeapi.StartContainerRequest{}
	case "StopContainer":
		m = &runtimeapi.StopContainerRequest{}
	case "RemoveContainer":
		m = &runtimeapi.RemoveContainerRequest{}
	case "StopPodSandbox":
		m = &runtimeapi.StopPodSandboxRequest{}
	case "RemovePodSandbox":
		m = &runtimeapi.RemovePodSandboxRequest{}
	default:
		return nil
	}
	if proto.Unmarshal(c.request, m) != nil {
		return nil
	}
	return m
}

// looksAt is the sandbox, container or UID that a call looks at, empty of one that looks at no certain pod.
func (c *call) looksAt() string {
	const selector = "io.kubernetes.pod.uid"
	var (
		sandbox    runtimeapi.PodSandboxStatusRequest
		container  runtimeapi.ContainerStatusRequest
		sandboxes  runtimeapi.ListPodSandboxRequest
		containers runtimeapi.ListContainersRequest
	)
	switch c.method {
	case "PodSandboxStatus":
		_ = proto.Unmarshal(c.request, &sandbox)
		return sandbox.PodSandboxId
	case "ContainerStatus":
		_ = proto.Unmarshal(c.request, &container)
		return container.ContainerId
	case "ListPodSandbox":
		_ = proto.Unmarshal(c.request, &sandboxes)
		return sandboxes.GetFilter().GetLabelSelector()[selector]
	case "ListContainers":
		_ = proto.Unmarshal(c.request, &containers)
		return containers.GetFilter().GetLabelSelector()[selector]
	default:
		return ""
	}
}

// mark is where the calls begin that are made from now on.
func (t *tap) mark() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.calls)
}

func (t *tap) since(mark int) []call {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls[mark:len(t.calls):len(t.calls)]
}

// last waits until a call of a method has gone well for each of the pods, and returns the last of these.
func (t *tap) last(ctx context.Context, mark int, method string, pods []string) (call, error) {
	all, err := t.each(ctx, mark, method, pods)
	if err != nil {
		return call{}, err
	}
	return all[len(all)-1], nil
}

// each waits until a call of a method has gone well for each of the pods, and returns these in the order in which they ended.
func (t *tap) each(ctx context.Context, mark int, method string, pods []string) (good []call, err error) {
	missing := map[string]bool{}
	for _, pod := range pods {
		missing[pod] = true
	}
	for {
		t.mu.Lock()
		calls, changed := t.calls[mark:], t.changed
		mark = len(t.calls)
		t.mu.Unlock()
		for _, c := range calls {
			if c.method == method && c.err == nil && missing[c.pod] {
				delete(missing, c.pod)
				good = append(good, c)
			}
		}
		if len(missing) == 0 {
			return good, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, errors.Join(errors.New(method+" was not seen for every pod"), ctx.Err())
		}
	}
}

// untouched is a codec that leaves messages as they are.
type untouched struct{}

func (untouched) Name() string { return "proto" }

func (untouched) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (untouched) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
