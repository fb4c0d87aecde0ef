package syncpod

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// withImages brings the images that a container mounts as volumes (KEP-4639), by the same rules and with the same credentials as its own, and returns its volumes with
// them. What keeps one from being here is the reason for which the container waits, such as ImagePullBackOff.
func (u *bringingUp) withImages(ctx context.Context, c *corev1.Container) (map[string]podmill.Volume, error) {
	volumes := map[string]podmill.Volume{}
	maps.Copy(volumes, u.volumes) // they are shared with the containers that start beside this one
	for i := range u.pod.Spec.Volumes {
		v := &u.pod.Spec.Volumes[i]
		if v.Image == nil || !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name }) {
			continue
		}
		var image *podmill.Image
		err := u.step(u.pod, "image volume", c.Name, func() (err error) {
			asked := &corev1.Container{Name: c.Name, Image: v.Image.Reference, ImagePullPolicy: v.Image.PullPolicy}
			image, err = u.Images.EnsureImage(ctx, u.pod, asked, u.spec, u.auths)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("image of volume %q: %w", v.Name, err)
		}
		volumes[v.Name] = podmill.Volume{Image: image.ID, ReadOnly: true}
	}
	return volumes, nil
}
