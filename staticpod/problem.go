package staticpod

import (
	"fmt"
	"strings"
)

// Problem is something wrong with a manifest.
type Problem struct {
	File   string
	Line   int    // 0 where it is not known
	Object string // such as "pod web"; empty where it is not known
	Field  string // such as spec.containers[0].image; empty where it is no single field
	// Message says what is wrong, and what to do.
	Message string
	// Warning says that the manifest is used all the same.
	Warning bool
}

// String is file:line: object: field: message.
func (p Problem) String() string {
	where := p.File
	if p.Line > 0 {
		where = fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	parts := []string{where}
	for _, part := range []string{p.Object, p.Field, p.Message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// Error is String.
func (p Problem) Error() string { return p.String() }

// Observer is told of what a source finds. A nil func is not called; each returns at once.
type Observer struct {
	// Problem is told of each problem when it appears.
	Problem func(Problem)
}
