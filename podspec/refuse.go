package podspec

import (
	"fmt"
	pathpkg "path"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podmill/podmill"
)

// Refused says which fields of a pod cannot be had from an agent with these features. A field that is not set is never among them.
func Refused(pod *corev1.Pod, features podmill.Features) field.ErrorList {
	r := refusal{features: features}
	r.look(reflect.ValueOf(&pod.Spec).Elem(), field.NewPath("spec"), "")
	return r.list
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

type refusal struct {
	features podmill.Features
	list     field.ErrorList
}

func (r *refusal) look(v reflect.Value, p path, key string) {
	if feature, ok := r.of(key); ok && (feature.Refused || feature.Why != "") {
		if feature.Refused {
			r.list = append(r.list, field.Forbidden(p, feature.Why))
		}
		return
	}
	switch {
	case v.Kind() == reflect.Pointer:
		r.look(v.Elem(), p, key)
	case v.Kind() == reflect.Slice && (composed(v.Type().Elem())):
		for i := range v.Len() {
			r.look(v.Index(i), p.Index(i), key)
		}
	case composed(v.Type()):
		for i := range v.NumField() {
			f := v.Type().Field(i)
			child := p
			if name := nameOf(f); name != "" {
				child = p.Child(name)
			}
			if !unset(v.Field(i)) {
				r.look(v.Field(i), child, keyOf(key, f))
			}
		}
	default:
		r.value(v, p, key)
	}
}

// of returns what is said of a field; of an init or ephemeral container's what is said of a container's, unless something is said of it alone.
func (r *refusal) of(key string) (podmill.Feature, bool) {
	feature, ok := r.features[key]
	if like := shared(key); like != "" && !ok {
		feature, ok = r.features[like]
	}
	return feature, ok
}

// value looks at a field without others in it.
func (r *refusal) value(v reflect.Value, p path, key string) {
	if _, ok := r.of(key); !ok {
		r.list = append(r.list, field.Forbidden(p, "nothing serves it here"))
		return
	}
	if like := shared(key); like != "" {
		key = like
	}
	key += "="
	for _, value := range valuesOf(v) {
		for pattern, feature := range r.features {
			if pattern, ok := strings.CutPrefix(pattern, key); ok && feature.Refused && like(pattern, value) {
				r.list = append(r.list, field.NotSupported(p, value, []string{}))
				r.list[len(r.list)-1].Detail = feature.Why
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
