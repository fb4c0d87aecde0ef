package env_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/syncpod/env"
)

// input is a container, in YAML, of a pod in a world of a few objects.
func input(t *testing.T, container string) env.Input {
	t.Helper()
	c := &corev1.Container{}
	if err := yaml.UnmarshalStrict([]byte(container), c); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "shop", UID: "u-1",
			Labels: map[string]string{"app.kubernetes.io/name": "web"}, Annotations: map[string]string{"note": "a $(X)"},
		},
		Spec: corev1.PodSpec{NodeName: "edge-1", ServiceAccountName: "robot", Containers: []corev1.Container{*c, {
			Name: "other", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse("100Mi")}},
		}}},
	}
	configMaps := map[string]map[string]string{
		"cm1": {"X": "1", "Y": "1", "1bad": "z", "a-b": "q"},
		"cm2": {"X": "2"},
		"cm3": {"X": "3"},
	}
	return env.Input{
		Pod: pod, Container: c, PodIPs: []string{"10.0.0.7", "fd00::7"}, HostIPs: []string{"192.0.2.1"},
		Allocatable: corev1.ResourceList{"cpu": resource.MustParse("3500m"), "memory": resource.MustParse("1Gi")},
		ConfigMap: func(name string) (*corev1.ConfigMap, error) {
			if name == "flaky" {
				return nil, errors.New("connection refused")
			}
			data, ok := configMaps[name]
			if !ok {
				return nil, podmill.ErrNotFound
			}
			return &corev1.ConfigMap{Data: data}, nil
		},
		Secret: func(name string) (*corev1.Secret, error) {
			if name != "s1" {
				return nil, podmill.ErrNotFound
			}
			return &corev1.Secret{Data: map[string][]byte{"password": []byte("hunter2")}}, nil
		},
	}
}

func lines(vars []podmill.EnvVar) string {
	var out []string
	for _, v := range vars {
		out = append(out, v.Name+"="+v.Value)
	}
	return strings.Join(out, "\n")
}

func TestResolve(t *testing.T) {
	for _, tt := range []struct{ name, container, want string }{
		{
			name:      "values refer to what was defined before",
			container: `{env: [{name: A, value: a}, {name: B, value: "$(A)-$(C)-$$(A)"}, {name: C, value: "$(B)"}, {name: EMPTY}]}`,
			want:      "A=a\nB=a-$(C)-$(A)\nC=a-$(C)-$(A)\nEMPTY=",
		},
		{
			// B088
			name: "envFrom: a later source wins, env wins over both, every key is a variable",
			container: `
envFrom:
- configMapRef: {name: cm1}
- configMapRef: {name: cm3}
- {prefix: P_, configMapRef: {name: cm2}}
- configMapRef: {name: absent, optional: true}
- secretRef: {name: absent, optional: true}
env: [{name: X, value: "$(X)!"}]`,
			want: "1bad=z\nX=3!\nY=1\na-b=q\nP_X=2",
		},
		{
			name: "keys of objects; what an object holds is not expanded",
			container: `
env:
- {name: X, valueFrom: {configMapKeyRef: {name: cm1, key: X}}}
- {name: PASSWORD, valueFrom: {secretKeyRef: {name: s1, key: password}}}
- {name: URL, value: "db://$(PASSWORD)@$(X)"}
- {name: NO_KEY, valueFrom: {secretKeyRef: {name: s1, key: absent, optional: true}}}
- {name: NO_OBJECT, valueFrom: {configMapKeyRef: {name: absent, key: k, optional: true}}}
- {name: NOTE, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['note']"}}}`,
			want: "X=1\nPASSWORD=hunter2\nURL=db://hunter2@1\nNOTE=a $(X)",
		},
		{
			name: "fields",
			container: `
env:
- {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
- {name: NS, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
- {name: ID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
- {name: LABEL, valueFrom: {fieldRef: {fieldPath: "metadata.labels['app.kubernetes.io/name']"}}}
- {name: NONE, valueFrom: {fieldRef: {fieldPath: "metadata.labels['none']"}}}
- {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
- {name: SA, valueFrom: {fieldRef: {fieldPath: spec.serviceAccountName}}}
- {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
- {name: IPS, valueFrom: {fieldRef: {fieldPath: status.podIPs}}}
- {name: HOST, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}
- {name: HOSTS, valueFrom: {fieldRef: {fieldPath: status.hostIPs}}}`,
			want: "NAME=web\nNS=shop\nID=u-1\nLABEL=web\nNONE=\nNODE=edge-1\nSA=robot\n" +
				"IP=10.0.0.7\nIPS=10.0.0.7,fd00::7\nHOST=192.0.2.1\nHOSTS=192.0.2.1",
		},
		{
			name: "resources are rounded up in units of the divisor; no limit is what the node has",
			container: `
name: main
resources: {requests: {cpu: 250m, memory: 1Mi}, limits: {cpu: 1500m}}
env:
- {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
- {name: MILLI, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}
- {name: REQUEST, valueFrom: {resourceFieldRef: {resource: requests.cpu, divisor: 1m}}}
- {name: NODE_MEMORY, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
- {name: OTHER, valueFrom: {resourceFieldRef: {containerName: other, resource: limits.memory, divisor: 1Gi}}}
- {name: UNASKED, valueFrom: {resourceFieldRef: {resource: requests.ephemeral-storage}}}
- {name: PAGES, valueFrom: {resourceFieldRef: {resource: limits.hugepages-2Mi}}}`,
			want: "CPU=2\nMILLI=1500\nREQUEST=250\nNODE_MEMORY=1024\nOTHER=1\nUNASKED=0\nPAGES=0",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			vars, err := env.Resolve(input(t, tt.container))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, lines(vars)); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatAContainerCannotStartWithoutIsNamed(t *testing.T) {
	for _, tt := range []struct{ name, container, want string }{
		// B088
		{"envFrom of no object", `{envFrom: [{configMapRef: {name: cm4}}]}`, `envFrom[0]: configmap "cm4" not found`},
		{"no object", `{env: [{name: A, valueFrom: {secretKeyRef: {name: s4, key: k}}}]}`, `env A: secret "s4" not found`},
		{
			"no key", `{env: [{name: A, valueFrom: {configMapKeyRef: {name: cm1, key: k}}}]}`,
			`env A: couldn't find key k in ConfigMap shop/cm1`,
		},
		{
			"an optional object of which nobody can tell", `{envFrom: [{configMapRef: {name: flaky, optional: true}}]}`,
			`envFrom[0]: configmap "flaky": connection refused`,
		},
		{"field", `{env: [{name: A, valueFrom: {fieldRef: {fieldPath: status.phase}}}]}`, `env A: fieldRef "status.phase" is not supported`},
		{"label syntax", `{env: [{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.labels['x"}}}]}`, `env A: fieldRef "metadata.labels['x" is not supported`},
		{"resource", `{env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.gpu}}}]}`, `env A: resourceFieldRef "limits.gpu" is not supported`},
		{"list", `{env: [{name: A, valueFrom: {resourceFieldRef: {resource: cpu}}}]}`, `env A: resourceFieldRef "cpu" is not supported`},
		{
			"container", `{env: [{name: A, valueFrom: {resourceFieldRef: {containerName: gone, resource: limits.cpu}}}]}`,
			`env A: resourceFieldRef: no container "gone"`,
		},
		{
			"divisor", `{env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: "-1"}}}]}`,
			`env A: resourceFieldRef: divisor -1 is not supported`,
		},
		{
			"no limit, no node", `{name: c, env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.ephemeral-storage}}}]}`,
			`env A: resourceFieldRef limits.ephemeral-storage: container c has no limit, and what the node has for pods is not known`,
		},
		{
			"file", `{env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: p, key: k}}}]}`,
			`env A: fileKeyRef: file "v/p": nothing provides such objects here`,
		},
		{"no source", `{env: [{name: A, valueFrom: {}}]}`, `env A: valueFrom names no source`},
		{"no envFrom source", `{envFrom: [{prefix: A}]}`, `envFrom[0]: names neither a configMap nor a secret`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := env.Resolve(input(t, tt.container))
			var reason *podmill.ReasonError
			if !errors.As(err, &reason) || reason.Reason != "CreateContainerConfigError" {
				t.Fatalf("error = %v, want a CreateContainerConfigError", err)
			}
			if diff := cmp.Diff(tt.want, reason.Message); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnUnknownAddressOrProviderIsAnError(t *testing.T) {
	in := input(t, `{env: [{name: A, valueFrom: {fieldRef: {fieldPath: status.hostIPs}}}]}`)
	in.HostIPs = nil
	if _, err := env.Resolve(in); err == nil || !strings.Contains(err.Error(), "status.hostIPs: no address is known") {
		t.Errorf("error = %v", err)
	}
	in = input(t, `{envFrom: [{secretRef: {name: s1, optional: true}}]}`)
	in.Secret = nil
	if _, err := env.Resolve(in); err == nil || !strings.Contains(err.Error(), `secret "s1": nothing provides such objects here`) {
		t.Errorf("error = %v", err)
	}
}

func TestAnObjectIsAskedForOnce(t *testing.T) {
	in := input(t, `
envFrom: [{configMapRef: {name: cm1}}, {configMapRef: {name: none, optional: true}}, {configMapRef: {name: none, optional: true}}]
env: [{name: A, valueFrom: {configMapKeyRef: {name: cm1, key: X}}}, {name: B, valueFrom: {configMapKeyRef: {name: cm1, key: "Y"}}}]`)
	asked, ask := 0, in.ConfigMap
	in.ConfigMap = func(name string) (*corev1.ConfigMap, error) { asked++; return ask(name) }
	if _, err := env.Resolve(in); err != nil || asked != 2 {
		t.Errorf("asked %d times (%v), want once for each of two objects", asked, err)
	}
}

// B115
func TestCommandAgainstTheImage(t *testing.T) {
	vars := []podmill.EnvVar{{Name: "PORT", Value: "80"}}
	for _, tt := range []struct {
		name                  string
		command, args         []string
		wantCommand, wantArgs []string
	}{
		{name: "neither leaves both to the image"},
		{name: "arguments alone keep the image's entrypoint", args: []string{"-p", "$(PORT)"}, wantArgs: []string{"-p", "80"}},
		{name: "a command alone drops the image's arguments", command: []string{"serve"}, wantCommand: []string{"serve"}},
		{
			name: "both", command: []string{"serve", "$$(PORT)"}, args: []string{"$(NONE)"},
			wantCommand: []string{"serve", "$(PORT)"}, wantArgs: []string{"$(NONE)"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			command, args := env.Command(&corev1.Container{Command: tt.command, Args: tt.args}, vars)
			if diff := cmp.Diff([][]string{tt.wantCommand, tt.wantArgs}, [][]string{command, args}); diff != "" {
				t.Error(diff)
			}
		})
	}
}
