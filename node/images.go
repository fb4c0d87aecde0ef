package node

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// The kubelet's bounds of what a Node says of images, by which a scheduler sends pods to where their images are.
const (
	maxImages     = 50
	maxImageNames = 5
)

// Images returns what a Node says of the images that it has: of the fifty largest, the largest first, up to five names each, digests before tags.
func Images(images []podmill.Image) []corev1.ContainerImage {
	images = slices.Clone(images)
	slices.SortFunc(images, func(a, b podmill.Image) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.ID, b.ID)) // as a runtime lists them in any order, and an order is no news
	})
	var said []corev1.ContainerImage
	for _, image := range images[:min(len(images), maxImages)] {
		names := slices.Concat(image.RepoDigests, image.RepoTags)
		said = append(said, corev1.ContainerImage{Names: names[:min(len(names), maxImageNames)], SizeBytes: int64(image.Size)}) //nolint:gosec // less than an exbibyte
	}
	return said
}
