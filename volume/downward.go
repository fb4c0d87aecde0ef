package volume

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/internal/downward"
)

// self makes files of what a pod may know of itself.
type self struct {
	allocatable func() corev1.ResourceList
}

func (s self) collect(_ context.Context, m Mount) (collected, error) {
	content, err := s.items(m.Pod, m.Volume.DownwardAPI.Items, modeOf(m.Volume.DownwardAPI.DefaultMode))
	return collected{content: content}, err
}

func (s self) items(pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile, mode int32) (payload, error) {
	content, errs := payload{}, several{}
	for i := range items {
		item, itemMode := &items[i], mode
		if item.Mode != nil {
			itemMode = *item.Mode
		}
		value, err := s.value(pod, item)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		content[item.Path] = file(pod, []byte(value), itemMode)
	}
	return content, errs.orNil()
}

func (s self) value(pod *corev1.Pod, item *corev1.DownwardAPIVolumeFile) (string, error) {
	switch {
	case item.FieldRef != nil:
		return field(pod, item.FieldRef.FieldPath)
	case item.ResourceFieldRef != nil:
		return downward.Resource(pod, "", item.ResourceFieldRef, s.allocatable())
	default:
		return "", fmt.Errorf("item %q has neither a fieldRef nor a resourceFieldRef", item.Path)
	}
}

func field(pod *corev1.Pod, path string) (string, error) {
	switch path {
	case "metadata.labels":
		return lines(pod.Labels), nil
	case "metadata.annotations":
		return lines(pod.Annotations), nil
	}
	if value, ok := downward.Metadata(pod, path); ok {
		return value, nil
	}
	return "", fmt.Errorf("fieldRef %q is not supported", path)
}

// lines returns key="value" for each entry, in the order of keys, as the kubelet writes them.
func lines(m map[string]string) string {
	all := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf("%s=%q", key, m[key]))
	}
	return strings.Join(all, "\n")
}
