package image

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/podmill/podmill"
)

// Store is what a [Puller] asks of a runtime.
type Store interface {
	PullImage(ctx context.Context, pull *podmill.ImagePull) (image string, err error)
	InspectImage(ctx context.Context, image string) (*podmill.Image, error)
}

// Puller makes sure that images are here.
type Puller struct {
	store   Store
	opts    options
	shared  shared
	backOff backOff
}

// New returns a puller of images into a store.
func New(store Store, opts ...Option) *Puller {
	p := &Puller{store: store, shared: shared{pulls: map[pullID]*sharedPull{}}, backOff: backOff{failures: map[pullKey]failure{}}}
	for _, opt := range opts {
		opt(&p.opts)
	}
	return p
}

// EnsureImage returns the image of a container of a pod, pulled where the pull policy and what is here say so. The image is shared: only read it.
// sandbox, which may be nil, tells the runtime for whom it is, and auths are those of [Puller.PullSecrets].
//
// The error is ctx's or a [podmill.ReasonError] with the kubelet's reason: InvalidImageName, ImageInspectError, ErrImageNeverPull,
// ErrImagePull or ImagePullBackOff. The last two have a method RetryAt() time.Time, found with [errors.As]: before that time,
// another call only says ImagePullBackOff.
func (p *Puller) EnsureImage(
	ctx context.Context, pod *corev1.Pod, container *corev1.Container, sandbox *podmill.SandboxSpec, auths []podmill.ImageAuth,
) (*podmill.Image, error) {
	r := request{p: p, pod: podmill.RefOf(pod), about: podmill.ReferenceTo(pod, container.Name), image: container.Image}
	n, err := parse(container.Image)
	if err != nil {
		return nil, r.fail("InvalidImageName", "InspectFailed", fmt.Sprintf("Failed to apply default image tag %q: %v", r.image, err), err)
	}
	policy := policyOf(container, n)
	if policy != corev1.PullAlways {
		image, err := p.store.InspectImage(ctx, n.pull)
		switch {
		case err == nil:
			r.event(corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Container image %q already present on machine", r.image))
			return image, nil
		case ctx.Err() != nil:
			return nil, r.over(ctx.Err())
		case !errors.Is(err, podmill.ErrNotFound):
			return nil, r.fail("ImageInspectError", "InspectFailed", fmt.Sprintf("Failed to inspect image %q: %v", r.image, err), err)
		case policy == corev1.PullNever:
			const reason = "ErrImageNeverPull"
			return nil, r.fail(reason, reason, fmt.Sprintf("Container image %q is not present with pull policy of Never", r.image), nil)
		}
	}
	return r.pull(ctx, n, sandbox, match(auths, n.repository))
}

// request is one call of EnsureImage.
type request struct {
	p     *Puller
	pod   podmill.PodRef
	about corev1.ObjectReference
	image string // as the pod has it
}

// pull pulls, unless the last failure is too recent.
func (r *request) pull(ctx context.Context, n name, sandbox *podmill.SandboxSpec, auths []podmill.ImageAuth) (*podmill.Image, error) {
	key, began := pullKey{r.pod.UID, r.image}, time.Now()
	if last, ok := r.p.backOff.waiting(key, began); ok {
		message := fmt.Sprintf("Back-off pulling image %q", r.image)
		r.event(corev1.EventTypeNormal, "BackOff", message)
		return nil, &podmill.ReasonError{
			Reason: "ImagePullBackOff", Message: message + ": ErrImagePull: " + last.message, Err: &retryError{at: last.until()},
		}
	}
	r.event(corev1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", r.image))
	what := podmill.ImagePull{Image: n.pull, Sandbox: sandbox}
	if sandbox != nil {
		what.RuntimeHandler = sandbox.RuntimeHandler
	}
	got, err := r.p.shared.do(ctx, pullID{n.pull, what.RuntimeHandler, hashOf(auths)}, func(ctx context.Context) outcome {
		return r.p.fetch(ctx, what, auths)
	})
	if err != nil {
		return nil, r.over(err)
	}
	if got.err != nil {
		r.event(corev1.EventTypeWarning, "Failed", fmt.Sprintf("Failed to pull image %q: %v", r.image, got.err))
		f := r.p.backOff.failed(key, began, time.Now(), got.err.Error())
		return nil, &podmill.ReasonError{Reason: "ErrImagePull", Message: got.err.Error(), Err: &retryError{at: f.until(), err: got.err}}
	}
	r.p.backOff.succeeded(key)
	r.event(corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Successfully pulled image %q in %v (%v including waiting). Image size: %d bytes.",
		r.image, got.took.Truncate(time.Millisecond), time.Since(began).Truncate(time.Millisecond), got.image.Size))
	return got.image, nil
}

// fetch waits for its turn, and pulls.
func (p *Puller) fetch(ctx context.Context, what podmill.ImagePull, auths []podmill.ImageAuth) outcome {
	if p.opts.slots != nil {
		select {
		case p.opts.slots <- struct{}{}:
			defer func() { <-p.opts.slots }()
		case <-ctx.Done():
			return outcome{err: ctx.Err()}
		}
	}
	start := time.Now()
	image, err := p.try(ctx, what, auths)
	o := outcome{image: image, took: time.Since(start), err: err}
	var size uint64
	if err == nil {
		size = image.Size
	}
	p.opts.observer.pulled(what.Image, size, o.took, err)
	return o
}

// try pulls with one credential after another and at last without any, and looks at what came.
func (p *Puller) try(ctx context.Context, what podmill.ImagePull, auths []podmill.ImageAuth) (*podmill.Image, error) {
	log := logr.FromContextOrDiscard(ctx).V(1)
	var errs []error
	for i := range len(auths) + 1 {
		what := what
		if i < len(auths) {
			what.Auth = &auths[i]
		}
		id, err := p.store.PullImage(ctx, &what)
		// Who pulls is not said: with some registries the user name is the secret.
		log.Info("pulled image", "image", what.Image, "credentials", what.Auth != nil, "id", id, "err", err)
		if err == nil {
			image, err := p.store.InspectImage(ctx, id)
			if err != nil {
				return nil, fmt.Errorf("inspect the image that was pulled: %w", err)
			}
			return image, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	if len(errs) == 1 {
		return nil, errs[0]
	}
	return nil, utilerrors.NewAggregate(errs) // says once what several say
}

// fail tells people what is wrong and returns it. Reasons of events are fewer than those of errors.
func (r *request) fail(reason, eventReason, message string, err error) error {
	r.event(corev1.EventTypeWarning, eventReason, message)
	return &podmill.ReasonError{Reason: reason, Message: message, Err: err}
}

// over says that nobody waits for the image any more, which is nobody's failure.
func (r *request) over(err error) error {
	return fmt.Errorf("get image %q for pod %s: %w", r.image, r.pod, err)
}

func (r *request) event(eventType, reason, message string) {
	r.p.event(r.about, eventType, reason, message)
}

func (p *Puller) event(about corev1.ObjectReference, eventType, reason, message string) {
	if p.opts.events != nil {
		p.opts.events.Event(about, eventType, reason, message)
	}
}
