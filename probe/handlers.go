package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/internal/expand"
	"github.com/podmill/podmill/internal/httpget"
)

const (
	// maxOutput is how much of what a probe says is kept, in bytes.
	maxOutput = httpget.MaxBody
	// tries is how often a probe is tried that cannot be carried out, before that is its result.
	tries = 3
)

// target is what a probe needs to know of its container.
type target struct {
	container *corev1.Container
	id        string
	address   string // the pod's
	probe     *corev1.Probe
	timeout   time.Duration
}

// finding is what a probe found out.
type finding struct {
	result  Result
	warning bool
	message string
}

func success(message string) finding { return finding{result: Successful, message: message} }
func failure(message string) finding { return finding{result: Failed, message: message} }

// handlers carry out probes. Each attempt returns a finding or, where it could not be made, an error.
type handlers struct {
	exec Exec
	http *httpget.Client
	grpc GRPC
}

// probe carries a probe out. What could not be carried out is tried again at once, as the kubelet does, and is unknown in the end.
func (h *handlers) probe(ctx context.Context, t target) finding {
	var err error
	for range tries {
		var found finding
		if found, err = h.attempt(ctx, t); err == nil {
			found.message = clip(found.message)
			return found
		}
		if ctx.Err() != nil {
			break
		}
	}
	return finding{result: Unknown, message: clip(err.Error())}
}

func (h *handlers) attempt(ctx context.Context, t target) (finding, error) {
	switch p := t.probe; {
	case p.Exec != nil:
		return h.command(ctx, t)
	case p.HTTPGet != nil:
		return h.get(ctx, t)
	case p.TCPSocket != nil:
		return h.connect(ctx, t)
	case p.GRPC != nil:
		return h.check(ctx, t)
	default:
		return finding{}, fmt.Errorf("missing probe handler for container %q", t.container.Name)
	}
}

// command runs a command in the container. A command that runs too long has failed (KEP-1972).
func (h *handlers) command(ctx context.Context, t target) (finding, error) {
	if h.exec == nil {
		return finding{}, errors.New("there is nothing to run commands with")
	}
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	result, err := h.exec(ctx, t.id, command(t))
	switch {
	case err == nil && result == nil:
		return finding{}, errors.New("the command had no result")
	case err == nil && result.ExitCode == 0:
		return success(output(result.Stdout, result.Stderr)), nil
	case err == nil:
		return failure(output(result.Stdout, result.Stderr)), nil
	case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded):
		return failure(timedOut(t)), nil
	default:
		return finding{}, err
	}
}

// command returns a probe's command, in which the container's own variables are put in. Those that come from elsewhere are empty, as the
// kubelet has it.
func command(t target) []string {
	out := make([]string, len(t.probe.Exec.Command))
	for i, word := range t.probe.Exec.Command {
		out[i] = expand.String(word, func(name string) (value string, ok bool) {
			for _, v := range t.container.Env { // the last of a name wins
				if v.Name == name {
					value, ok = v.Value, true
				}
			}
			return value, ok
		})
	}
	return out
}

// timedOut is what is said of a probe that took too long.
func timedOut(t target) string {
	if t.probe.Exec != nil {
		return fmt.Sprintf("command timed out: %q timed out after %v", strings.Join(command(t), " "), t.timeout)
	}
	return fmt.Sprintf("probe timed out after %v", t.timeout)
}

// get fetches a page. What a server says that fails is not repeated: events are read by others than the pod's own users.
func (h *handlers) get(ctx context.Context, t target) (finding, error) {
	req, err := httpget.Request(ctx, t.probe.HTTPGet, t.container, t.address, httpget.ForProbe)
	if err != nil {
		return finding{}, err
	}
	answer, err := h.http.Do(req, t.timeout)
	switch {
	case err != nil:
		return failure(err.Error()), nil
	case !answer.OK():
		return failure(fmt.Sprintf("HTTP probe failed with statuscode: %d", answer.Status)), nil
	case answer.Redirect():
		return finding{Successful, true, fmt.Sprintf("Probe terminated redirects, Response body: %s", answer.Body)}, nil
	default:
		return success(string(answer.Body)), nil
	}
}

// connect opens a connection and closes it.
func (h *handlers) connect(ctx context.Context, t target) (finding, error) {
	port, err := httpget.Port(t.probe.TCPSocket.Port, t.container)
	if err != nil {
		return finding{}, err
	}
	address, err := join(cmp.Or(t.probe.TCPSocket.Host, t.address), port, t)
	if err != nil {
		return finding{}, err
	}
	conn, err := (&net.Dialer{Timeout: t.timeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return failure(err.Error()), nil
	}
	_ = conn.Close() // it was open: that was the question
	return success(""), nil
}

// check asks a gRPC health service.
func (h *handlers) check(ctx context.Context, t target) (finding, error) {
	if h.grpc == nil {
		return finding{}, errors.New("there is nothing to make gRPC probes with")
	}
	address, err := join(t.address, int(t.probe.GRPC.Port), t)
	if err != nil {
		return finding{}, err
	}
	service := ""
	if t.probe.GRPC.Service != nil {
		service = *t.probe.GRPC.Service
	}
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	if err := h.grpc(ctx, address, service); err != nil {
		return failure(err.Error()), nil
	}
	return success("service healthy"), nil
}

func join(host string, port int, t target) (string, error) {
	if host == "" {
		return "", fmt.Errorf("the pod of container %q has no address", t.container.Name)
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}

// output is the beginning of what a command has written.
func output(stdout, stderr []byte) string {
	stdout = stdout[:min(len(stdout), maxOutput)]
	return string(stdout) + string(stderr[:min(len(stderr), maxOutput-len(stdout))])
}

// clip makes a bounded text of whatever came back.
func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxOutput)], "\uFFFD") }
