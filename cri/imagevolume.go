package cri

import (
	"strconv"
	"strings"
)

// imageVolumes reports that a runtime mounts images (KEP-4639). No feature says so, and one that does not know the field mounts nothing in its place, or what it takes
// for a path of the host; so it is known by its version. A runtime of another name is believed to.
func (i *identity) imageVolumes() bool { return i.since([2]int{2, 1}, [2]int{1, 31}) }

// imageSubPaths reports that a runtime mounts a part of an image (KEP-4639). One that does not know the field mounts all of it.
func (i *identity) imageSubPaths() bool { return i.since([2]int{2, 2}, [2]int{1, 33}) }

// since reports that a runtime is not older than the first version of it that can do something.
func (i *identity) since(containerd, crio [2]int) bool {
	switch i.name {
	case "containerd":
		return atLeast(i.version, containerd[0], containerd[1])
	case "cri-o":
		return atLeast(i.version, crio[0], crio[1])
	}
	return true
}

// atLeast reports that a version such as v2.1.0-rc.1 or 1.6.20~ds1 is not before another. One that cannot be read is.
func atLeast(version string, major, minor int) bool {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 {
		return false
	}
	x, err := strconv.Atoi(parts[0])
	y, err2 := strconv.Atoi(parts[1])
	return err == nil && err2 == nil && (x > major || x == major && y >= minor)
}
