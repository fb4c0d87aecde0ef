package podspecdiff

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestEachPlace changes one thing after the other in pods that are valid: every text, number, list and map, to everything that may be
// wrong with it.
func TestEachPlace(t *testing.T) {
	f := newForm()
	for name, pod := range read(t) {
		t.Run(name, func(t *testing.T) {
			valid, all := 0, 0
			for place := 0; ; place++ {
				variants := variantsOf(pod, place)
				if variants == 0 {
					break
				}
				for variant := range variants {
					changed := pod.DeepCopy()
					set := at(changed, place)
					set(variant)
					all++
					if f.check(t, changed) {
						valid++
					}
					if f.checkBare(t, changed); t.Failed() {
						t.Fatalf("place %d, variant %d", place, variant)
					}
				}
			}
			t.Logf("%d changes, %d of them valid", all, valid)
			if valid == 0 || valid == all {
				t.Errorf("%d of %d are valid", valid, all)
			}
		})
	}
}

func variantsOf(pod *corev1.Pod, place int) (n int) {
	walk(reflect.ValueOf(&pod.Spec).Elem(), func(v reflect.Value) bool {
		place--
		if place < 0 {
			n, _ = variants(v)
		}
		return place < 0
	})
	return n
}

// at returns what sets a place of a pod to its nth variant.
func at(pod *corev1.Pod, place int) (set func(variant int)) {
	walk(reflect.ValueOf(&pod.Spec).Elem(), func(v reflect.Value) bool {
		place--
		if place < 0 {
			_, set = variants(v)
		}
		return place < 0
	})
	return set
}

// walk visits every value below v that is not empty, or a text, until visit returns true.
func walk(v reflect.Value, visit func(reflect.Value) bool) (done bool) {
	if n, _ := variants(v); n > 0 && visit(v) {
		return true
	}
	switch v.Addr().Interface().(type) {
	case *resource.Quantity, *intstr.IntOrString:
		return false
	}
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && walk(v.Elem(), visit)
	case reflect.Slice:
		for i := range v.Len() {
			if walk(v.Index(i), visit) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !skip(f.Name) && walk(v.Field(i), visit) {
				return true
			}
		}
	}
	return false
}

// badWords are texts that are wrong somewhere.
var badWords = []string{
	"", "a", "UPPER", "a_b", "..", "../a", "..a", "/abs", "a/b", "example.com/a", "a.kubernetes.io/x", " a", "\x01", ":a", "a:b",
	strings.Repeat("a", 66), strings.Repeat("a", 300), strings.Repeat("a", 5000),
}

// variants returns what a value can be changed to.
func variants(v reflect.Value) (n int, set func(int)) {
	switch x := v.Addr().Interface().(type) {
	case *resource.Quantity:
		return len(quantities), func(i int) { *x = resource.MustParse(quantities[i]) }
	case *intstr.IntOrString:
		list := []intstr.IntOrString{intstr.FromInt32(0), intstr.FromInt32(70000), intstr.FromString(""), intstr.FromString("-a"), intstr.FromString("http")}
		return len(list), func(i int) { *x = list[i] }
	}
	switch v.Kind() {
	case reflect.String:
		list := enums[v.Type()]
		return len(list) + len(badWords), func(i int) {
			if i < len(list) {
				v.SetString(list[i])
			} else {
				v.SetString(badWords[i-len(list)])
			}
		}
	case reflect.Bool:
		return 2, func(i int) { v.SetBool(i == 0) }
	case reflect.Int32, reflect.Int64:
		return len(integers), func(i int) { v.SetInt(integers[i]) }
	case reflect.Pointer:
		if v.IsNil() {
			return 0, nil
		}
		return 2, func(i int) {
			v.SetZero()
			if i == 1 { // there, but empty
				v.Set(reflect.New(v.Type().Elem()))
			}
		}
	case reflect.Slice:
		if v.Len() == 0 {
			return 0, nil
		}
		lengths := []int{0, 1, 2, 300}
		return len(lengths), func(i int) {
			first := v.Index(0)
			v.SetLen(0)
			for range lengths[i] {
				v.Set(reflect.Append(v, first))
			}
		}
	case reflect.Map:
		list := keys
		if v.Type() == reflect.TypeFor[corev1.ResourceList]() {
			list = resourceNames
		}
		return len(list) + 1, func(i int) {
			value := reflect.New(v.Type().Elem()).Elem()
			if q, ok := value.Addr().Interface().(*resource.Quantity); ok {
				*q = resource.MustParse("2")
			}
			v.Set(reflect.MakeMap(v.Type()))
			if i < len(list) {
				v.SetMapIndex(reflect.ValueOf(list[i]).Convert(v.Type().Key()), value)
			}
		}
	}
	return 0, nil
}
