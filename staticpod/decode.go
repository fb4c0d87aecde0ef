package staticpod

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// manifest is what a file holds.
type manifest struct {
	pods       []*corev1.Pod
	configMaps []*corev1.ConfigMap
	secrets    []*corev1.Secret
}

// decoder turns bytes into objects. It is pure but for the time of a pod's first sight.
type decoder struct {
	source string // of the pods' annotations
	node   string
	strict bool

	file     string
	found    manifest
	problems []Problem
}

// decode returns what the bytes of a file hold. Unless every problem is a warning, the file must not be used.
func (d decoder) decode(file string, data []byte) (manifest, []Problem) {
	d.file = file
	data = bytes.ReplaceAll(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	if len(data) == 0 {
		d.say(1, "", "", "the file is empty; what it held before goes on, to stop that remove the file")
	}
	line := 1
	for _, text := range split(data) {
		d.document(text, line)
		line += bytes.Count(text, []byte{'\n'})
	}
	return d.found, d.problems
}

// usable reports whether a file with these problems is used.
func usable(problems []Problem) bool {
	for _, p := range problems {
		if !p.Warning {
			return false
		}
	}
	return true
}

func (d *decoder) say(line int, object, field, format string, args ...any) {
	d.problems = append(d.problems, Problem{File: d.file, Line: line, Object: object, Field: field, Message: fmt.Sprintf(format, args...)})
}

// split cuts a stream of YAML documents at the lines that begin with three dashes. Every byte is in one of the parts.
func split(data []byte) [][]byte {
	var parts [][]byte
	begin := 0
	for at := 0; at < len(data); {
		next := len(data)
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			next = at + i + 1
		}
		if at > begin && bytes.HasPrefix(data[at:], []byte("---")) {
			parts = append(parts, data[begin:at])
			begin = at
		}
		at = next
	}
	return append(parts, data[begin:])
}

// document decodes one document, whose first line is line.
func (d *decoder) document(text []byte, line int) {
	data, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		at, message := syntax(err, line)
		d.say(at, "", "", "%s", message)
		return
	}
	if bytes.Equal(data, []byte("null")) {
		return // nothing but comments
	}
	d.object(data, &source{text: text, line: line})
}

var lineOf = regexp.MustCompile(`line (\d+):? ?`) //nolint:gochecknoglobals // constant

// syntax takes the line out of a parser's message.
func syntax(err error, first int) (line int, message string) {
	message = strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	message = strings.TrimPrefix(strings.TrimPrefix(message, "yaml: "), "unmarshal errors:\n  ")
	if m := lineOf.FindStringSubmatch(message); m != nil {
		n, _ := strconv.Atoi(m[1])
		return first + n - 1, strings.Replace(message, m[0], "", 1)
	}
	return first, message
}

// object decodes an object, or each of a list.
func (d *decoder) object(data []byte, from *source) {
	var head struct {
		metav1.TypeMeta
		Metadata struct{ Name string }
	}
	if err := json.Unmarshal(data, &head); err != nil {
		d.say(from.line, "", "", "it is no Kubernetes object: %v", err)
		return
	}
	name := strings.TrimSpace(strings.ToLower(head.Kind) + " " + head.Metadata.Name)
	switch gvk := head.APIVersion + " " + head.Kind; gvk {
	case "v1 Pod":
		pod := &corev1.Pod{}
		if d.into(data, pod, name, from) {
			d.pod(pod, data, name, from)
		}
	case "v1 ConfigMap":
		m := &corev1.ConfigMap{}
		if d.into(data, m, name, from) {
			d.configMap(m, name, from)
		}
	case "v1 Secret":
		s := &corev1.Secret{}
		if d.into(data, s, name, from) {
			d.secret(s, name, from)
		}
	case "v1 List", "v1 PodList", "v1 ConfigMapList", "v1 SecretList":
		d.list(data, from)
	case " ":
		d.say(from.line, "", "", "apiVersion and kind are missing, give apiVersion: v1 and kind: Pod")
	default:
		d.say(from.line, name, "", "an agent without an API server runs v1 Pod, with ConfigMap and Secret; it cannot do anything with %s %s", head.APIVersion, head.Kind)
	}
}

func (d *decoder) list(data []byte, from *source) {
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal(data, &list); err != nil {
		d.say(from.line, "", "items", "%v", err)
		return
	}
	for i, item := range list.Items {
		d.object(item, from.item(i))
	}
}

// into decodes an object strictly, and reports whether it may be used.
func (d *decoder) into(data []byte, object any, name string, from *source) bool {
	strict, err := kjson.UnmarshalStrict(data, object)
	if err != nil {
		var wrongType *json.UnmarshalTypeError
		field := ""
		if errors.As(err, &wrongType) {
			field = wrongType.Field
		}
		d.say(from.lineOf(field), name, field, "%s", strings.TrimPrefix(err.Error(), "json: "))
		return false
	}
	for _, err := range strict {
		field, message := "", err.Error()
		var at kjson.FieldError
		if errors.As(err, &at) {
			field = at.FieldPath()
			message = strings.TrimSuffix(strings.TrimSpace(strings.Replace(message, strconv.Quote(field), "", 1)), ":")
		}
		d.problems = append(d.problems, Problem{
			File: d.file, Line: from.lineOf(field), Object: name, Field: field, Message: message + advice(field), Warning: !d.strict,
		})
	}
	return true
}
