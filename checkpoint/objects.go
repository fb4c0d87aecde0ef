package checkpoint

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/references"
)

// Provider has the objects of pods.
type Provider interface {
	podmill.ConfigMaps
	podmill.Secrets
}

// Objects returns a provider that keeps what a kept pod refers to. What cannot be had, within the patience of [WithPatience], is what was kept, also where
// the provider refuses it now; a token may have expired, which nobody is there to mind. Kept are ConfigMaps, Secrets and, where the provider has them, [podmill.Services],
// [podmill.RuntimeClasses] and [podmill.ServiceAccountTokens]. Its other roles are found with [podmill.As], as they are.
func (c *Checkpoint) Objects(from Provider) Provider {
	var all Provider = &objects{from: from, checkpoint: c}
	if s, ok := podmill.As[podmill.Services](from); ok {
		all = &services{Provider: all, from: s, checkpoint: c}
	}
	if r, ok := podmill.As[podmill.RuntimeClasses](from); ok {
		all = &classes{Provider: all, from: r, checkpoint: c}
	}
	if t, ok := podmill.As[podmill.ServiceAccountTokens](from); ok {
		all = &tokens{Provider: all, from: t, checkpoint: c}
	}
	return all
}

type objects struct {
	from       Provider
	checkpoint *Checkpoint
}

func (o *objects) Unwrap() any { return o.from }

func (o *objects) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	ref := podmill.ObjectRef{Kind: "ConfigMap", Namespace: namespace, Name: name}
	return ask(ctx, o.checkpoint, objectKey(ref), o.checkpoint.refers(ref), func(ctx context.Context) (*corev1.ConfigMap, error) {
		return o.from.ConfigMap(ctx, namespace, name)
	})
}

func (o *objects) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	ref := podmill.ObjectRef{Kind: "Secret", Namespace: namespace, Name: name}
	return ask(ctx, o.checkpoint, objectKey(ref), o.checkpoint.refers(ref), func(ctx context.Context) (*corev1.Secret, error) {
		return o.from.Secret(ctx, namespace, name)
	})
}

type services struct {
	Provider
	from       podmill.Services
	checkpoint *Checkpoint
}

func (s *services) Unwrap() any { return s.Provider }

func (s *services) Services(ctx context.Context, namespace string) ([]*corev1.Service, error) {
	all, err := ask(ctx, s.checkpoint, servicesKey(namespace), s.checkpoint.hasPodIn(namespace), func(ctx context.Context) (*[]*corev1.Service, error) {
		services, err := s.from.Services(ctx, namespace)
		return &services, err
	})
	if err != nil {
		return nil, err
	}
	return *all, nil
}

type classes struct {
	Provider
	from       podmill.RuntimeClasses
	checkpoint *Checkpoint
}

func (r *classes) Unwrap() any { return r.Provider }

func (r *classes) RuntimeClass(ctx context.Context, name string) (*nodev1.RuntimeClass, error) {
	return ask(ctx, r.checkpoint, classKey(name), r.checkpoint.hasPodOf(name), func(ctx context.Context) (*nodev1.RuntimeClass, error) {
		return r.from.RuntimeClass(ctx, name)
	})
}

type tokens struct {
	Provider
	from       podmill.ServiceAccountTokens
	checkpoint *Checkpoint
}

func (t *tokens) Unwrap() any { return t.Provider }

func (t *tokens) ServiceAccountToken(ctx context.Context, pod *corev1.Pod, s *corev1.ServiceAccountTokenProjection) (podmill.Token, error) {
	needed := t.checkpoint.pod(pod.UID) != nil
	token, err := ask(ctx, t.checkpoint, tokensOf(pod.UID)+url.PathEscape(s.Audience), needed, func(ctx context.Context) (*podmill.Token, error) {
		token, err := t.from.ServiceAccountToken(ctx, pod, s)
		return &token, err
	})
	if err != nil {
		return podmill.Token{}, err
	}
	return *token, nil
}

// refers reports whether a pod that is kept refers to an object.
func (c *Checkpoint) refers(ref podmill.ObjectRef) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.pods {
		if k.pod.Namespace == ref.Namespace && slices.Contains(references.Of(k.pod), ref) {
			return true
		}
	}
	return false
}

func (c *Checkpoint) hasPodIn(namespace string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.pods {
		if k.pod.Namespace == namespace {
			return true
		}
	}
	return false
}

func (c *Checkpoint) hasPodOf(class string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.pods {
		if name := k.pod.Spec.RuntimeClassName; name != nil && *name == class {
			return true
		}
	}
	return false
}

// ask returns what get does and, where it is needed, keeps it. If get cannot tell, what is kept is returned.
func ask[T any](ctx context.Context, c *Checkpoint, key string, needed bool, get func(context.Context) (*T, error)) (*T, error) {
	known := new(T)
	if !c.journal.get(key, known) {
		known = nil
	}
	asking := ctx
	if known != nil {
		limited, cancel := context.WithTimeout(ctx, c.patience())
		defer cancel()
		asking = limited
	}
	got, err := get(asking)
	switch {
	case err == nil:
		c.answered(true)
		if needed {
			err = c.journal.put(key, got)
			c.settle(ctx)
		}
		return got, err
	case errors.Is(err, podmill.ErrNotFound):
		c.answered(true)
		c.journal.drop(func(k string) bool { return k == key })
		c.settle(ctx)
		return nil, err
	case ctx.Err() != nil || known == nil:
		return nil, err
	}
	c.answered(false)
	logr.FromContextOrDiscard(ctx).V(1).Info("an object cannot be had, going on with the one that is kept", "object", key, "cause", err.Error())
	return known, nil
}

// patience is how long an answer may take in whose place there is another: hardly any time where others have not come just now.
func (c *Checkpoint) patience() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.silent) {
		return min(c.opts.patience, 10*time.Millisecond)
	}
	return c.opts.patience
}

func (c *Checkpoint) answered(yes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent = time.Time{}
	if !yes {
		c.silent = time.Now().Add(silence)
	}
}
