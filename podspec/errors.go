package podspec

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// path is where in an object something stands.
type path = *field.Path

// problems are what is wrong with an object. Each says at which field, and what would be right.
type problems struct{ list field.ErrorList }

func (e *problems) all(list field.ErrorList) { e.list = append(e.list, list...) }

func (e *problems) required(p path, cure string) { e.list = append(e.list, field.Required(p, cure)) }

func (e *problems) forbidden(p path, cure string) { e.list = append(e.list, field.Forbidden(p, cure)) }

func (e *problems) invalid(p path, value any, cure string) {
	e.list = append(e.list, field.Invalid(p, value, cure))
}

func (e *problems) duplicate(p path, value any) { e.list = append(e.list, field.Duplicate(p, value)) }

func (e *problems) notFound(p path, value any, cure string) {
	err := field.NotFound(p, value)
	err.Detail = cure
	e.list = append(e.list, err)
}

// says takes what one of apimachinery's validators says of a value.
func (e *problems) says(p path, value any, messages []string) {
	for _, message := range messages {
		e.invalid(p, value, message)
	}
}

// given checks that a text is not empty, and says so.
func (e *problems) given(p path, value, cure string) bool {
	if value == "" {
		e.required(p, cure)
	}
	return value != ""
}

// label checks the name of something that only this pod knows.
func (e *problems) label(p path, name string) bool {
	if !e.given(p, name, "give it a name, such as \"main\"") {
		return false
	}
	messages := validation.IsDNS1123Label(name)
	e.says(p, name, messages)
	return len(messages) == 0
}

// subdomain checks the name of an object.
func (e *problems) subdomain(p path, name string) {
	e.says(p, name, validation.IsDNS1123Subdomain(name))
}

// oneOf checks a word that must be one of a few.
func oneOf[T ~string](e *problems, p path, value T, words ...T) {
	if slices.Contains(words, value) {
		return
	}
	err := field.NotSupported(p, value, words)
	if value == "" {
		err = field.Required(p, err.Detail)
	}
	e.list = append(e.list, err)
}

// maybeOneOf checks a word that may be left out.
func maybeOneOf[T ~string](e *problems, p path, value *T, words ...T) {
	if value != nil {
		oneOf(e, p, *value, words...)
	}
}

// between checks a number.
func between[T ~int32 | ~int64](e *problems, p path, value T, low, high int64) {
	if int64(value) < low || int64(value) > high {
		e.invalid(p, value, fmt.Sprintf("must be between %d and %d", low, high))
	}
}

func (e *problems) notNegative(p path, value int64) {
	if value < 0 {
		e.invalid(p, value, "must be 0 or more")
	}
}

// mode checks the permissions of files in a volume.
func (e *problems) mode(p path, mode *int32) {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		e.invalid(p, *mode, "must be between 0 and 0777 (octal), in JSON 511")
	}
}

// user checks the owner of files in a volume.
func (e *problems) user(p path, uid *int64) {
	if uid != nil {
		e.says(p, *uid, validation.IsValidUserID(*uid))
	}
}

// group checks the number of a group.
func (e *problems) group(p path, gid *int64) {
	if gid != nil {
		e.says(p, *gid, validation.IsValidGroupID(*gid))
	}
}

// choice is one of several fields of which one must be set.
type choice struct {
	field string
	set   bool
	check func(path)
}

// exactlyOne checks the first choice that is set, and that there is no other.
func (e *problems) exactlyOne(p path, cure string, choices []choice) {
	chosen := ""
	for _, c := range choices {
		switch {
		case !c.set:
		case chosen == "":
			chosen = c.field
			c.check(p.Child(c.field))
		default:
			e.forbidden(p.Child(c.field), fmt.Sprintf("there is %s already: only one can be set", chosen))
		}
	}
	if chosen == "" {
		e.required(p, cure)
	}
}

// checkSet checks each choice that is set, and returns how many there are.
func checkSet(p path, choices []choice) (n int) {
	for _, c := range choices {
		if c.set {
			n++
			c.check(p.Child(c.field))
		}
	}
	return n
}

// sorted makes what is said of a map come in the same order each time.
func sorted[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
