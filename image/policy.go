package image

import (
	"fmt"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
)

// name is a container's image, read.
type name struct {
	// pull is what the runtime is asked for: what the pod says, and :latest where it says no more than a repository. It stays as short
	// as it is, for the runtime to complete as it does for everyone.
	pull string
	// repository is where it comes from, complete: docker.io/library/busybox. Credentials are matched with it.
	repository string
	// moves says that what the name means changes by itself.
	moves bool
}

// parse reads the image of a container.
func parse(image string) (name, error) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return name{}, fmt.Errorf("couldn't parse image reference %q: %w", image, err)
	}
	n := name{pull: image, repository: named.Name()}
	if reference.IsNameOnly(named) {
		n.pull += ":latest"
	}
	_, digested := named.(reference.Digested)
	tagged, ok := reference.TagNameOnly(named).(reference.Tagged)
	n.moves = !digested && ok && tagged.Tag() == "latest"
	return n, nil
}

// policyOf returns the pull policy of a container: its own, or the API's default for its image.
func policyOf(container *corev1.Container, n name) corev1.PullPolicy {
	switch {
	case container.ImagePullPolicy != "":
		return container.ImagePullPolicy
	case n.moves:
		return corev1.PullAlways
	default:
		return corev1.PullIfNotPresent
	}
}
