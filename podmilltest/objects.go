package podmilltest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// Objects holds ConfigMaps, Secrets, claims and what they are bound to, and tells of their changes.
type Objects struct {
	mu         sync.Mutex
	configMaps map[podmill.ObjectRef]*corev1.ConfigMap
	secrets    map[podmill.ObjectRef]*corev1.Secret
	claims     map[podmill.ObjectRef]*corev1.PersistentVolumeClaim
	volumes    map[podmill.ObjectRef]*corev1.PersistentVolume
	watchers   map[*func(podmill.ObjectRef)]struct{}
	reads      int
	fail       error
}

var (
	_ podmill.ConfigMaps    = (*Objects)(nil)
	_ podmill.Secrets       = (*Objects)(nil)
	_ podmill.Claims        = (*Objects)(nil)
	_ podmill.ObjectWatcher = (*Objects)(nil)
)

// NewObjects returns no objects.
func NewObjects() *Objects {
	return &Objects{
		configMaps: map[podmill.ObjectRef]*corev1.ConfigMap{},
		secrets:    map[podmill.ObjectRef]*corev1.Secret{},
		claims:     map[podmill.ObjectRef]*corev1.PersistentVolumeClaim{},
		volumes:    map[podmill.ObjectRef]*corev1.PersistentVolume{},
		watchers:   map[*func(podmill.ObjectRef)]struct{}{},
	}
}

func configMapRef(namespace, name string) podmill.ObjectRef {
	return podmill.ObjectRef{Kind: "ConfigMap", Namespace: namespace, Name: name}
}

func secretRef(namespace, name string) podmill.ObjectRef {
	return podmill.ObjectRef{Kind: "Secret", Namespace: namespace, Name: name}
}

func claimRef(namespace, name string) podmill.ObjectRef {
	return podmill.ObjectRef{Kind: "PersistentVolumeClaim", Namespace: namespace, Name: name}
}

func persistentVolumeRef(name string) podmill.ObjectRef {
	return podmill.ObjectRef{Kind: "PersistentVolume", Name: name}
}

// SetConfigMap adds or replaces a ConfigMap.
func (o *Objects) SetConfigMap(cm *corev1.ConfigMap) {
	ref := configMapRef(cm.Namespace, cm.Name)
	o.change(ref, func() { o.configMaps[ref] = cm })
}

// SetSecret adds or replaces a Secret.
func (o *Objects) SetSecret(s *corev1.Secret) {
	ref := secretRef(s.Namespace, s.Name)
	o.change(ref, func() { o.secrets[ref] = s })
}

// SetClaim adds or replaces a claim.
func (o *Objects) SetClaim(claim *corev1.PersistentVolumeClaim) {
	ref := claimRef(claim.Namespace, claim.Name)
	o.change(ref, func() { o.claims[ref] = claim })
}

// SetPersistentVolume adds or replaces a PersistentVolume.
func (o *Objects) SetPersistentVolume(pv *corev1.PersistentVolume) {
	ref := persistentVolumeRef(pv.Name)
	o.change(ref, func() { o.volumes[ref] = pv })
}

// Bind adds a claim and a PersistentVolume as they are when the claim is bound to it. Both are changed.
func (o *Objects) Bind(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
	claim.Spec.VolumeName, claim.Status.Phase = pv.Name, corev1.ClaimBound
	pv.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	o.SetPersistentVolume(pv)
	o.SetClaim(claim)
}

// Delete takes an object away.
func (o *Objects) Delete(ref podmill.ObjectRef) {
	o.change(ref, func() {
		delete(o.configMaps, ref)
		delete(o.secrets, ref)
		delete(o.claims, ref)
		delete(o.volumes, ref)
	})
}

// Fail makes every look-up return err, until it is nil again.
func (o *Objects) Fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fail = err
}

// Reads returns how many look-ups there were.
func (o *Objects) Reads() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reads
}

// change does it, and tells the watchers.
func (o *Objects) change(ref podmill.ObjectRef, do func()) {
	o.mu.Lock()
	do()
	watchers := slices.Collect(maps.Keys(o.watchers))
	o.mu.Unlock()
	for _, changed := range watchers {
		(*changed)(ref)
	}
}

// ConfigMap implements [podmill.ConfigMaps].
func (o *Objects) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return find(ctx, o, o.configMaps, configMapRef(namespace, name))
}

// Secret implements [podmill.Secrets].
func (o *Objects) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return find(ctx, o, o.secrets, secretRef(namespace, name))
}

// Claim implements [podmill.Claims].
func (o *Objects) Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return find(ctx, o, o.claims, claimRef(namespace, name))
}

// PersistentVolume implements [podmill.Claims].
func (o *Objects) PersistentVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	return find(ctx, o, o.volumes, persistentVolumeRef(name))
}

func find[T any](ctx context.Context, o *Objects, all map[podmill.ObjectRef]*T, ref podmill.ObjectRef) (*T, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reads++
	err := ctx.Err()
	if err == nil {
		err = o.fail
	}
	found := all[ref]
	if err == nil && found == nil {
		err = podmill.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s/%s: %w", ref.Kind, ref.Namespace, ref.Name, err)
	}
	return found, nil
}

// WatchObjects implements [podmill.ObjectWatcher].
func (o *Objects) WatchObjects(ctx context.Context, changed func(podmill.ObjectRef)) error {
	o.mu.Lock()
	o.watchers[&changed] = struct{}{}
	o.mu.Unlock()
	<-ctx.Done()
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.watchers, &changed)
	return ctx.Err()
}
