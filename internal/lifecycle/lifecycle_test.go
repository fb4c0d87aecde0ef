package lifecycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestContainersComeInStartOrderWithTheirKind(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "migrate"}, {Name: "proxy", RestartPolicy: &always}},
		Containers:     []corev1.Container{{Name: "web", RestartPolicy: &always}},
	}}
	var got []string
	for c, kind := range Containers(pod) {
		got = append(got, c.Name+" "+kind.String())
	}
	if diff := cmp.Diff([]string{"migrate init", "proxy sidecar", "web app"}, got); diff != "" {
		t.Error(diff)
	}
	for c := range Containers(pod) { // the iterator may be left at any time
		if c.Name == "web" {
			break
		}
	}
}

// The first rule that is about the code decides.
func TestRestartsAll(t *testing.T) {
	in := func(action corev1.ContainerRestartRuleAction, codes ...int32) corev1.ContainerRestartRule {
		return corev1.ContainerRestartRule{Action: action, ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
			Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: codes,
		}}
	}
	one, all := corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers
	pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}}
	c := &corev1.Container{RestartPolicyRules: []corev1.ContainerRestartRule{in(one, 1), in(all, 1, 88), in(one, 88)}}
	for code, want := range map[int32][2]bool{1: {true, false}, 88: {false, true}, 2: {false, false}} {
		if got := [2]bool{Restarts(pod, c, App, code), RestartsAll(c, code)}; got != want {
			t.Errorf("after %d: Restarts, RestartsAll = %v, want %v", code, got, want)
		}
	}
}

// A rule that names the code of a kill is about a container that ended by itself with it.
func TestRestartsOnFailure(t *testing.T) {
	never, always := corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyAlways
	on137 := []corev1.ContainerRestartRule{{
		Action:    corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{137}},
	}}
	for _, tt := range []struct {
		name      string
		pod       corev1.RestartPolicy
		kind      Kind
		container corev1.Container
		want      bool
	}{
		{"on failure", corev1.RestartPolicyOnFailure, App, corev1.Container{}, true},
		{"never", corev1.RestartPolicyNever, App, corev1.Container{}, false},
		{"never, with a rule", corev1.RestartPolicyNever, App, corev1.Container{RestartPolicy: &never, RestartPolicyRules: on137}, false},
		{"own policy before the pod's", corev1.RestartPolicyNever, App, corev1.Container{RestartPolicy: &always}, true},
		{"sidecar of never", corev1.RestartPolicyNever, Sidecar, corev1.Container{}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: tt.pod}}
			if got := RestartsOnFailure(pod, &tt.container, tt.kind); got != tt.want {
				t.Errorf("RestartsOnFailure = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestRestarts(t *testing.T) {
	never := corev1.ContainerRestartPolicyNever
	on42 := []corev1.ContainerRestartRule{{
		Action: corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
			Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42},
		},
	}}
	notOn42 := []corev1.ContainerRestartRule{{
		Action: corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
			Operator: corev1.ContainerRestartRuleOnExitCodesOpNotIn, Values: []int32{42},
		},
	}}
	for _, tt := range []struct {
		name      string
		pod       corev1.RestartPolicy
		kind      Kind
		container corev1.Container
		code      int32
		want      bool
	}{
		{"always after success", corev1.RestartPolicyAlways, App, corev1.Container{}, 0, true},
		{"no policy is always", "", App, corev1.Container{}, 0, true},
		{"on failure after success", corev1.RestartPolicyOnFailure, App, corev1.Container{}, 0, false},
		{"on failure after failure", corev1.RestartPolicyOnFailure, App, corev1.Container{}, 1, true},
		{"never after failure", corev1.RestartPolicyNever, App, corev1.Container{}, 1, false},
		{"init after success", corev1.RestartPolicyAlways, Init, corev1.Container{}, 0, false},
		{"init after failure", corev1.RestartPolicyAlways, Init, corev1.Container{}, 1, true},
		{"init of never after failure", corev1.RestartPolicyNever, Init, corev1.Container{}, 1, false},
		{"sidecar of never", corev1.RestartPolicyNever, Sidecar, corev1.Container{}, 0, true},
		{"own policy before the pod's", corev1.RestartPolicyAlways, App, corev1.Container{RestartPolicy: &never}, 1, false},
		{"rule that names the code", corev1.RestartPolicyNever, App, corev1.Container{RestartPolicyRules: on42}, 42, true},
		{"rule that names another code", corev1.RestartPolicyNever, App, corev1.Container{RestartPolicyRules: on42}, 1, false},
		{"rule for all but one code", corev1.RestartPolicyNever, App, corev1.Container{RestartPolicyRules: notOn42}, 1, true},
		{"rule for all but this code", corev1.RestartPolicyNever, App, corev1.Container{RestartPolicyRules: notOn42}, 42, false},
		{"rule never makes a finished init run again", corev1.RestartPolicyNever, Init, corev1.Container{RestartPolicyRules: notOn42}, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: tt.pod}}
			if got := Restarts(pod, &tt.container, tt.kind, tt.code); got != tt.want {
				t.Errorf("Restarts = %v, want %v", got, tt.want)
			}
		})
	}
}
