package podspec

import (
	"fmt"
	"maps"
	pathpkg "path"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podmill/podmill"
)

// Checker says what of a pod cannot be had from an agent. It may be used concurrently.
type Checker struct{ spec *node }

// NewChecker returns a checker of pods for an agent with these features.
func NewChecker(features podmill.Features) *Checker {
	c := compiler{features: features, values: map[string][]value{}}
	for _, key := range slices.Sorted(maps.Keys(features)) {
		if name, pattern, ok := strings.Cut(key, "="); ok && features[key].Refused {
			c.values[name] = append(c.values[name], value{pattern, features[key].Why})
		}
	}
	return &Checker{c.node(reflect.TypeFor[corev1.PodSpec](), "")}
}

// Refused says which fields of a pod cannot be had. A field that is not set is never among them.
func (c *Checker) Refused(pod *corev1.Pod) field.ErrorList {
	w := walk{}
	w.look(c.spec, reflect.ValueOf(&pod.Spec).Elem())
	return w.list
}

// Fields returns the paths of all fields of a PodSpec without others in them, as the keys of [podmill.Features] are. Those of init and ephemeral
// containers are left out where they are those of containers.
func Fields() []string {
	return fieldsOf(reflect.TypeFor[corev1.PodSpec](), "")
}

func fieldsOf(t reflect.Type, key string) (all []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if !composed(t) {
		return []string{key}
	}
	for i := range t.NumField() {
		if child := keyOf(key, t.Field(i)); shared(child) == "" || child == "ephemeralContainers" {
			all = append(all, fieldsOf(t.Field(i).Type, child)...)
		}
	}
	return all
}

// composed reports that a type has fields of its own. Quantities, times and selectors are values.
func composed(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[corev1.PodSpec]().PkgPath()
}

// keyOf returns the key of a field of what has the key parent. What is inlined has that of its parent.
func keyOf(parent string, f reflect.StructField) string {
	switch name := nameOf(f); {
	case name == "":
		return parent
	case parent == "":
		return name
	default:
		return parent + "." + name
	}
}

// shared returns the key of the field of a container that this one of an init or ephemeral container is like; empty if it is of neither.
func shared(key string) string {
	list, rest, _ := strings.Cut(key, ".")
	if list != "initContainers" && list != "ephemeralContainers" || rest == "targetContainerName" {
		return ""
	}
	return strings.TrimSuffix("containers."+rest, ".")
}

func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// node is what is said of a field. It is looked up once, not for every pod.
type node struct {
	refused  bool // with all that is in it
	why      string
	accepted bool // there is nothing to refuse in it, whatever it is
	composed bool // it has fields of its own, or its items have
	fields   []child
	said     bool // that a field without others in it is served
	values   []value
}

// child is a field in another one.
type child struct {
	index int
	name  string // empty if it is inlined
	*node
}

// value is a value that a field is not served with.
type value struct{ pattern, why string }

type compiler struct {
	features podmill.Features
	values   map[string][]value // that are refused, by the field's key
}

// node returns what is said of a field of type t with the key; of an init or ephemeral container's what is said of a container's, unless something is
// said of it alone.
func (c compiler) node(t reflect.Type, key string) *node {
	feature, said := c.features[key]
	like := shared(key)
	if like != "" && !said {
		feature, said = c.features[like]
	}
	switch {
	case said && feature.Refused:
		return &node{refused: true, why: feature.Why}
	case said && feature.Why != "":
		return &node{accepted: true}
	}
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	n := &node{composed: composed(t), said: said}
	if n.composed {
		for i := range t.NumField() {
			f := t.Field(i)
			if in := c.node(f.Type, keyOf(key, f)); !in.accepted { // else no pod has to be asked for it
				n.fields = append(n.fields, child{i, nameOf(f), in})
			}
		}
		n.accepted = len(n.fields) == 0
		return n
	}
	if like != "" {
		key = like
	}
	n.values = c.values[key]
	n.accepted = said && len(n.values) == 0
	return n
}

// walk goes through a pod. Where it is, is made a path only where there is something to say.
type walk struct {
	steps []step
	list  field.ErrorList
}

type step struct {
	name  string // empty for an item of a list
	index int
}

func (w *walk) path() path {
	p := field.NewPath("spec")
	for _, s := range w.steps {
		if s.name == "" {
			p = p.Index(s.index)
		} else {
			p = p.Child(s.name)
		}
	}
	return p
}

// into looks at what is one step further.
func (w *walk) into(s step, n *node, v reflect.Value) {
	w.steps = append(w.steps, s)
	w.look(n, v)
	w.steps = w.steps[:len(w.steps)-1]
}

func (w *walk) look(n *node, v reflect.Value) {
	switch {
	case n.accepted:
	case n.refused:
		w.list = append(w.list, field.Forbidden(w.path(), n.why))
	case v.Kind() == reflect.Pointer:
		w.look(n, v.Elem())
	case n.composed && v.Kind() == reflect.Slice:
		for i := range v.Len() {
			w.into(step{index: i}, n, v.Index(i))
		}
	case n.composed:
		for _, c := range n.fields {
			switch f := v.Field(c.index); {
			case unset(f):
			case c.name == "":
				w.look(c.node, f)
			default:
				w.into(step{name: c.name}, c.node, f)
			}
		}
	case !n.said:
		w.list = append(w.list, field.Forbidden(w.path(), "nothing serves it here"))
	case len(n.values) > 0:
		w.value(n, v)
	}
}

// value looks at what a field is set to that is not served with every value.
func (w *walk) value(n *node, v reflect.Value) {
	for _, text := range valuesOf(v) {
		for _, value := range n.values {
			if like(value.pattern, text) {
				err := field.NotSupported(w.path(), text, []string{})
				err.Detail = value.why
				w.list = append(w.list, err)
			}
		}
	}
}

// valuesOf returns what a field holds as text: of a map its keys, of a list its items.
func valuesOf(v reflect.Value) (all []string) {
	switch v.Kind() {
	case reflect.Map:
		for _, key := range v.MapKeys() {
			all = append(all, fmt.Sprint(key))
		}
		slices.Sort(all)
	case reflect.Slice:
		for i := range v.Len() {
			all = append(all, fmt.Sprint(v.Index(i)))
		}
	default:
		all = append(all, fmt.Sprint(v))
	}
	return all
}

func like(pattern, value string) bool {
	ok, err := pathpkg.Match(pattern, value)
	return ok && err == nil
}

func unset(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}
