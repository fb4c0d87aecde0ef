package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// fake is a runtime that holds one pod and notes its calls.
type fake struct {
	pod   podmill.RuntimePod
	calls []string
	fail  map[string]error // by call
	next  podmill.Sandbox  // what RunSandbox makes, beside attempt and ID
}

func (f *fake) call(name string, args ...any) error {
	call := strings.TrimSpace(fmt.Sprintln(append([]any{name}, args...)...))
	f.calls = append(f.calls, call)
	if err := f.fail[call]; err != nil {
		return err
	}
	return f.fail[name]
}

func (f *fake) RunSandbox(_ context.Context, spec *podmill.SandboxSpec) (string, error) {
	if err := f.call("run", spec.Attempt); err != nil {
		return "", err
	}
	s := f.next
	s.ID, s.Attempt = fmt.Sprintf("s%d", spec.Attempt), spec.Attempt
	f.pod.Sandboxes = slices.Insert(f.pod.Sandboxes, 0, s)
	return s.ID, nil
}

func (f *fake) StopSandbox(_ context.Context, id string) error   { return f.call("stop", id) }
func (f *fake) RemoveSandbox(_ context.Context, id string) error { return f.call("remove", id) }
func (f *fake) InspectPod(context.Context, types.UID) (*podmill.RuntimePod, error) {
	if err := f.call("inspect"); err != nil {
		return nil, err
	}
	pod := f.pod
	return &pod, nil
}

// told notes events.
type told []string

func (r *told) Event(about corev1.ObjectReference, eventType, reason, message string) {
	*r = append(*r, fmt.Sprintf("%s %s %s: %s", about.Name, eventType, reason, message))
}

func wantCalls(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

const missing = `web Warning MissingClusterDNS: pod: "web_default(web-uid)". kubelet does not have ClusterDNS IP configured and cannot create Pod ` +
	`using "ClusterFirst" policy. Falling back to "Default" policy.`

// TestRun shows that a sandbox is run and looked at once, and what is told of it.
func TestRun(t *testing.T) {
	f, events := &fake{next: podmill.Sandbox{Ready: true, IPs: []string{"10.0.0.7"}}}, &told{}
	var ran []string
	m := New(f, WithEvents(events), WithResolvConf("testdata/resolv.conf"), WithObserver(Observer{
		Ran: func(pod podmill.PodRef, handler string, _ time.Duration, err error) {
			ran = append(ran, fmt.Sprint(pod, handler, err))
		},
	}))
	for attempt := range uint32(2) {
		spec, err := m.Spec(newPod("web"), attempt)
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.Run(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if s.Attempt != attempt || !cmp.Equal(s.IPs, []string{"10.0.0.7"}) {
			t.Errorf("got %+v", s)
		}
	}
	wantCalls(t, f.calls, "run 0", "inspect", "run 1", "inspect")
	wantCalls(t, *events, missing, "web Normal SandboxChanged: Pod sandbox changed, it will be killed and re-created.")
	wantCalls(t, ran, "default/web(web-uid)<nil>", "default/web(web-uid)<nil>")
}

// TestRunInHostNetwork shows that the runtime is asked for no address that the pod does not have.
func TestRunInHostNetwork(t *testing.T) {
	f, pod := &fake{}, newPod("web")
	pod.Spec.HostNetwork = true
	m := New(f, WithResolvConf(""))
	spec, err := m.Spec(pod, 0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	wantCalls(t, f.calls, "run 0")
	if current, _, why := m.Choose(pod, &podmill.RuntimePod{Sandboxes: []podmill.Sandbox{*s}}); current == nil {
		t.Errorf("what Run returned is not chosen: %s", why)
	}
}

// TestRunFails shows that each way to fail is an error and an event, and that a start that was called off is not news.
func TestRunFails(t *testing.T) {
	boom := errors.New("no space left")
	for name, tc := range map[string]struct {
		fail  map[string]error
		next  podmill.Sandbox
		event string
		is    error
	}{
		"run": {fail: map[string]error{"run": boom}, is: boom, event: "FailedCreatePodSandBox: Failed to create pod sandbox: no space left"},
		"inspect": {fail: map[string]error{"inspect": boom}, is: boom,
			event: "FailedStatusPodSandBox: Unable to get pod sandbox status: no space left"},
		"not ready": {event: "FailedStatusPodSandBox: Unable to get pod sandbox status: the sandbox is not ready"},
		"no address": {next: podmill.Sandbox{Ready: true},
			event: "FailedStatusPodSandBox: Unable to get pod sandbox status: the sandbox has no address"},
	} {
		t.Run(name, func(t *testing.T) {
			f, events, pod := &fake{fail: tc.fail, next: tc.next}, &told{}, newPod("web")
			pod.Spec.DNSPolicy = corev1.DNSNone
			m := New(f, WithEvents(events))
			spec, err := m.Spec(pod, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = m.Run(t.Context(), spec)
			if err == nil || !strings.Contains(err.Error(), "default/web(web-uid)") || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("got %v", err)
			}
			wantCalls(t, *events, "web Warning "+tc.event)

			*events = nil
			over, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := m.Run(over, spec); err == nil {
				t.Error("no error")
			}
			if len(*events) > 0 {
				t.Errorf("a start that was called off is told: %v", *events)
			}
		})
	}
}

// TestRunVanished shows that a sandbox that is gone when it is looked at is ErrNotFound.
func TestRunVanished(t *testing.T) {
	f := &vanishing{}
	m, pod := New(f), newPod("web")
	if _, err := m.Run(t.Context(), &podmill.SandboxSpec{Pod: pod}); !errors.Is(err, podmill.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

type vanishing struct{ fake }

func (f *vanishing) InspectPod(context.Context, types.UID) (*podmill.RuntimePod, error) {
	return &podmill.RuntimePod{}, nil
}

// TestSpecFails shows that a pod that can have no sandbox is told so, in an event too (B119).
func TestSpecFails(t *testing.T) {
	f, events := &fake{}, &told{}
	pod := newPod(strings.Repeat("p", 230))
	pod.Namespace = strings.Repeat("n", 20)
	if _, err := New(f, WithEvents(events)).Spec(pod, 0); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("got %v", err)
	}
	if len(*events) != 1 || !strings.Contains((*events)[0], "Warning FailedCreatePodSandBox: Failed to create pod sandbox: namespace, name and UID are too long") {
		t.Errorf("events: %v", *events)
	}
	wantCalls(t, f.calls)
}

// TestResolvConfIsReadAnew shows that a node whose DNS changed gives it to its next pods, and that a pod that does not ask for it does not
// need the file.
func TestResolvConfIsReadAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	m, pod := New(&fake{}, WithResolvConf(path)), newPod("web")
	if _, err := m.Spec(pod, 0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
	for _, server := range []string{"192.0.2.1", "192.0.2.2"} {
		if err := os.WriteFile(path, []byte("nameserver "+server), 0o600); err != nil {
			t.Fatal(err)
		}
		if spec, err := m.Spec(pod, 0); err != nil || !cmp.Equal(spec.DNS.Servers, []string{server}) {
			t.Errorf("got %v, %v", spec, err)
		}
	}
	pod.Spec.DNSPolicy = corev1.DNSNone
	if _, err := New(&fake{}, WithResolvConf(path+".missing")).Spec(pod, 0); err != nil {
		t.Errorf("policy None: %v", err)
	}
}

// TestWithoutResolvConf shows the kubelet's substitute for an empty path.
func TestWithoutResolvConf(t *testing.T) {
	spec, err := New(&fake{}, WithResolvConf("")).Spec(newPod("web"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&podmill.DNS{Servers: []string{"127.0.0.1"}, Searches: []string{"."}}, spec.DNS); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStopAndRemove shows that every sandbox is stopped and removed whatever happens to the others, that one that is not there is done, and
// that it can be repeated.
func TestStopAndRemove(t *testing.T) {
	boom := errors.New("busy")
	f := &fake{fail: map[string]error{"stop b": boom, "remove b": boom, "stop a": podmill.ErrNotFound, "remove a": fmt.Errorf("gone: %w", podmill.ErrNotFound)}}
	seen := &podmill.RuntimePod{PodRef: podmill.RefOf(newPod("web")), Sandboxes: []podmill.Sandbox{ready(2), ready(1), dead(0)}}
	m := New(f)
	for range 2 {
		f.calls = nil
		if err := m.Stop(t.Context(), seen); !errors.Is(err, boom) || err.Error() != "stop sandbox b of pod default/web(web-uid): busy" {
			t.Errorf("stop: %v", err)
		}
		if err := m.Remove(t.Context(), seen); !errors.Is(err, boom) || errors.Is(err, podmill.ErrNotFound) {
			t.Errorf("remove: %v", err)
		}
		wantCalls(t, f.calls, "stop c", "stop b", "stop a", "remove c", "remove b", "remove a")
	}
	if err := errors.Join(m.Stop(t.Context(), nil), m.Remove(t.Context(), nil)); err != nil {
		t.Errorf("nothing seen: %v", err)
	}
}

// TestNoSandboxForAnEndedPod shows that saying which sandbox to use and what it is made of touches no runtime: a pod that has finished, and
// whose sandbox died since, gets none by being looked at (B051).
func TestNoSandboxForAnEndedPod(t *testing.T) {
	f := &fake{}
	m, pod := New(f, WithResolvConf("")), newPod("job")
	pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	seen := &podmill.RuntimePod{Sandboxes: []podmill.Sandbox{dead(0)}, Containers: []podmill.Container{{Name: "c", State: podmill.StateExited}}}
	current, attempt, _ := m.Choose(pod, seen)
	if _, err := m.Spec(pod, attempt); current != nil || attempt != 1 || err != nil {
		t.Errorf("got %v, %d, %v", current, attempt, err)
	}
	wantCalls(t, f.calls)
}

// TestChooseAsksForNoClass shows that a class that was deleted, or made anew with another handler, takes no running sandbox with it.
func TestChooseAsksForNoClass(t *testing.T) {
	m := New(&fake{}, WithRuntimeClasses(func(class string) (string, error) {
		t.Errorf("asked for the handler of %s", class)
		return "kata", nil
	}))
	pod := newPod("web")
	pod.Spec.RuntimeClassName = new("sandboxed")
	seen := &podmill.RuntimePod{Sandboxes: []podmill.Sandbox{ready(0, func(s *podmill.Sandbox) { s.RuntimeHandler = "runsc" })}}
	if current, _, why := m.Choose(pod, seen); current == nil {
		t.Errorf("it is made anew: %s", why)
	}
}
