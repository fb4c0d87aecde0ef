package atomicdir

import (
	"fmt"
	"strings"
)

// The limits of Linux's file systems.
const (
	maxPath = 4096
	maxName = 255
)

// validate refuses paths that lead anywhere else, or are in each other's way.
func validate(files map[string]File) error {
	for name := range files {
		if err := validatePath(name); err != nil {
			return err
		}
		for _, parent := range parents(name) {
			if _, ok := files[parent]; ok {
				return fmt.Errorf("path %q is a file and, for %q, a directory", parent, name)
			}
		}
	}
	return nil
}

func validatePath(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("a path is empty")
	case len(name) > maxPath:
		return fmt.Errorf("path %.40q... is too long: %d bytes, at most %d are allowed", name, len(name), maxPath)
	case name[0] == '/':
		return fmt.Errorf("path %q is absolute", name)
	case strings.HasPrefix(name, ".."):
		return fmt.Errorf(`path %q starts with ".."`, name)
	}
	for element := range strings.SplitSeq(name, "/") {
		switch {
		case element == "" || element == "." || element == "..":
			return fmt.Errorf("path %q has an element %q", name, element)
		case len(element) > maxName:
			return fmt.Errorf("path %.40q... has a name that is too long: %d bytes, at most %d are allowed", name, len(element), maxName)
		}
	}
	return nil
}
