package volume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/internal/lifecycle"
)

// Projector returns the files, by path, of a source of a projected volume that this package cannot read by itself: a token, trust bundles, a
// certificate. For a kind of source that it does not know either it returns [errors.ErrUnsupported]. It is called each time that a
// volume is brought up to date, and so returns what it gave before unless that has to be renewed.
type Projector func(ctx context.Context, pod *corev1.Pod, volume string, source *corev1.VolumeProjection) (map[string][]byte, error)

// projection puts several sources into one volume.
type projection struct {
	objects
	self
	other Projector
}

// collect reads all sources. Where two have the same path the later one wins, as in the kubelet; people are told, for it is hardly what they meant.
func (p projection) collect(ctx context.Context, m Mount) (payload, []string, error) {
	content, warnings, errs := payload{}, []string(nil), several{}
	for i := range m.Volume.Projected.Sources {
		files, err := p.source(ctx, m, &m.Volume.Projected.Sources[i])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, path := range slices.Sorted(maps.Keys(files)) {
			if _, taken := content[path]; taken {
				warnings = append(warnings, fmt.Sprintf(
					"volume %q: source %d replaces what an earlier source has at path %q", m.Volume.Name, i, path))
			}
			content[path] = files[path]
		}
	}
	return content, warnings, errs.orNil()
}

func (p projection) source(ctx context.Context, m Mount, source *corev1.VolumeProjection) (payload, error) {
	mode := modeOf(m.Volume.Projected.DefaultMode)
	switch {
	case source.ConfigMap != nil:
		return p.configMap(ctx, m.Pod, source.ConfigMap, mode)
	case source.Secret != nil:
		return p.secret(ctx, m.Pod, source.Secret, mode)
	case source.DownwardAPI != nil:
		return p.items(m.Pod, source.DownwardAPI.Items, mode)
	}
	unsupported := unsupportedError(kindOf(source) + " sources of projected volumes are not supported")
	if p.other == nil {
		return nil, unsupported
	}
	files, err := p.other(ctx, m.Pod, m.Volume.Name, source)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, unsupported
	}
	return credentials(m.Pod, files, mode), err
}

// credentials returns files for nobody but the pod. The user that all its containers run as owns them or, by the mode that follows from it,
// the pod's fsGroup may read them; where it has neither, the mode stays what the volume says, for else nobody could.
func credentials(pod *corev1.Pod, files map[string][]byte, mode int32) payload {
	uid := soleUser(pod)
	if uid != nil || fsGroup(pod) != nil {
		mode = 0o600
	}
	content := payload{}
	for path, data := range files {
		f := file(pod, data, mode)
		if uid != nil {
			f.UID = int(*uid)
		}
		content[path] = f
	}
	return content
}

// soleUser returns the user that all containers are said to run as, nil if there is no such.
func soleUser(pod *corev1.Pod) *int64 {
	var sole *int64
	for c := range lifecycle.Containers(pod) {
		var user *int64
		if s := pod.Spec.SecurityContext; s != nil {
			user = s.RunAsUser
		}
		if s := c.SecurityContext; s != nil && s.RunAsUser != nil {
			user = s.RunAsUser
		}
		if user == nil || sole != nil && *sole != *user {
			return nil
		}
		sole = user
	}
	return sole
}
