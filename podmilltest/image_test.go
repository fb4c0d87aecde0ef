package podmilltest

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podmill/podmill"
)

func TestImageNames(t *testing.T) {
	for ref, want := range map[string]string{
		"nginx":                "docker.io/library/nginx:latest",
		"nginx:1":              "docker.io/library/nginx:1",
		"library/nginx":        "docker.io/library/nginx:latest",
		"registry.test/a/b":    "registry.test/a/b:latest",
		"localhost:5000/a:v1":  "localhost:5000/a:v1",
		"localhost/a":          "localhost/a:latest",
		"a@sha256:0123":        "docker.io/library/a@sha256:0123",
		"127.0.0.1:5000/x/y:2": "127.0.0.1:5000/x/y:2",
	} {
		if got := normalize(ref); got != want {
			t.Errorf("%s is %s, want %s", ref, got, want)
		}
	}
}

func TestPullWhatTheRegistryHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := NewRuntime(WithRegistry(
			RemoteImage{Image: Image{Ref: "slow"}, Takes: time.Minute},
			RemoteImage{Image: Image{Ref: "gone"}, Takes: time.Second, Err: errFault},
			RemoteImage{Image: Image{Ref: "secret"}, Username: "u", Password: "p"},
		))
		pull := func(image string, auth *podmill.ImageAuth) error {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			_, err := rt.PullImage(ctx, &podmill.ImagePull{Image: image, Auth: auth})
			return err
		}
		if err := pull("slow", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("slow: %v", err)
		}
		if err := pull("gone", nil); !errors.Is(err, errFault) {
			t.Errorf("gone: %v", err)
		}
		for _, auth := range []*podmill.ImageAuth{nil, {}, {Username: "u", Password: "wrong"}} {
			if err := pull("secret", auth); err == nil {
				t.Errorf("a secret image was pulled with %v", auth)
			}
		}
		encoded := base64.StdEncoding.EncodeToString([]byte("u:p"))
		for _, auth := range []*podmill.ImageAuth{{Username: "u", Password: "p"}, {Auth: encoded}} {
			if err := pull("secret", auth); err != nil {
				t.Errorf("secret: %v", err)
			}
		}
		if err := pull("anything/else:3", nil); err != nil {
			t.Errorf("an image that nobody spoke of: %v", err)
		}
	})
}

func TestTagMovesToANewImage(t *testing.T) {
	rt := NewRuntime(
		WithImages(ScriptImage("web", "exit 1")),
		WithRegistry(RemoteImage{Image: ScriptImage("web", "exit 2")}),
	)
	before, err := rt.InspectImage(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	id, err := rt.PullImage(t.Context(), &podmill.ImagePull{Image: "web"})
	if err != nil {
		t.Fatal(err)
	}
	after, err := rt.InspectImage(t.Context(), "web")
	if err != nil || after.ID != id || id == before.ID || !slices.Equal(after.RepoTags, before.RepoTags) {
		t.Errorf("the tag is %+v, %v, want that of %s", after, err, id)
	}
	if old, err := rt.InspectImage(t.Context(), before.ID); err != nil || len(old.RepoTags) != 0 {
		t.Errorf("what had the tag: %+v, %v, want it without a tag", old, err)
	}
}
