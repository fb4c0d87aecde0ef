package cri

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/podmill/podmill"
)

// ErrUnavailable says that the runtime cannot be reached, or does not serve CRI yet, as while it restarts. It says nothing of sandboxes and
// containers, which go on meanwhile.
var ErrUnavailable = errors.New("container runtime unavailable")

// callError is a call that failed. Its kind is what errors.Is finds: [podmill.ErrNotFound], [errors.ErrUnsupported], [ErrUnavailable], a
// context's error, or nothing. gRPC's status.Code finds its code.
type callError struct {
	op      op
	code    codes.Code
	message string
	kind    error
}

func (e *callError) Error() string {
	if e.op.subject == "" {
		return e.op.method + ": " + e.message
	}
	return e.op.method + " " + e.op.subject + ": " + e.message
}

func (e *callError) Unwrap() error { return e.kind }

// GRPCStatus is where gRPC's status package looks for a code.
func (e *callError) GRPCStatus() *status.Status { return status.New(e.code, e.Error()) }

// moment is what two clocks may differ in counting the same time.
const moment = 100 * time.Millisecond

// failed makes an error of what a call returned. parent is the caller's context, bounded the call's own.
func (o op) failed(parent, bounded context.Context, err error) error {
	if err == nil {
		return nil
	}
	s := status.Convert(err)
	e := &callError{op: o, code: s.Code(), message: s.Message()}
	if deadline, ok := bounded.Deadline(); ok && time.Until(deadline) < moment && (e.code == codes.Canceled || e.code == codes.DeadlineExceeded) {
		<-bounded.Done() // the runtime is told the deadline, and may be the first to see it pass
	}
	switch {
	case e.code == codes.NotFound:
		e.kind = podmill.ErrNotFound
	case parent.Err() != nil:
		e.kind = parent.Err()
		if cause := context.Cause(parent); !errors.Is(cause, e.kind) {
			e.kind = errors.Join(cause, e.kind)
		}
		e.message = context.Cause(parent).Error()
	case bounded.Err() != nil:
		e.kind, e.message = context.DeadlineExceeded, fmt.Sprintf("no answer within %v", o.timeout)
	case e.code == codes.DeadlineExceeded: // the runtime's own, over something that it waited for
		e.kind = context.DeadlineExceeded
	case e.code == codes.Unavailable, notServing(s):
		e.kind = ErrUnavailable
	case e.code == codes.Unimplemented:
		e.kind = errors.ErrUnsupported
	}
	return e
}

// notServing reports that a runtime answers before it serves CRI: its CRI plugin is still starting, or has failed. The whole service is
// missing then, which does not mean that the runtime lacks the one method that was called.
func notServing(s *status.Status) bool {
	switch s.Code() {
	case codes.Unimplemented:
		return strings.HasPrefix(s.Message(), "unknown service")
	case codes.Unknown: // containerd before 2
		return strings.Contains(s.Message(), "server is not initialized yet")
	default:
		return false
	}
}

// absent makes "not found" a success: what is to be gone is.
func absent(err error) error {
	if errors.Is(err, podmill.ErrNotFound) {
		return nil
	}
	return err
}

// refuse is the error for what is asked of a container and cannot be given.
func refuse(spec *podmill.ContainerSpec, field, why string) error {
	return &podmill.ReasonError{
		Reason:  "CreateContainerConfigError",
		Message: fmt.Sprintf("container %s of pod %s: %s: %s", spec.Container.Name, podmill.RefOf(spec.Sandbox.Pod), field, why),
	}
}

// refuseSandbox is the error for what is asked of a sandbox and cannot be given.
func refuseSandbox(spec *podmill.SandboxSpec, field, why string) error {
	return &podmill.ReasonError{Reason: "ConfigPodSandboxError", Message: fmt.Sprintf("pod %s: %s: %s", podmill.RefOf(spec.Pod), field, why)}
}
