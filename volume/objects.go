package volume

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/volume/internal/atomicdir"
)

// payload is what a volume of files holds, by path.
type payload map[string]atomicdir.File

// objects reads what pods refer to.
type objects struct {
	configMaps podmill.ConfigMaps
	secrets    podmill.Secrets
}

func (o objects) collectConfigMap(ctx context.Context, m Mount) (collected, error) {
	v := m.Volume.ConfigMap
	content, err := o.configMap(ctx, m.Pod, &corev1.ConfigMapProjection{
		LocalObjectReference: v.LocalObjectReference, Items: v.Items, Optional: v.Optional,
	}, modeOf(v.DefaultMode))
	return collected{content: content}, err
}

func (o objects) collectSecret(ctx context.Context, m Mount) (collected, error) {
	v := m.Volume.Secret
	content, err := o.secret(ctx, m.Pod, &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: v.SecretName}, Items: v.Items, Optional: v.Optional,
	}, modeOf(v.DefaultMode))
	return collected{content: content}, err
}

// configMap returns the files that a volume makes of a ConfigMap.
func (o objects) configMap(ctx context.Context, pod *corev1.Pod, s *corev1.ConfigMapProjection, mode int32) (payload, error) {
	if o.configMaps == nil {
		return nil, unsupportedError("configMap volumes are not supported: there is no source of ConfigMaps")
	}
	object, err := o.configMaps.ConfigMap(ctx, pod.Namespace, s.Name)
	if err != nil && (!is(s.Optional) || !errors.Is(err, podmill.ErrNotFound)) {
		return nil, unavailable("configmap", s.Name, err)
	}
	data := map[string][]byte{}
	if err == nil {
		for key, value := range object.BinaryData {
			data[key] = value
		}
		for key, value := range object.Data {
			data[key] = []byte(value)
		}
	}
	return choose(pod, data, s.Items, mode, is(s.Optional), "configmap references non-existent config key: ")
}

// secret returns the files that a volume makes of a Secret.
func (o objects) secret(ctx context.Context, pod *corev1.Pod, s *corev1.SecretProjection, mode int32) (payload, error) {
	if o.secrets == nil {
		return nil, unsupportedError("secret volumes are not supported: there is no source of Secrets")
	}
	object, err := o.secrets.Secret(ctx, pod.Namespace, s.Name)
	if err != nil && (!is(s.Optional) || !errors.Is(err, podmill.ErrNotFound)) {
		return nil, unavailable("secret", s.Name, err)
	}
	var data map[string][]byte
	if err == nil {
		data = object.Data
	}
	return choose(pod, data, s.Items, mode, is(s.Optional), "references non-existent secret key: ")
}

// unavailable says in the kubelet's words that there is no object of that name, and in the source's why one cannot be had.
func unavailable(kind, name string, err error) error {
	if errors.Is(err, podmill.ErrNotFound) {
		return fmt.Errorf("%s %q %w", kind, name, podmill.ErrNotFound)
	}
	return fmt.Errorf("%s %q: %w", kind, name, err)
}

// choose returns a file for each key or, where there are items, for each of them.
func choose(pod *corev1.Pod, data map[string][]byte, items []corev1.KeyToPath, mode int32, optional bool, missing string) (payload, error) {
	files := payload{}
	if len(items) == 0 {
		for key, value := range data {
			files[key] = file(pod, value, mode)
		}
		return files, nil
	}
	for _, item := range items {
		value, ok := data[item.Key]
		switch {
		case ok && item.Mode != nil:
			files[item.Path] = file(pod, value, *item.Mode)
		case ok:
			files[item.Path] = file(pod, value, mode)
		case !optional:
			return nil, errors.New(missing + item.Key)
		}
	}
	return files, nil
}

// modeOf returns the mode of files that say none of their own.
func modeOf(mode *int32) int32 {
	if mode == nil {
		return 0o644
	}
	return *mode
}

func is(b *bool) bool { return b != nil && *b }
