package image

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// secrets are by name; an error stands for a provider that cannot tell.
type secrets map[string]any

func (s secrets) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch v := s[name].(type) {
	case *corev1.Secret:
		return v, nil
	case error:
		return nil, v
	default:
		return nil, fmt.Errorf("secret %s/%s: %w", namespace, name, podmill.ErrNotFound)
	}
}

func podWith(names ...string) *corev1.Pod {
	pod := newPod("web")
	for _, name := range names {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return pod
}

// TestPullSecrets shows that secrets that cannot be used are named, and that those that can are.
func TestPullSecrets(t *testing.T) {
	objects := secrets{
		"good":   jsonSecret("good", `{"auths":{"reg.example":{"username":"u","password":"p"}}}`),
		"old":    cfgSecret("old", `{"reg.example":{"username":"v","password":"q"}}`),
		"broken": jsonSecret("broken", "{"),
		"late":   errors.New("timed out"),
	}
	events := &told{}
	p := New(newStore(nil), WithSecrets(objects), WithEvents(events))
	got, err := p.PullSecrets(t.Context(), podWith("missing", "old", "broken", "", "late", "good"))
	want := []podmill.ImageAuth{
		{Username: "v", Password: "q", ServerAddress: "reg.example"}, {Username: "u", Password: "p", ServerAddress: "reg.example"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	events.want(t, "web Warning FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets "+
		"(missing, broken: .dockerconfigjson is malformed, late); attempting to pull the image may not succeed.")

	if got, err := p.PullSecrets(t.Context(), newPod("web")); got != nil || err != nil {
		t.Errorf("none: %v, %v", got, err)
	}
	events.want(t)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.PullSecrets(over, podWith("good")); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	events.want(t)
	if got, err := New(newStore(nil), WithEvents(events)).PullSecrets(t.Context(), podWith("good")); got != nil || err != nil {
		t.Errorf("no provider: %v, %v", got, err)
	}
	events.want(t, "web Warning FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets "+
		"(good); attempting to pull the image may not succeed.")
}

// TestCredentialsInTurn shows that credentials are tried from the most specific to none, that the first that is taken ends it, and that what they were
// refused for is told once.
func TestCredentialsInTurn(t *testing.T) {
	auths := []podmill.ImageAuth{
		{Username: "wide", ServerAddress: "*.example"}, {Username: "host", ServerAddress: "reg.example"},
		{Username: "team", ServerAddress: "reg.example/team"}, {Username: "other", ServerAddress: "other.example"},
	}
	refuse := func(good string, err error) func(context.Context, *podmill.ImagePull) error {
		return func(_ context.Context, what *podmill.ImagePull) error {
			if what.Auth == nil && good == "" || what.Auth != nil && what.Auth.Username == good {
				return nil
			}
			if what.Auth == nil {
				return errors.New("anonymous is not welcome")
			}
			return err
		}
	}
	denied := errors.New("401 Unauthorized")
	order := []string{"team", "host", "wide", "nobody"}
	for i, good := range []string{"team", "host", "wide", ""} {
		s := newStore(refuse(good, denied))
		if _, err := New(s).EnsureImage(t.Context(), newPod("web"), container("reg.example/team/app"), nil, auths); err != nil {
			t.Errorf("%q: %v", good, err)
		}
		var calls []string
		for _, who := range order[:i+1] {
			calls = append(calls, "pull reg.example/team/app:latest as "+who)
		}
		s.wantCalls(t, append(calls, "inspect sha256:reg.example/team/app:latest")...)
	}
	_, err := New(newStore(refuse("nowhere", denied))).EnsureImage(t.Context(), newPod("web"), container("reg.example/team/app"), nil, auths)
	wantReason(t, err, "ErrImagePull", "[401 Unauthorized, anonymous is not welcome]")
	if !errors.Is(err, denied) {
		t.Error("the cause is lost")
	}
}

// TestCredentialsStay shows that no part of a credential, nor of a secret that cannot be read, is in a log at the highest verbosity, in an event or
// in an error, however they are printed.
func TestCredentialsStay(t *testing.T) {
	canary := func(i int) string { return fmt.Sprintf("canary%d", i) }
	encoded := base64.StdEncoding.EncodeToString([]byte(canary(1) + ":" + canary(2)))
	objects := secrets{
		"auth":     jsonSecret("auth", `{"auths":{"reg.example":{"auth":"`+encoded+`"}}}`),
		"plain":    cfgSecret("plain", `{"reg.example/team":{"username":"`+canary(3)+`","password":"`+canary(4)+`"}}`),
		"json":     jsonSecret("json", canary(5)),
		"type":     jsonSecret("type", `{"auths":{"reg":{"password":{"`+canary(6)+`":1}}}}`),
		"base64":   jsonSecret("base64", `{"auths":{"reg":{"auth":"`+canary(7)+`!"}}}`),
		"colon":    jsonSecret("colon", `{"auths":{"reg":{"auth":"`+base64.StdEncoding.EncodeToString([]byte(canary(8)))+`"}}}`),
		"number":   cfgSecret("number", `{"reg":{"password":99999}}`),
		"opaque":   &corev1.Secret{Type: "Opaque", Data: map[string][]byte{"k": []byte(canary(9))}},
		"trailing": jsonSecret("trailing", `{} `+canary(10)),
	}
	var out strings.Builder
	log := funcr.New(func(prefix, args string) { out.WriteString(prefix + args + "\n") }, funcr.Options{Verbosity: 99})
	ctx, events := logr.NewContext(t.Context(), log), &told{}
	names := []string{"auth", "plain", "json", "type", "base64", "colon", "number", "opaque", "trailing", "missing"}
	for _, pull := range []error{errors.New("refused"), nil} {
		p := New(newStore(func(context.Context, *podmill.ImagePull) error { return pull }), WithSecrets(objects), WithEvents(events))
		auths, err := p.PullSecrets(ctx, podWith(names...))
		if err != nil || len(auths) != 2 {
			t.Fatalf("%d credentials, %v", len(auths), err)
		}
		_, err = p.EnsureImage(ctx, newPod("web"), container("reg.example/team/app"), nil, auths)
		_, again := p.EnsureImage(ctx, newPod("web"), container("reg.example/team/app"), nil, auths)
		for _, v := range []any{err, again, auths, &auths[0], podmill.ImagePull{Auth: &auths[0]}} {
			fmt.Fprintf(&out, "%v\n%+v\n%#v\n", v, v, v)
		}
		log.Info("all of it", "auths", auths, "one", auths[0], "pointer", &auths[0])
	}
	out.WriteString(strings.Join(events.lines, "\n"))
	got := out.String()
	for _, secret := range []string{"canary", encoded, "99999", base64.StdEncoding.EncodeToString([]byte(canary(8)))} {
		if i := strings.Index(got, secret); i >= 0 {
			t.Errorf("%s is told: ...%s", secret, got[max(0, i-100):min(len(got), i+50)])
		}
	}
	for _, name := range append(names[2:], "pulled image") {
		if !strings.Contains(got, name) {
			t.Errorf("%s is not told", name)
		}
	}
}
