package staticpod

import (
	"fmt"
	"reflect"
	"strings"
)

// maxSuggest is how long a name may be for which others are looked for; the longest that there are have about 50 letters.
const maxSuggest = 64

// suggest says what somebody may have meant with a field that a type does not have: one that is spelled much alike, or one of that name
// elsewhere in the object. It is empty if nothing comes near.
func (s *schema) suggest(name string, t reflect.Type) string {
	if len(name) > maxSuggest {
		return ""
	}
	near, distance := "", len(name)/3+1
	for _, known := range sortedKeys(s.fieldsOf(t)) {
		if strings.EqualFold(known, name) {
			near, distance = known, 0
		} else if d := edits(name, known); d < distance {
			near, distance = known, d
		}
	}
	elsewhere := s.elsewhere(name)
	switch {
	case near != "" && (distance <= 1 || elsewhere == ""):
		return fmt.Sprintf("did you mean %q?", near)
	case elsewhere != "":
		return "it belongs to " + elsewhere
	}
	return ""
}

// part is a part of an object, and where it is.
type part struct {
	path string
	t    reflect.Type
}

// elsewhere returns where the object has a field of that name, as far up as there is one, and rather in containers than elsewhere.
func (s *schema) elsewhere(name string) string {
	seen := map[reflect.Type]bool{}
	for parts := []part{{"", s.root}}; len(parts) > 0; {
		best := ""
		var below []part
		for _, p := range parts {
			if _, ok := s.fieldsOf(p.t)[name]; ok && (best == "" || p.path == "spec.containers[]") {
				best = join(p.path, name)
			}
			for _, inner := range s.partsOf(p) {
				if !seen[inner.t] {
					seen[inner.t] = true
					below = append(below, inner)
				}
			}
		}
		if best != "" {
			return best
		}
		parts = below
	}
	return ""
}

// partsOf returns the parts of a part that a person may write.
func (s *schema) partsOf(p part) (parts []part) {
	fields := s.fieldsOf(p.t)
	for _, key := range sortedKeys(fields) {
		t, path := fields[key], join(p.path, key)
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			if t.Kind() == reflect.Slice {
				path += "[]"
			}
			t = t.Elem()
		}
		switch key {
		case "status", "managedFields", "ephemeralContainers":
			continue
		}
		if t.Kind() == reflect.Struct && !hasForm(t) {
			parts = append(parts, part{path, t})
		}
	}
	return parts
}

// edits is how many letters have to be put in, taken out, changed, or exchanged with the next, to make b of a.
func edits(a, b string) int {
	before, above, row := []int(nil), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, make([]int, len(b)+1)
	}
	return above[len(b)]
}
