package staticpod

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
)

// source is where in a file an object stands, to find the lines of its fields. It is asked only when something is wrong.
type source struct {
	text   []byte
	line   int // of the first line of text
	prefix string
}

func (s *source) item(i int) *source {
	return &source{text: s.text, line: s.line, prefix: fmt.Sprintf("items[%d].", i)}
}

// lineOf returns the line of a field, or of the nearest thing around it that is there.
func (s *source) lineOf(field string) int {
	var root yaml.Node
	if err := yaml.Unmarshal(s.text, &root); err != nil || len(root.Content) == 0 {
		return s.line
	}
	node := root.Content[0]
	line := node.Line
	for _, step := range steps(s.prefix + field) {
		if node = child(node, step, &line); node == nil {
			break
		}
	}
	return s.line + line - 1
}

// steps takes a path such as spec.containers[0].image apart.
func steps(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

// child returns what a step leads to, and puts the line of its key or of itself into line.
func child(node *yaml.Node, step string, line *int) *yaml.Node {
	switch node.Kind {
	case yaml.AliasNode:
		return child(node.Alias, step, line)
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i < len(node.Content) {
			*line = node.Content[i].Line
			return node.Content[i]
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				*line = node.Content[i].Line
				return node.Content[i+1]
			}
		}
	}
	return nil
}

// advice says where a field that is not known belongs, or which one was probably meant; empty if neither can be told.
func advice(field string) string {
	all := steps(field)
	if len(all) == 0 {
		return ""
	}
	name := all[len(all)-1]
	places := map[string][]string{}
	collect(reflect.TypeFor[corev1.Pod](), "", places, 0)
	if at := places[name]; len(at) > 0 {
		return fmt.Sprintf("; it belongs to %s", strings.Join(at[:min(2, len(at))], " or "))
	}
	best, distance := "", 3
	for known := range places {
		if d := edits(name, known); d < distance || d == distance && known < best {
			best, distance = known, d
		}
	}
	if best == "" || distance >= 3 {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// collect notes by name where a type has fields, down to those of a container.
func collect(t reflect.Type, at string, places map[string][]string, depth int) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || depth > 4 || !strings.HasPrefix(t.PkgPath(), "k8s.io/api") {
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous:
			collect(f.Type, at, places, depth)
		case name != "" && name != "status" && name != "managedFields":
			parent := at
			if parent == "" {
				parent = "the object itself"
			}
			if !slices.Contains(places[name], parent) {
				places[name] = append(places[name], parent)
			}
			collect(f.Type, strings.TrimPrefix(at+"."+name, "."), places, depth+1)
		}
	}
}

// edits is how many letters have to be put in, taken out or changed to make b of a.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
