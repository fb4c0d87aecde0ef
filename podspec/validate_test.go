package podspec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// says lists errors as a person sees them.
func says(list field.ErrorList) (lines []string) {
	for _, e := range list {
		lines = append(lines, e.Error())
	}
	return lines
}

// TestValidate shows what people get wrong and what they are told. The rules are held to Kubernetes' own in tools/podspecdiff.
func TestValidate(t *testing.T) {
	main := func(fields string) string { return "containers: [{name: main, image: a, " + fields + "}]" }
	for _, c := range []struct {
		name, spec string
		want       []string
	}{
		{"all is well", "containers: [{name: main, image: a}]", nil},
		{"no containers", "", []string{
			"spec.containers: Required value: give at least one container",
		}},
		{"no image and no name", "containers: [{}]", []string{
			`spec.containers[0].name: Required value: give it a name, such as "main"`,
			"spec.containers[0].image: Required value: say which image to run",
		}},
		{"two containers of one name", "initContainers: [{name: a, image: a}], containers: [{name: a, image: a}, {name: a, image: a}]", []string{
			`spec.containers[1].name: Duplicate value: "a"`,
			`spec.initContainers[0].name: Duplicate value: "a"`,
		}},
		{"words that there are not", "restartPolicy: always, dnsPolicy: Cluster, containers: [{name: a, image: a, imagePullPolicy: never}]", []string{
			`spec.restartPolicy: Unsupported value: "always": supported values: "Always", "OnFailure", "Never"`,
			`spec.dnsPolicy: Unsupported value: "Cluster": supported values: "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"`,
			`spec.containers[0].imagePullPolicy: Unsupported value: "never": supported values: "Always", "IfNotPresent", "Never"`,
		}},
		{"a volume that is not there", main("volumeMounts: [{name: data, mountPath: /data}, {name: data, mountPath: /data}]"), []string{
			`spec.containers[0].volumeMounts[0].name: Not found: "data": must be one of spec.volumes`,
			`spec.containers[0].volumeMounts[1].name: Not found: "data": must be one of spec.volumes`,
			`spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/data": must be the path of one mount only`,
		}},
		{"a volume that is wrong is there", "volumes: [{name: data, hostPath: {}}], " + main("volumeMounts: [{name: data, mountPath: /data}]"), []string{
			"spec.volumes[0].hostPath.path: Required value: give the path on the host",
		}},
		{"a volume of two kinds", "volumes: [{name: data, emptyDir: {}, hostPath: {}}], " + main(""), []string{
			"spec.volumes[0].hostPath: Forbidden: there is emptyDir already: only one can be set",
		}},
		{"a path that leads out", "volumes: [{name: v, configMap: {name: a, items: [{key: a, path: ../a}]}}], " + main("volumeMounts: [{name: v, mountPath: /v, subPath: /etc}]"), []string{
			`spec.volumes[0].configMap.items[0].path: Invalid value: "../a": must not contain ".."`,
			`spec.containers[0].volumeMounts[0].subPath: Invalid value: "/etc": must be a relative path`,
		}},
		{"ports", main("ports: [{}, {containerPort: 70000}, {containerPort: 1, hostPort: 1, name: x}, {containerPort: 2, hostPort: 1, name: x}]"), []string{
			"spec.containers[0].ports[0].containerPort: Required value: give the port's number",
			"spec.containers[0].ports[1].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
			`spec.containers[0].ports[3].name: Duplicate value: "x"`,
			`spec.containers[0].ports[3].hostPort: Duplicate value: "TCP//1"`,
		}},
		{"ports on the host's network", "hostNetwork: true, " + main("ports: [{containerPort: 80, hostPort: 8080}]"), []string{
			"spec.containers[0].ports[0].hostPort: Invalid value: 8080: must be the containerPort when hostNetwork is true, or left out",
		}},
		{"variables", main("env: [{name: A=B}, {name: C, value: hidden, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: D, valueFrom: {}}, {name: E, valueFrom: {fieldRef: {fieldPath: status.phase}}}]"), []string{
			"spec.containers[0].env[0].name: Invalid value: \"A=B\": a valid environment variable name must consist only of printable ASCII characters other than '='",
			`spec.containers[0].env[1].valueFrom: Invalid value: "C": there is a value already: only one can be set`,
			`spec.containers[0].env[2].valueFrom: Invalid value: "D": must have one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef or fileKeyRef`,
			`spec.containers[0].env[3].valueFrom.fieldRef.fieldPath: Unsupported value: "status.phase": supported values: "metadata.name", "metadata.namespace", "metadata.uid", ` +
				`"spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"`,
		}},
		{"probes", main("livenessProbe: {}, readinessProbe: {httpGet: {port: 0}}, startupProbe: {exec: {}, tcpSocket: {port: 1}, successThreshold: 2}"), []string{
			"spec.containers[0].livenessProbe: Required value: say what to do: one of exec, httpGet, tcpSocket or grpc",
			"spec.containers[0].readinessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive",
			"spec.containers[0].startupProbe.exec.command: Required value: give the command and its arguments",
			"spec.containers[0].startupProbe.tcpSocket: Forbidden: there is exec already: only one can be set",
			"spec.containers[0].startupProbe.successThreshold: Invalid value: 2: must be 1",
		}},
		{"a probe of an init container", "initContainers: [{name: i, image: a, readinessProbe: {exec: {command: [a]}}}], " + main(""), []string{
			"spec.initContainers[0].readinessProbe: Forbidden: an init container has it only with restartPolicy Always",
		}},
		{"a sleep that is too long", "terminationGracePeriodSeconds: 5, " + main("lifecycle: {preStop: {sleep: {seconds: 6}}}"), []string{
			"spec.containers[0].lifecycle.preStop.sleep.seconds: Invalid value: 6: must be between 0 and the pod's terminationGracePeriodSeconds, which is 5",
		}},
		{"resources", main("resources: {limits: {cpu: 1, memory: -1, gpu: 1, example.com/gpu: 500m}, requests: {cpu: 2, example.com/fpga: 1}}"), []string{
			"spec.containers[0].resources.limits[example.com/gpu]: Invalid value: \"500m\": must be a whole number",
			"spec.containers[0].resources.limits[gpu]: Invalid value: \"gpu\": must be cpu, memory, ephemeral-storage, hugepages-<size>, or fully qualified, such as \"example.com/gpu\"",
			"spec.containers[0].resources.limits[memory]: Invalid value: \"-1\": must be 0 or more",
			"spec.containers[0].resources.requests[example.com/gpu]: Invalid value: \"500m\": must be a whole number",
			"spec.containers[0].resources.requests[gpu]: Invalid value: \"gpu\": must be cpu, memory, ephemeral-storage, hugepages-<size>, or fully qualified, such as \"example.com/gpu\"",
			"spec.containers[0].resources.requests[memory]: Invalid value: \"-1\": must be 0 or more",
			"spec.containers[0].resources.requests[cpu]: Invalid value: \"2\": must be the limit of 1 or less",
			"spec.containers[0].resources.limits[example.com/fpga]: Required value: give the limit, which must be the request: there is never more than what was asked for",
		}},
		{"security", "securityContext: {runAsUser: -1, seccompProfile: {type: Localhost}, sysctls: [{name: Net}]}, " +
			main("securityContext: {privileged: true, allowPrivilegeEscalation: false}"), []string{
			"spec.containers[0].securityContext.allowPrivilegeEscalation: Invalid value: false: cannot be false when privileged is true",
			"spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
			`spec.securityContext.sysctls[0].name: Invalid value: "Net": must be a name such as "net.ipv4.ip_forward", at most 253 characters`,
			"spec.securityContext.seccompProfile.localhostProfile: Required value: give the profile's file, or another type than Localhost",
		}},
		{"DNS", "dnsPolicy: None, " + main(""), []string{
			"spec.dnsConfig: Required value: give the DNS configuration, or another dnsPolicy than None",
		}},
		{"ephemeral containers", "ephemeralContainers: [{name: debug}], " + main(""), []string{
			"spec.ephemeralContainers: Forbidden: can only be added to a pod that runs",
		}},
		{"tolerations", "tolerations: [{key: a, operator: Exist}, {operator: Exists, value: x}, {key: a, tolerationSeconds: 3}], " + main(""), []string{
			`spec.tolerations[0].operator: Unsupported value: "Exist": supported values: "Equal", "Exists"`,
			`spec.tolerations[1].value: Invalid value: "x": must be left out when the operator is Exists`,
			`spec.tolerations[2].effect: Invalid value: "": must be NoExecute when there are tolerationSeconds`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			pod := parse(t, "{metadata: {name: web, namespace: default}, spec: {"+c.spec+"}}")
			Default(pod)
			if diff := cmp.Diff(c.want, says(Validate(pod))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestValidateStatic shows what a pod of a file cannot have.
func TestValidateStatic(t *testing.T) {
	pod := parse(t, `
spec:
  serviceAccountName: web
  automountServiceAccountToken: false
  resourceClaims: [{name: gpu, resourceClaimName: gpu}]
  imagePullSecrets: [{name: registry}]
  volumes:
  - {name: a, persistentVolumeClaim: {claimName: a}}
  - {name: b, configMap: {name: a}}
  - {name: d, csi: {driver: a, nodePublishSecretRef: {name: a}}}
  - {name: c, projected: {sources: [{secret: {name: a}}, {serviceAccountToken: {path: a}}, {}]}}
  containers: [{name: main, image: a, envFrom: [{secretRef: {name: a}}]}]
`)
	const cure = ": Forbidden: needs an API server, which a static pod has not: remove it"
	want := []string{
		"spec.serviceAccountName" + cure,
		"spec.resourceClaims" + cure,
		"spec.volumes[0].persistentVolumeClaim" + cure,
		"spec.volumes[3].projected.sources[1].serviceAccountToken" + cure,
		"spec.volumes[3].projected.sources[2]: Required value: say what the source is, such as configMap",
	}
	if diff := cmp.Diff(want, says(ValidateStatic(pod))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestErrorsShowNoSecret shows that what is said of a Secret, or of a variable, does not tell its value.
func TestErrorsShowNoSecret(t *testing.T) {
	const canary = "hunter2"
	s := &corev1.Secret{}
	text := "{metadata: {name: A, namespace: default}, type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: " + canary + ", a/b: " + canary + "}}"
	if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	DefaultSecret(s)
	pod := parse(t, "spec: {containers: [{env: [{name: '', value: "+canary+", valueFrom: {}}]}]}")
	lines := append(says(ValidateSecret(s)), says(Validate(pod))...)
	if text := strings.Join(lines, "\n"); strings.Contains(text, canary) || len(lines) < 5 {
		t.Errorf("got %s", text)
	}
}

// TestOrder shows that what is said comes in the same order each time, whatever the order of maps.
func TestOrder(t *testing.T) {
	pod := parse(t, `
metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/a: x, container.apparmor.security.beta.kubernetes.io/b: x}}
spec:
  hostUsers: false
  hostPID: true
  hostIPC: true
  overhead: {a: 1, b: 1, c: 1}
  containers: [{name: main, image: a, resources: {limits: {a: 1, b: 1, c: 1}, requests: {d: 1, e: 1}}}]
`)
	want := says(Validate(pod))
	for range 20 {
		if diff := cmp.Diff(want, says(Validate(pod.DeepCopy()))); diff != "" {
			t.Fatalf("(-first +later):\n%s", diff)
		}
	}
}

func BenchmarkPod(b *testing.B) {
	pod := parse(b, "{metadata: {name: web, namespace: default}, spec: {volumes: [{name: v}], containers: [{name: main, image: a, volumeMounts: [{name: v, mountPath: /v}], ports: [{containerPort: 80}]}]}}")
	b.Run("baseline=DeepCopy", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			pod.DeepCopy()
		}
	})
	b.Run("Default+Validate", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Default(pod)
			if errs := Validate(pod); len(errs) > 0 {
				b.Fatal(errs)
			}
		}
	})
}
