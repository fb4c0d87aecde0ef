package syncpod

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// userOf returns who a container runs as, nil for the image's own user. Where the container must not run as root, it is somebody of
// whom that is proven: a numeric user of the spec or the image that every runtime reads as the same number.
func userOf(pod *corev1.Pod, c *corev1.Container, image *podmill.Image) (*podmill.User, error) {
	uid, gid, nonRoot := identity(pod, c)
	named := uid != nil
	user := &podmill.User{UID: uid, GID: gid}
	if !named {
		user.UID, user.Name = image.UID, image.Username
		if user.UID == nil && user.Name == "" {
			user.UID = new(int64) // an image that says nothing runs as root
		}
	}
	if nonRoot {
		if err := proveNonRoot(user, named); err != nil {
			return nil, err
		}
	} else if !named && gid == nil {
		return nil, nil
	}
	return user, nil
}

// identity returns what the container's security context says, or else the pod's.
func identity(pod *corev1.Pod, c *corev1.Container) (uid, gid *int64, nonRoot bool) {
	if p := pod.Spec.SecurityContext; p != nil {
		uid, gid, nonRoot = p.RunAsUser, p.RunAsGroup, p.RunAsNonRoot != nil && *p.RunAsNonRoot
	}
	s := c.SecurityContext
	if s == nil {
		return uid, gid, nonRoot
	}
	if s.RunAsUser != nil {
		uid = s.RunAsUser
	}
	if s.RunAsGroup != nil {
		gid = s.RunAsGroup
	}
	if s.RunAsNonRoot != nil {
		nonRoot = *s.RunAsNonRoot
	}
	return uid, gid, nonRoot
}

func proveNonRoot(user *podmill.User, named bool) error {
	switch {
	case user.UID == nil:
		return configError("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root", user.Name)
	case *user.UID < 0 || *user.UID > math.MaxInt32:
		// A number that does not fit is read as root by some runtimes (CVE-2024-40635).
		return configError("container has runAsNonRoot and user %d is out of range, cannot verify user is non-root", *user.UID)
	case *user.UID == 0 && named:
		return configError("container's runAsUser breaks non-root policy")
	case *user.UID == 0:
		return configError("container has runAsNonRoot and image will run as root")
	}
	return nil
}
