package image

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is an image store that pulls as its func says and notes its calls.
type store struct {
	pull func(ctx context.Context, what *podmill.ImagePull) error

	mu    sync.Mutex
	calls []string
	here  map[string]*podmill.Image
	fail  error // of InspectImage
}

func newStore(pull func(context.Context, *podmill.ImagePull) error, here ...string) *store {
	s := &store{pull: pull, here: map[string]*podmill.Image{}}
	for _, image := range here {
		s.add(image)
	}
	return s
}

func (s *store) add(image string) string {
	id := "sha256:" + image
	s.here[image] = &podmill.Image{ID: id, RepoTags: []string{image}, Size: 42}
	s.here[id] = s.here[image]
	return id
}

func (s *store) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

func (s *store) PullImage(ctx context.Context, what *podmill.ImagePull) (string, error) {
	who := "nobody"
	if what.Auth != nil {
		who = what.Auth.Username
	}
	s.note("pull %s as %s", what.Image, who)
	if s.pull != nil {
		if err := s.pull(ctx, what); err != nil {
			return "", err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(what.Image), nil
}

func (s *store) InspectImage(_ context.Context, image string) (*podmill.Image, error) {
	s.note("inspect %s", image)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return nil, s.fail
	}
	if i := s.here[image]; i != nil {
		return i, nil
	}
	return nil, fmt.Errorf("image %s: %w", image, podmill.ErrNotFound)
}

func (s *store) wantCalls(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if diff := cmp.Diff(want, s.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// takes is a pull that takes a time, and ends as err says.
func takes(d time.Duration, err error) func(context.Context, *podmill.ImagePull) error {
	return func(ctx context.Context, _ *podmill.ImagePull) error {
		select {
		case <-time.After(d):
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// told notes events.
type told struct {
	mu    sync.Mutex
	lines []string
}

func (r *told) Event(about corev1.ObjectReference, eventType, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	where := about.Name
	if about.FieldPath != "" {
		where += " " + about.FieldPath
	}
	r.lines = append(r.lines, fmt.Sprintf("%s %s %s: %s", where, eventType, reason, message))
}

func (r *told) want(t *testing.T, want ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if diff := cmp.Diff(want, r.lines); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	r.lines = nil
}

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name + "-uid")}}
}

func container(image string) *corev1.Container { return &corev1.Container{Name: "c", Image: image} }

// reasonOf returns the reason and the message of an error.
func reasonOf(err error) (string, string) {
	var r *podmill.ReasonError
	if errors.As(err, &r) {
		return r.Reason, r.Message
	}
	return "", fmt.Sprint(err)
}

func wantReason(t *testing.T, err error, reason, message string) {
	t.Helper()
	if r, m := reasonOf(err); r != reason || m != message {
		t.Errorf("got %q, %q\nwant %q, %q", r, m, reason, message)
	}
}
