package image

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// TestEnsureImage shows, for each policy, what the runtime is asked and what people are told.
func TestEnsureImage(t *testing.T) {
	const c = "web spec.containers{c} "
	pulled := func(image string) string {
		return c + `Normal Pulled: Successfully pulled image "` + image + `" in 1.2s (1.2s including waiting). Image size: 42 bytes.`
	}
	for name, tc := range map[string]struct {
		image  string
		policy corev1.PullPolicy
		here   []string
		calls  []string
		events []string
		reason string
		msg    string
	}{
		"here": {image: "img:1", here: []string{"img:1"}, calls: []string{"inspect img:1"},
			events: []string{c + `Normal Pulled: Container image "img:1" already present on machine`}},
		"not here": {image: "img:1", calls: []string{"inspect img:1", "pull img:1 as nobody", "inspect sha256:img:1"},
			events: []string{c + `Normal Pulling: Pulling image "img:1"`, pulled("img:1")}},
		"always": {image: "img", here: []string{"img:latest"}, calls: []string{"pull img:latest as nobody", "inspect sha256:img:latest"},
			events: []string{c + `Normal Pulling: Pulling image "img"`, pulled("img")}},
		"never, here": {image: "img", policy: corev1.PullNever, here: []string{"img:latest"}, calls: []string{"inspect img:latest"},
			events: []string{c + `Normal Pulled: Container image "img" already present on machine`}},
		"never, not here": {image: "img:1", policy: corev1.PullNever, calls: []string{"inspect img:1"},
			events: []string{c + `Warning ErrImageNeverPull: Container image "img:1" is not present with pull policy of Never`},
			reason: "ErrImageNeverPull", msg: `Container image "img:1" is not present with pull policy of Never`},
		"no name": {image: "Img",
			events: []string{c + `Warning InspectFailed: Failed to apply default image tag "Img": couldn't parse image reference "Img": ` +
				`invalid reference format: repository name (library/Img) must be lowercase`},
			reason: "InvalidImageName", msg: `Failed to apply default image tag "Img": couldn't parse image reference "Img": ` +
				`invalid reference format: repository name (library/Img) must be lowercase`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, events := newStore(takes(1200*time.Millisecond+345*time.Microsecond, nil), tc.here...), &told{}
				pod, ctr := newPod("web"), container(tc.image)
				ctr.ImagePullPolicy = tc.policy
				image, err := New(s, WithEvents(events)).EnsureImage(t.Context(), pod, ctr, nil, nil)
				if tc.reason != "" {
					wantReason(t, err, tc.reason, tc.msg)
				} else if err != nil || image.Size != 42 {
					t.Errorf("got %v, %v", image, err)
				}
				s.wantCalls(t, tc.calls...)
				events.want(t, tc.events...)
			})
		})
	}
}

// TestRuntimeCannotTell shows that a runtime that does not know whether an image is here is never taken to have said that it is not.
func TestRuntimeCannotTell(t *testing.T) {
	s, events := newStore(nil), &told{}
	s.fail = errors.New("deadline exceeded")
	_, err := New(s, WithEvents(events)).EnsureImage(t.Context(), newPod("web"), container("img:1"), nil, nil)
	wantReason(t, err, "ImageInspectError", `Failed to inspect image "img:1": deadline exceeded`)
	if !errors.Is(err, s.fail) {
		t.Errorf("the cause is lost: %v", err)
	}
	s.wantCalls(t, "inspect img:1")
	events.want(t, `web spec.containers{c} Warning InspectFailed: Failed to inspect image "img:1": deadline exceeded`)
}

// TestPulledAndGone shows that an image that cannot be looked at after it was pulled is a pull that failed, so that it is not pulled again at
// once.
func TestPulledAndGone(t *testing.T) {
	s := newStore(nil)
	s.fail = errors.New("no such image")
	p := New(s)
	_, err := p.EnsureImage(t.Context(), newPod("web"), container("img"), nil, nil)
	wantReason(t, err, "ErrImagePull", "inspect the image that was pulled: no such image")
	_, err = p.EnsureImage(t.Context(), newPod("web"), container("img"), nil, nil)
	wantReason(t, err, "ImagePullBackOff", `Back-off pulling image "img": ErrImagePull: inspect the image that was pulled: no such image`)
}

// TestBackOff tells a story of a registry that is repaired, with a worker that asks at each second (B066).
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		broken := true
		var pulls []int
		s := newStore(func(context.Context, *podmill.ImagePull) error {
			pulls = append(pulls, int(time.Since(start).Seconds()))
			if broken {
				return errors.New("connection refused")
			}
			return nil
		})
		p := New(s)
		var reasons []string
		ask := func(pod *corev1.Pod) error {
			_, err := p.EnsureImage(t.Context(), pod, container("img:1"), nil, nil)
			if r, _ := reasonOf(err); len(reasons) == 0 || reasons[len(reasons)-1] != r {
				reasons = append(reasons, r)
			}
			return err
		}
		web := newPod("web")
		for time.Since(start) < 2000*time.Second {
			_ = ask(web)
			time.Sleep(time.Second)
		}
		if diff := cmp.Diff([]int{0, 10, 30, 70, 150, 310, 610, 910, 1210, 1510, 1810}, pulls); diff != "" {
			t.Errorf("pulls (-want +got):\n%s", diff)
		}
		for i, r := range reasons {
			if want := []string{"ErrImagePull", "ImagePullBackOff"}[i%2]; r != want {
				t.Errorf("reason %d is %s", i, r)
			}
		}
		if len(reasons) != 2*len(pulls) {
			t.Errorf("%d reasons of %d pulls", len(reasons), len(pulls))
		}

		// The same pod under a new UID pulls at once.
		again := newPod("web")
		again.UID = "another"
		before := len(pulls)
		wantReason(t, ask(again), "ErrImagePull", "connection refused")
		if len(pulls) != before+1 {
			t.Error("the new pod has the old one's back-off")
		}

		broken = false
		for ask(web) != nil {
			time.Sleep(time.Second)
		}
		if took := time.Since(start) - 2000*time.Second; took > 300*time.Second {
			t.Errorf("pulled %v after the repair", took)
		}
		// What succeeded is forgotten: the next failure is a first one.
		broken = true
		always := container("img:1")
		always.ImagePullPolicy = corev1.PullAlways
		_, err := p.EnsureImage(t.Context(), web, always, nil, nil)
		wantRetryIn(t, err, 10*time.Second)
	})
}

func wantRetryIn(t *testing.T, err error, want time.Duration) {
	t.Helper()
	var retry interface{ RetryAt() time.Time }
	if !errors.As(err, &retry) {
		t.Fatalf("%v does not say when to try again", err)
	}
	if got := time.Until(retry.RetryAt()); got != want {
		t.Errorf("try again in %v, want %v", got, want)
	}
}

// TestRetryAt shows that both errors of a pull say when the next will be, that they keep the cause, and what is told of them.
func TestRetryAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("connection refused")
		events := &told{}
		p, pod := New(newStore(takes(0, refused)), WithEvents(events)), newPod("web")
		_, err := p.EnsureImage(t.Context(), pod, container("img"), nil, nil)
		wantReason(t, err, "ErrImagePull", "connection refused")
		wantRetryIn(t, err, 10*time.Second)
		if !errors.Is(err, refused) {
			t.Error("the cause is lost")
		}
		events.want(t, `web spec.containers{c} Normal Pulling: Pulling image "img"`,
			`web spec.containers{c} Warning Failed: Failed to pull image "img": connection refused`)
		time.Sleep(4 * time.Second)
		_, err = p.EnsureImage(t.Context(), pod, container("img"), nil, nil)
		wantReason(t, err, "ImagePullBackOff", `Back-off pulling image "img": ErrImagePull: connection refused`)
		wantRetryIn(t, err, 6*time.Second)
		events.want(t, `web spec.containers{c} Normal BackOff: Back-off pulling image "img"`)
	})
}

// TestObserver shows what is told of a pull.
func TestObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := errors.New("no")
		var got []string
		s := newStore(func(ctx context.Context, what *podmill.ImagePull) error {
			if what.Image == "bad:1" {
				return takes(time.Second, fail)(ctx, what)
			}
			return takes(2*time.Second, nil)(ctx, what)
		})
		p := New(s, WithMaxParallel(1), WithObserver(Observer{Pulled: func(image string, size uint64, took time.Duration, err error) {
			got = append(got, fmt.Sprint(image, " ", size, " ", took, " ", err))
		}}))
		for _, image := range []string{"img:1", "bad:1"} {
			_, _ = p.EnsureImage(t.Context(), newPod("web"), container(image), nil, nil)
		}
		if diff := cmp.Diff([]string{"img:1 42 2s <nil>", "bad:1 0 1s no"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestForWhom shows that the runtime is told for which sandbox and handler it pulls.
func TestForWhom(t *testing.T) {
	sandbox := &podmill.SandboxSpec{RuntimeHandler: "runsc"}
	s := newStore(func(_ context.Context, what *podmill.ImagePull) error {
		if what.Sandbox != sandbox || what.RuntimeHandler != "runsc" {
			t.Errorf("got %+v", what)
		}
		return nil
	})
	if _, err := New(s).EnsureImage(t.Context(), newPod("web"), container("img"), sandbox, nil); err != nil {
		t.Error(err)
	}
}
