package volume

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/internal/lifecycle"
)

// projection puts several sources into one volume.
type projection struct {
	objects
	self
	issuers
}

// collect reads all sources. Where two have the same path the later one wins, as in the kubelet; people are told, for it is hardly what they meant.
func (p projection) collect(ctx context.Context, m Mount) (collected, error) {
	all, errs := collected{content: payload{}}, several{}
	for i := range m.Volume.Projected.Sources {
		files, renew, err := p.source(ctx, m, i)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, path := range slices.Sorted(maps.Keys(files)) {
			if _, taken := all.content[path]; taken {
				all.warnings = append(all.warnings, fmt.Sprintf(
					"volume %q: source %d replaces what an earlier source has at path %q", m.Volume.Name, i, path))
			}
			all.content[path] = files[path]
		}
		if !renew.IsZero() && (all.renew.IsZero() || renew.Before(all.renew)) {
			all.renew = renew
		}
	}
	return all, errs.orNil()
}

// source reads one source. What ends says when to renew it.
func (p projection) source(ctx context.Context, m Mount, i int) (files payload, renew time.Time, err error) {
	mode := modeOf(m.Volume.Projected.DefaultMode)
	switch source := &m.Volume.Projected.Sources[i]; {
	case source.ConfigMap != nil:
		files, err = p.configMap(ctx, m.Pod, source.ConfigMap, mode)
	case source.Secret != nil:
		files, err = p.secret(ctx, m.Pod, source.Secret, mode)
	case source.DownwardAPI != nil:
		files, err = p.items(m.Pod, source.DownwardAPI.Items, mode)
	default:
		var has credential
		has, err = p.issue(ctx, m, i)
		files, renew = credentials(m.Pod, has.Value, mode), has.Renew
	}
	return files, renew, err
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
