package syncpod

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/httpget"
)

// hook is a hook of one instance of a container.
type hook struct {
	container *corev1.Container
	handler   *corev1.LifecycleHandler
	id        string
	address   string // of its pod; empty if it has none
}

// maxHookOutput is how much of what a command says, in bytes, is told when it fails. What it says is bounded by the runtime.
const maxHookOutput = 1 << 10

// loopback is where a pod in the host's network is reached on a node of which no address is known.
const loopback = "127.0.0.1"

// errCut is the end of a sleep that was not slept out.
var errCut = errors.New("container terminated before sleep hook finished")

// runHook carries out a hook, until ctx ends. Where it fails, message is the kubelet's, for a status alone: commands and what they
// say may hold secrets, and more people read events.
func (s *Syncer) runHook(ctx context.Context, pod *corev1.Pod, h *hook) (message string, err error) {
	failed := func(kind, what, format string, args ...any) (string, error) {
		return fmt.Sprintf("%s lifecycle hook (%s) for Container %q in Pod %q failed - error: ", kind, what, h.container.Name,
			fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID)) + fmt.Sprintf(format, args...), err
	}
	var output []byte
	switch {
	case h.handler.Exec != nil:
		if output, err = s.exec(ctx, h.id, h.handler.Exec.Command); err != nil {
			return failed("Exec", fmt.Sprint(h.handler.Exec.Command), "%v, message: %q", err, output)
		}
	case h.handler.HTTPGet != nil:
		if err = s.get(ctx, pod, h); err != nil {
			return failed("HTTP", h.handler.HTTPGet.Path, "%v", err)
		}
	case h.handler.Sleep != nil:
		if err = sleep(ctx, time.Duration(h.handler.Sleep.Seconds)*time.Second); err != nil {
			return failed("Sleep", fmt.Sprint(h.handler.Sleep.Seconds), "%v", err)
		}
	default:
		return "Cannot run handler", errors.New("invalid handler: it is neither exec nor httpGet nor sleep")
	}
	return "", nil
}

// exec runs a command in a container.
func (s *Syncer) exec(ctx context.Context, id string, command []string) (output []byte, err error) {
	execer, ok := podmill.As[podmill.Execer](s.Runtime)
	if !ok {
		return nil, fmt.Errorf("run a command: %w", errors.ErrUnsupported)
	}
	r, err := execer.Exec(ctx, id, command)
	switch {
	case err != nil:
		return nil, err
	case r.ExitCode != 0:
		err = fmt.Errorf("command '%s' exited with %d: %s", strings.Join(command, " "), r.ExitCode, short(r.Stderr))
	}
	return short(append(bytes.Clone(r.Stdout), r.Stderr...)), err
}

func short(output []byte) []byte { return output[:min(len(output), maxHookOutput)] }

// get makes a request. Any answer is a success, as it is for the kubelet, which also tries plain HTTP where it was told HTTPS in vain.
func (s *Syncer) get(ctx context.Context, pod *corev1.Pod, h *hook) error {
	request, err := httpget.Request(ctx, h.handler.HTTPGet, h.container, h.address, httpget.ForHook)
	if err != nil {
		return err
	}
	if err = s.ask(request); !errors.Is(err, http.ErrSchemeMismatch) {
		return err
	}
	request = request.Clone(ctx)
	request.URL.Scheme = "http"
	request.Header.Del("Authorization") // it was meant for nobody else on the way
	if again := s.ask(request); again != nil {
		return err
	}
	s.event(pod, "", corev1.EventTypeWarning, eventHookFallback, fmt.Sprintf(
		"request to HTTPS lifecycle hook %s got HTTP response, retry with HTTP succeeded", request.URL.Host))
	return nil
}

// ask makes a request and returns an error if there was no answer, not even the begin of one.
func (s *Syncer) ask(request *http.Request) error {
	answer, err := s.http.Do(request, 0)
	if answer != nil {
		return nil
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return errCut
	}
}

// addressOf returns the address of a container's pod, as its hooks and those of other containers reach it.
func (s *Syncer) addressOf(hostNetwork bool, sandbox *podmill.Sandbox) string {
	switch {
	case hostNetwork && len(s.node.IPs) > 0:
		return s.node.IPs[0]
	case hostNetwork:
		return loopback
	case len(sandbox.IPs) > 0:
		return sandbox.IPs[0]
	default:
		return ""
	}
}
