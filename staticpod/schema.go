package staticpod

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// schema holds values to a type of the API, before they are decoded: the decoder would stop at the first mistake, or pass over it.
type schema struct {
	root   reflect.Type
	fields map[reflect.Type]map[string]reflect.Type
	found  []mistake
}

// mistake is a value that the type does not have, or not so.
type mistake struct {
	field, message, cure string
	unknown              bool // the decoder passes over it
}

// mistakes returns what is wrong with a value that should be of that type.
func mistakes(value any, root reflect.Type) []mistake {
	s := &schema{root: root, fields: map[reflect.Type]map[string]reflect.Type{}}
	s.check(value, root, "")
	return s.found
}

func (s *schema) wrong(field, message, cure string) {
	s.found = append(s.found, mistake{field: field, message: message, cure: cure})
}

func (s *schema) check(value any, t reflect.Type, field string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if value == nil {
		return
	}
	if hasForm(t) {
		s.scalar(value, t, field)
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		s.object(value, t, field)
	case reflect.Map:
		m, ok := value.(map[string]any)
		if !ok {
			s.wrong(field, "is "+kindOf(value), "give a map, such as {name: value}")
			return
		}
		for _, key := range sortedKeys(m) {
			s.check(m[key], t.Elem(), join(field, key))
		}
	case reflect.Slice:
		s.list(value, t, field)
	case reflect.String:
		if _, ok := value.(string); !ok {
			s.wrong(field, "is "+kindOf(value)+", not a text", quotes(value))
		}
	case reflect.Bool:
		if _, ok := value.(bool); !ok {
			s.wrong(field, "is "+kindOf(value), "give true or false, without quotes")
		}
	case reflect.Int32, reflect.Int64:
		s.integer(value, t, field)
	}
}

func (s *schema) object(value any, t reflect.Type, field string) {
	m, ok := value.(map[string]any)
	if !ok {
		s.wrong(field, "is "+kindOf(value), "give a map with any of "+strings.Join(sortedKeys(s.fieldsOf(t)), ", "))
		return
	}
	fields := s.fieldsOf(t)
	for _, key := range sortedKeys(m) {
		if of, known := fields[key]; known {
			s.check(m[key], of, join(field, key))
			continue
		}
		s.found = append(s.found, mistake{field: join(field, key), message: "unknown field", cure: s.suggest(key, t), unknown: true})
	}
}

func (s *schema) list(value any, t reflect.Type, field string) {
	if t.Elem().Kind() == reflect.Uint8 {
		text, ok := value.(string)
		if !ok {
			s.wrong(field, "is "+kindOf(value)+", not a text", "give it in base64")
		} else if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			s.wrong(field, "is no base64", "encode it, or in a Secret put it under stringData as it is")
		}
		return
	}
	list, ok := value.([]any)
	if !ok {
		s.wrong(field, "is "+kindOf(value), "give a list: put a dash before each element")
		return
	}
	for i, item := range list {
		s.check(item, t.Elem(), fmt.Sprintf("%s[%d]", field, i))
	}
}

func (s *schema) integer(value any, t reflect.Type, field string) {
	number, ok := value.(json.Number)
	if !ok {
		s.wrong(field, "is "+kindOf(value), "give a whole number, without quotes")
		return
	}
	n, err := strconv.ParseInt(number.String(), 10, 64)
	if err != nil || t.Kind() == reflect.Int32 && (n < math.MinInt32 || n > math.MaxInt32) {
		s.wrong(field, "is "+number.String(), "give a whole number, of "+t.Kind().String()[3:]+" bits")
	}
}

// scalar checks a value that has a form of its own.
func (s *schema) scalar(value any, t reflect.Type, field string) {
	data, err := json.Marshal(value)
	if err == nil {
		unmarshaler, ok := reflect.New(t).Interface().(json.Unmarshaler)
		if !ok {
			return
		}
		err = unmarshaler.UnmarshalJSON(data)
	}
	if err == nil {
		return
	}
	cure := ""
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		cure = "give a quantity, such as 100m, 0.5 or 1Gi"
	case reflect.TypeFor[intstr.IntOrString]():
		cure = "give a number or a name"
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		cure = "give a time, such as 2026-01-02T15:04:05Z"
	}
	shown := string(data)
	if len(shown) > 40 {
		shown = kindOf(value)
	}
	s.wrong(field, "is "+shown, cure)
}

// hasForm says whether values of a type have a form of their own, such as quantities.
func hasForm(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// fieldsOf returns the fields of a type by their names in JSON, those of inlined types among them.
func (s *schema) fieldsOf(t reflect.Type) map[string]reflect.Type {
	if fields, ok := s.fields[t]; ok {
		return fields
	}
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous:
			for inner, of := range s.fieldsOf(f.Type) {
				fields[inner] = of
			}
		case name != "" && name != "-":
			fields[name] = f.Type
		}
	}
	s.fields[t] = fields
	return fields
}

// kindOf names what a value is. It does not show it: it may be a secret.
func kindOf(value any) string {
	switch value.(type) {
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case json.Number:
		return "a number"
	case bool:
		return "a boolean"
	default:
		return "a text"
	}
}

func quotes(value any) string {
	switch value.(type) {
	case json.Number, bool:
		return "put it in quotes"
	default:
		return ""
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
