package syncpod

import (
	"fmt"
	"hash/fnv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// hashPrefix marks a hash as one of this package, so that a hash of another kind is never compared with it. A change of what is hashed
// changes the prefix, and no running container is restarted for that.
const hashPrefix = "v1-"

// hashOf returns a hash of what replaces a container when it changes: name and image, and nothing else. Fields that a newer API
// adds or defaults differently do not come into it.
func hashOf(c *corev1.Container) string {
	h := fnv.New64a()
	h.Write([]byte(c.Name + "\x00" + c.Image))
	return fmt.Sprintf("%s%016x", hashPrefix, h.Sum64())
}

func ourHash(hash string) bool { return strings.HasPrefix(hash, hashPrefix) }
