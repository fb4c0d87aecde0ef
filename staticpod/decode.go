package staticpod

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podmill/podmill/podspec"
)

// origin is where manifests come from, and for which node.
type origin struct {
	source   string // "file" or "http"
	location string // the directory or the URL
	node     string
	strict   bool
	check    func(pod *corev1.Pod) field.ErrorList
}

// content is what a file holds.
type content struct {
	pods       []*corev1.Pod
	configMaps []*corev1.ConfigMap
	secrets    []*corev1.Secret
	classes    []*nodev1.RuntimeClass
}

// decoder makes objects of a file.
type decoder struct {
	origin
	now      time.Time
	file     string
	content  content
	problems []Problem
}

// decode returns what a file holds and what is wrong with it. Unless all that is wrong are warnings, the file is not to be used.
func (o origin) decode(file string, data []byte, now time.Time) (content, []Problem) {
	d := &decoder{origin: o, now: now, file: file}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(bytes.TrimSpace(data)) == 0 { // the disk is full, or somebody is about to write it
		d.say(Problem{Message: "is empty", Cure: "remove it if nothing of it is wanted"})
	}
	for _, chunk := range split(data) {
		doc, wrong := chunk.parse()
		switch {
		case wrong != nil:
			d.say(Problem{Line: wrong.line, Message: wrong.message, Cure: wrong.cure})
		case doc != nil:
			d.object(doc.value, doc.place)
		}
	}
	if more := len(d.problems) - maxProblems; more > 0 {
		d.problems = append(d.problems[:maxProblems:maxProblems], Problem{
			File: file, Message: fmt.Sprintf("there are %d problems more", more), Warning: usable(d.problems),
		})
	}
	return d.content, d.problems
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

func (d *decoder) say(p Problem) {
	p.File = d.file
	d.problems = append(d.problems, p)
}

// object takes an object, or all that a list has.
func (d *decoder) object(value map[string]any, at *place) {
	version, _ := value["apiVersion"].(string)
	kind, _ := value["kind"].(string)
	meta, _ := value["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	o := &object{decoder: d, value: value, place: at, name: strings.TrimSpace(strings.ToLower(kind) + " " + name)}
	switch version + " " + kind {
	case "v1 Pod":
		o.pod()
	case "v1 ConfigMap", "v1 Secret", "node.k8s.io/v1 RuntimeClass":
		switch {
		case d.source == sourceHTTP: // there is nobody to give it to
			d.say(Problem{Line: at.line, Object: o.name, Message: "is not used", Cure: "put it into a directory of manifests", Warning: true})
		case kind == "Secret":
			o.secret()
		case kind == "RuntimeClass":
			o.runtimeClass()
		default:
			o.configMap()
		}
	case "v1 List", "v1 PodList", "v1 ConfigMapList", "v1 SecretList":
		o.list(strings.TrimSuffix(kind, "List"))
	case " ":
		d.say(Problem{Line: at.line, Message: "has no apiVersion and kind", Cure: "give apiVersion: v1 and kind: Pod"})
	default:
		d.say(Problem{
			Line: at.line, Object: o.name, Message: fmt.Sprintf("%q of %q is not known here", kind, version),
			Cure: "v1 Pod, ConfigMap, Secret and List and node.k8s.io/v1 RuntimeClass are; the rest needs an API server", Warning: !d.strict,
		})
	}
}

// object is an object that is being decoded.
type object struct {
	*decoder
	name  string // such as "pod web"
	value map[string]any
	place *place
}

// list takes the elements of a list. They need not say what they are where the list does.
func (o *object) list(kind string) {
	items, ok := o.value["items"].([]any)
	if !ok && o.value["items"] != nil {
		o.say(Problem{Line: o.place.find("items").line, Object: o.name, Field: "items", Message: "is no list"})
	}
	for i, item := range items {
		value, ok := item.(map[string]any)
		at := o.place.find(fmt.Sprintf("items[%d]", i))
		if !ok {
			o.say(Problem{Line: at.line, Object: o.name, Field: fmt.Sprintf("items[%d]", i), Message: "is " + kindOf(item) + ", no object"})
			continue
		}
		if kind != "" && value["kind"] == nil && value["apiVersion"] == nil {
			value["apiVersion"], value["kind"] = "v1", kind
		}
		o.object(value, at)
	}
}

// into decodes the object, and reports whether it is one.
func (o *object) into(typed any) bool {
	o.place.duplicates(func(field string, line int) {
		o.say(Problem{Line: line, Object: o.name, Field: field, Message: "is given twice", Cure: "keep one", Warning: !o.strict})
	})
	ok := true
	for _, m := range mistakes(o.value, reflect.TypeOf(typed).Elem()) {
		o.say(Problem{
			Line: o.place.find(m.field).line, Object: o.name, Field: m.field, Message: m.message, Cure: m.cure, Warning: m.unknown && !o.strict,
		})
		ok = ok && m.unknown
	}
	if !ok {
		return false
	}
	data, err := json.Marshal(o.value)
	if err == nil {
		err = utiljson.Unmarshal(data, typed)
	}
	if err != nil {
		o.say(Problem{Line: o.place.line, Object: o.name, Message: err.Error()})
	}
	return err == nil
}

// valid says what a validation has found, and reports whether it was nothing.
func (o *object) valid(lists ...field.ErrorList) bool {
	ok := true
	for _, list := range lists {
		for _, err := range list {
			ok = false
			body := *err
			body.Detail = ""
			o.say(Problem{
				Line: o.place.find(err.Field).line, Object: o.name, Field: err.Field,
				Message: strings.ToLower(body.ErrorBody()[:1]) + body.ErrorBody()[1:], Cure: err.Detail,
			})
		}
	}
	return ok
}

func (o *object) configMap() {
	m := &corev1.ConfigMap{}
	if !o.into(m) {
		return
	}
	m.Namespace = namespaceOf(m)
	if o.valid(podspec.ValidateConfigMap(m)) {
		o.content.configMaps = append(o.content.configMaps, m)
	}
}

func (o *object) secret() {
	s := &corev1.Secret{}
	if !o.into(s) {
		return
	}
	s.Namespace = namespaceOf(s)
	podspec.DefaultSecret(s)
	if o.valid(podspec.ValidateSecret(s)) {
		o.content.secrets = append(o.content.secrets, s)
	}
}

func (o *object) runtimeClass() {
	c := &nodev1.RuntimeClass{}
	if o.into(c) && o.valid(podspec.ValidateRuntimeClass(c)) {
		o.content.classes = append(o.content.classes, c)
	}
}

func namespaceOf(o metav1.Object) string {
	if o.GetNamespace() == "" {
		return metav1.NamespaceDefault
	}
	return o.GetNamespace()
}
