package staticpod

import (
	"fmt"
	"strings"

	"github.com/go-logr/logr"
)

// Problem is something wrong with a manifest.
type Problem struct {
	// File is the file's name, or the URL.
	File string
	// Line is 0 where it is not known.
	Line int
	// Object is such as "pod web", and empty where it is not known.
	Object string
	// Field is such as spec.containers[0].image, and empty where it is no single field.
	Field string
	// Message says what is wrong.
	Message string
	// Cure says what to do, where it is not clear from that.
	Cure string
	// Warning says that the manifest is used all the same.
	Warning bool
}

// String returns all of it in a line, such as
//
//	web.yaml:12: pod web: spec.containers[0].comand: unknown field (did you mean "command"?)
func (p Problem) String() string {
	where := p.File
	if p.Line > 0 {
		where = fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	var parts []string
	for _, part := range []string{where, p.Object, p.Field, p.Message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	text := strings.Join(parts, ": ")
	if p.Cure != "" {
		text += " (" + p.Cure + ")"
	}
	return text
}

// Observer is told of what a source finds. A func that is nil is not called; those that are return at once.
type Observer struct {
	// Problem is told of each problem, when it appears.
	Problem func(Problem)
}

// teller tells of each problem once, when it appears, however often it is found again.
type teller struct {
	observer Observer
	told     map[Problem]bool
}

func (t *teller) tell(log logr.Logger, problems []Problem) {
	now := make(map[Problem]bool, len(problems))
	for _, p := range problems {
		known := t.told[p] || now[p]
		now[p] = true
		if known {
			continue
		}
		if p.Warning {
			log.Info("manifest to look at: " + p.String())
		} else {
			log.Error(nil, "manifest not used, what it held before goes on: "+p.String())
		}
		if t.observer.Problem != nil {
			t.observer.Problem(p)
		}
	}
	t.told = now
}
