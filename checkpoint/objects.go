package checkpoint

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/references"
)

// Provider has the objects of pods. Where it is [podmill.Services] or a [podmill.ObjectWatcher] too, so are the [Objects] made of it.
type Provider interface {
	podmill.ConfigMaps
	podmill.Secrets
}

// Objects gives the objects of a [Provider], and keeps those that a kept pod refers to. One that cannot be had, within the patience of
// [WithPatience], is the one that was kept.
type Objects struct {
	from       Provider
	checkpoint *Checkpoint
}

var (
	_ podmill.ConfigMaps    = (*Objects)(nil)
	_ podmill.Secrets       = (*Objects)(nil)
	_ podmill.Services      = (*Objects)(nil)
	_ podmill.ObjectWatcher = (*Objects)(nil)
)

// Objects returns the objects of a provider, kept.
func (c *Checkpoint) Objects(from Provider) *Objects { return &Objects{from: from, checkpoint: c} }

// ConfigMap implements [podmill.ConfigMaps].
func (o *Objects) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	ref := podmill.ObjectRef{Kind: "ConfigMap", Namespace: namespace, Name: name}
	return ask(ctx, o.checkpoint, objectKey(ref), o.checkpoint.refers(ref), func(ctx context.Context) (*corev1.ConfigMap, error) {
		return o.from.ConfigMap(ctx, namespace, name)
	})
}

// Secret implements [podmill.Secrets].
func (o *Objects) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	ref := podmill.ObjectRef{Kind: "Secret", Namespace: namespace, Name: name}
	return ask(ctx, o.checkpoint, objectKey(ref), o.checkpoint.refers(ref), func(ctx context.Context) (*corev1.Secret, error) {
		return o.from.Secret(ctx, namespace, name)
	})
}

// Services implements [podmill.Services]. There are none where the provider knows none.
func (o *Objects) Services(ctx context.Context, namespace string) ([]*corev1.Service, error) {
	from, ok := o.from.(podmill.Services)
	if !ok {
		return nil, nil
	}
	all, err := ask(ctx, o.checkpoint, servicesKey(namespace), o.checkpoint.hasPodIn(namespace), func(ctx context.Context) (*[]*corev1.Service, error) {
		services, err := from.Services(ctx, namespace)
		return &services, err
	})
	if err != nil {
		return nil, err
	}
	return *all, nil
}

// WatchObjects implements [podmill.ObjectWatcher]. Nothing is told where the provider tells nothing.
func (o *Objects) WatchObjects(ctx context.Context, changed func(podmill.ObjectRef)) error {
	if from, ok := o.from.(podmill.ObjectWatcher); ok {
		return from.WatchObjects(ctx, changed)
	}
	<-ctx.Done()
	return ctx.Err()
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
