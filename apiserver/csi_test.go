package apiserver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a CSINode lists is brought to what is wanted in steps that the API takes: no driver in it is changed.
func TestCSINodeSteps(t *testing.T) {
	d := func(name, id string) storagev1.CSINodeDriver { return storagev1.CSINodeDriver{Name: name, NodeID: id} }
	type list = []storagev1.CSINodeDriver
	for name, tt := range map[string]struct {
		is, drivers list
		gone        []string
		want        []list
	}{
		"nothing":       {},
		"as it is":      {list{d("a", "1"), d("b", "1")}, list{d("b", "1")}, nil, nil},
		"new":           {list{d("z", "1")}, list{d("a", "1")}, nil, []list{{d("z", "1"), d("a", "1")}}},
		"gone":          {list{d("a", "1"), d("b", "1")}, nil, []string{"a", "x"}, []list{{d("b", "1")}}},
		"the last gone": {list{d("a", "1")}, nil, []string{"a"}, []list{{}}},
		"changed":       {list{d("a", "1"), d("b", "1")}, list{d("a", "2")}, nil, []list{{d("b", "1")}, {d("b", "1"), d("a", "2")}}},
		"gone and new":  {list{d("a", "1")}, list{d("b", "1")}, []string{"a"}, []list{{d("b", "1")}}},
	} {
		if diff := cmp.Diff(tt.want, csiNodeSteps(tt.is, tt.drivers, tt.gone)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNodeChangeOfDrivers(t *testing.T) {
	node := func(ids string, labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationNodeID: ids}, Labels: labels}}
	}
	a, zone := []storagev1.CSINodeDriver{{Name: "a", NodeID: "1"}}, map[string]string{"zone": "x"}
	change := func(ids any, labels map[string]string) map[string]any {
		return map[string]any{"metadata": map[string]any{"labels": labels, "annotations": map[string]any{annotationNodeID: ids}}}
	}
	for name, tt := range map[string]struct {
		node     *corev1.Node
		drivers  []storagev1.CSINodeDriver
		gone     []string
		topology map[string]string
		want     map[string]any
	}{
		"nothing":        {&corev1.Node{}, nil, nil, nil, nil},
		"as it is":       {node(`{"a":"1","b":"2"}`, zone), a, nil, zone, nil},
		"first":          {&corev1.Node{}, a, nil, zone, change(`{"a":"1"}`, zone)},
		"another":        {node(`{"b":"2"}`, zone), a, nil, zone, change(`{"a":"1","b":"2"}`, map[string]string{})},
		"the last gone":  {node(`{"b":"2"}`, nil), nil, []string{"b"}, nil, change(nil, map[string]string{})},
		"it was garbage": {node(`[`, nil), a, nil, nil, change(`{"a":"1"}`, map[string]string{})},
	} {
		if diff := cmp.Diff(tt.want, nodeChange(tt.node, tt.drivers, tt.gone, tt.topology)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
