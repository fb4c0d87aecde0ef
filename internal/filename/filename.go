// Package filename tells what may name a file.
package filename

import (
	"path/filepath"
	"strings"
)

// Valid reports whether a string names something in a directory, whatever the platform, and leads nowhere else: UIDs and names come from whoever made a pod.
func Valid(s string) bool {
	return s != "." && filepath.IsLocal(s) && !strings.ContainsAny(s, `/\`)
}
