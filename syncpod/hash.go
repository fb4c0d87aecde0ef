package syncpod

import (
	"encoding/binary"
	"encoding/hex"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// hashPrefix marks a hash as one of this package, so that a hash of another kind is never compared with it. A change of what is hashed
// changes the prefix, and no running container is restarted for that.
const hashPrefix = "v1-"

// hashOf returns a hash of what replaces a container when it changes: name and image, and nothing else. Fields that a newer API
// adds or defaults differently do not come into it.
//
// It is FNV-1a, by hand: every look at a pod asks for it of each container that runs.
func hashOf(c *corev1.Container) string {
	const offset, prime = 14695981039346656037, 1099511628211
	sum := uint64(offset)
	for _, s := range [...]string{c.Name, "\x00", c.Image} {
		for i := range len(s) {
			sum = (sum ^ uint64(s[i])) * prime
		}
	}
	var digits [8]byte
	binary.BigEndian.PutUint64(digits[:], sum)
	var hash [len(hashPrefix) + 2*len(digits)]byte
	hex.Encode(hash[copy(hash[:], hashPrefix):], digits[:])
	return string(hash[:])
}

func ourHash(hash string) bool { return strings.HasPrefix(hash, hashPrefix) }
