//go:build !linux

package cgroup

import (
	"errors"
	"fmt"
)

func newHierarchy(Driver) (hierarchy, error) {
	return nil, fmt.Errorf("cgroups are part of Linux: %w", errors.ErrUnsupported)
}
