package main

import (
	"context"
	"errors"
	"io"
	"net"
	"path"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// proxy stands between an agent and a real runtime, and holds the first call of one method: before the runtime hears of it or, lost, when it has
// answered, so that the answer never arrives. It knows no message.
type proxy struct {
	endpoint string
	reached  chan struct{} // closed when the call is held

	runtime *grpc.ClientConn
	once    sync.Once
	method  string
	lost    bool
}

func newProxy(t *testing.T, runtime, method string, lost bool) *proxy {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "cri.sock")
	p := &proxy{endpoint: "unix://" + socket, reached: make(chan struct{}), method: method, lost: lost}
	var err error
	if p.runtime, err = grpc.NewClient(runtime, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(untouched{}), grpc.UnknownServiceHandler(p.pass))
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		_ = p.runtime.Close()
	})
	return p
}

// pass passes on one call, of any kind.
func (p *proxy) pass(_ any, agent grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(agent)
	ctx, cancel := context.WithCancel(agent.Context())
	defer cancel()
	held := false
	if path.Base(method) == p.method {
		p.once.Do(func() { held = true })
	}
	hold := func() error {
		close(p.reached)
		<-ctx.Done()
		return ctx.Err()
	}
	if held && !p.lost {
		return hold()
	}
	if held {
		ctx = context.WithoutCancel(ctx) // what the runtime has begun it ends
	}
	runtime, err := p.runtime.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, grpc.ForceCodecV2(untouched{}))
	if err != nil {
		return err
	}
	var request mem.BufferSlice
	if err := agent.RecvMsg(&request); err != nil {
		return err
	}
	if err := errors.Join(runtime.SendMsg(&request), runtime.CloseSend()); err != nil {
		return err
	}
	for {
		var answer mem.BufferSlice
		switch err := runtime.RecvMsg(&answer); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case held:
			close(p.reached)
			<-agent.Context().Done()
			return agent.Context().Err()
		}
		if err := agent.SendMsg(&answer); err != nil {
			return err
		}
	}
}

// untouched is a codec that leaves messages as they are.
type untouched struct{}

func (untouched) Name() string { return "proto" }

func (untouched) Marshal(v any) (mem.BufferSlice, error) {
	b := *v.(*mem.BufferSlice) //nolint:forcetypeassert // the proxy sends nothing else
	b.Ref()
	return b, nil
}

func (untouched) Unmarshal(data mem.BufferSlice, v any) error {
	data.Ref()
	*v.(*mem.BufferSlice) = data //nolint:forcetypeassert // nor does it ask for anything else
	return nil
}

var _ encoding.CodecV2 = untouched{}
