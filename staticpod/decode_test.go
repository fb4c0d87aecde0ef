package staticpod

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podmill/podmill"
)

var start = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

func fromFile() origin {
	return origin{source: sourceFile, location: "/manifests", node: "node1", strict: true, check: newOptions(nil).check}
}

// decode decodes a manifest and returns what is wrong with it, as a person reads it.
func (o origin) lines(text string) (c content, lines []string) {
	c, problems := o.decode("web.yaml", []byte(text), start)
	for _, p := range problems {
		line := p.String()
		if p.Warning {
			line = "warning: " + line
		}
		lines = append(lines, line)
	}
	return c, lines
}

const web = `apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
  - name: main
    image: web:1
`

// TestMistakes shows what people get wrong and what they are told: the file, the line, the object, the field, and what to do. B118
func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"nothing is wrong", web, nil},
		{"a misspelt field", strings.Replace(web, "image:", "comand: [a]\n    image:", 1), []string{
			`web.yaml:8: pod web: spec.containers[0].comand: unknown field (did you mean "command"?)`,
		}},
		{"a field of another case", strings.Replace(web, "image:", "Image:", 1), []string{
			`web.yaml:8: pod web: spec.containers[0].Image: unknown field (did you mean "image"?)`,
			`web.yaml:7: pod web: spec.containers[0].image: required value (say which image to run)`,
		}},
		{"a field in another place", strings.Replace(web, "name: web\n", "name: web\n  restartPolicy: Never\n", 1), []string{
			`web.yaml:5: pod web: metadata.restartPolicy: unknown field (it belongs to spec.restartPolicy)`,
		}},
		{"a field of containers", web + "  env: []\n  image: a\n", []string{
			`web.yaml:9: pod web: spec.env: unknown field (it belongs to spec.containers[].env)`,
			`web.yaml:10: pod web: spec.image: unknown field (it belongs to spec.containers[].image)`,
		}},
		{"a field that is like no other", web + "  zzzzzzzzz: 1\n", []string{
			`web.yaml:9: pod web: spec.zzzzzzzzz: unknown field`,
		}},
		{"a field that is given twice", web + "  hostNetwork: true\n  hostNetwork: false\n", []string{
			`web.yaml:10: pod web: spec.hostNetwork: is given twice (keep one)`,
		}},
		{"a label that is a number", strings.Replace(web, "name: web\n", "name: web\n  labels:\n    version: 1.20\n", 1), []string{
			`web.yaml:6: pod web: metadata.labels.version: is a number, not a text (put it in quotes)`,
		}},
		{"a text that YAML takes for a boolean", strings.Replace(web, "name: main", "name: no", 1), []string{
			`web.yaml:7: pod web: spec.containers[0].name: is a boolean, not a text (put it in quotes)`,
		}},
		{"a boolean in quotes", web + "  hostNetwork: \"true\"\n", []string{
			`web.yaml:9: pod web: spec.hostNetwork: is a text (give true or false, without quotes)`,
		}},
		{"a number in quotes, and one that is too large", web + "    ports:\n    - containerPort: \"80\"\n    - containerPort: 8000000000\n    - containerPort: 8.5\n", []string{
			`web.yaml:10: pod web: spec.containers[0].ports[0].containerPort: is a text (give a whole number, without quotes)`,
			`web.yaml:11: pod web: spec.containers[0].ports[1].containerPort: is 8000000000 (give a whole number, of 32 bits)`,
			`web.yaml:12: pod web: spec.containers[0].ports[2].containerPort: is 8.5 (give a whole number, of 32 bits)`,
		}},
		{"a list that is none", strings.Replace(web, "  - name: main\n    image: web:1", "    name: main", 1), []string{
			`web.yaml:6: pod web: spec.containers: is a map (give a list: put a dash before each element)`,
		}},
		{"a map that is none", strings.Replace(web, "name: web\n", "name: web\n  labels: [a]\n", 1), []string{
			`web.yaml:5: pod web: metadata.labels: is a list (give a map, such as {name: value})`,
		}},
		{"an object that is none", web + "  dnsConfig: 8.8.8.8\n", []string{
			`web.yaml:9: pod web: spec.dnsConfig: is a text (give a map with any of nameservers, options, searches)`,
		}},
		{"quantities, ports and times", web + "    resources: {limits: {memory: 1 GB}}\n    livenessProbe: {tcpSocket: {port: [1]}}\n", []string{
			`web.yaml:10: pod web: spec.containers[0].livenessProbe.tcpSocket.port: is [1] (give a number or a name)`,
			`web.yaml:9: pod web: spec.containers[0].resources.limits.memory: is "1 GB" (give a quantity, such as 100m, 0.5 or 1Gi)`,
		}},
		{"what an API server refuses", strings.Replace(web, "name: main", "name: Main", 1) + "    volumeMounts:\n    - {name: data, mountPath: /data}\n", []string{
			`web.yaml:7: pod web: spec.containers[0].name: invalid value: "Main" (a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', ` +
				`and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?'))`,
			`web.yaml:10: pod web: spec.containers[0].volumeMounts[0].name: not found: "data" (must be one of spec.volumes)`,
		}},
		{"a key with dots", strings.Replace(web, "name: web\n", "name: web\n  annotations:\n    container.apparmor.security.beta.kubernetes.io/other: x\n", 1), []string{
			`web.yaml:6: pod web: metadata.annotations[container.apparmor.security.beta.kubernetes.io/other]: invalid value: "other" (must end with the name of a container of the pod)`,
			`web.yaml:6: pod web: metadata.annotations[container.apparmor.security.beta.kubernetes.io/other]: invalid value: "x" (must be "runtime/default", "unconfined" or "localhost/" and a profile)`,
		}},
		{"what only an API server can give", web + "  serviceAccountName: web\n", []string{
			`web.yaml:9: pod web: spec.serviceAccountName: forbidden (needs an API server, which a static pod has not: remove it)`,
		}},
		{"no name", strings.Replace(web, "  name: web\n", "", 1), []string{
			`web.yaml:3: pod: metadata.name: is missing (give the pod a name)`,
		}},
		{"a UID that would lead elsewhere", strings.Replace(web, "name: web\n", "name: web\n  uid: ../../etc\n", 1), []string{
			`web.yaml:5: pod web: metadata.uid: is no UID (leave it out, or give letters, digits and dashes)`,
		}},
		{"the second document", web + "---\n# a comment\n" + strings.Replace(web, "image: web:1", "image: ''", 1), []string{
			`web.yaml:18: pod web: spec.containers[0].image: required value (say which image to run)`,
		}},
		{"an element of a list", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n  spec:\n    containers: [{}]\n- 5\n", []string{
			`web.yaml:8: pod a: spec.containers[0].name: required value (give it a name, such as "main")`,
			`web.yaml:8: pod a: spec.containers[0].image: required value (say which image to run)`,
			`web.yaml:9: list: items[1]: is a number, no object`,
		}},
		{"JSON", "{\n\t\"apiVersion\": \"v1\", \"kind\": \"Pod\",\n\t\"metadata\": {\"name\": \"a\"},\n\t\"spec\": {\n\t\t\"containers\": [\n\t\t\t{\"name\": \"a\",\n\t\t\t \"imag\": \"a\", \"tty\": true,\n\"tty\": false}\n]}}", []string{
			`web.yaml:8: pod a: spec.containers[0].tty: is given twice (keep one)`,
			`web.yaml:7: pod a: spec.containers[0].imag: unknown field (did you mean "image"?)`,
			`web.yaml:6: pod a: spec.containers[0].image: required value (say which image to run)`,
		}},
		{"a tab", strings.Replace(web, "    image", "\timage", 1), []string{
			`web.yaml:7: found a tab character that violates indentation (indent with spaces)`,
		}},
		{"a colon", strings.Replace(web, "web:1", "web: 1", 1), []string{
			`web.yaml:8: mapping values are not allowed in this context (look at the indentation, and put texts with a colon in quotes)`,
		}},
		{"half a file", web[:len(web)/2] + "  containers: [", []string{
			`web.yaml:5: did not find expected node content`,
		}},
		{"another kind", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n", []string{
			`web.yaml:1: deployment web: "Deployment" of "apps/v1" is not known here (v1 Pod, ConfigMap, Secret and List and node.k8s.io/v1 RuntimeClass are; the rest needs an API server)`,
		}},
		{"no kind", "metadata: {name: web}\n", []string{
			`web.yaml:1: has no apiVersion and kind (give apiVersion: v1 and kind: Pod)`,
		}},
		{"no object", "just some text\n", []string{
			`web.yaml:1: is no object (begin with apiVersion: v1 and kind: Pod)`,
		}},
		{"a list of objects that is none", "- apiVersion: v1\n", []string{
			`web.yaml:1: is no object (begin with apiVersion: v1 and kind: Pod)`,
		}},
		{"nothing", " \n\n", []string{
			`web.yaml: is empty (remove it if nothing of it is wanted)`,
		}},
		{"nothing but comments", "# replicas: 0\n---\n", nil},
		{"binary", "\x7fELF\x00\x01", []string{
			`web.yaml:1: control characters are not allowed (a manifest is text in UTF-8)`,
		}},
		{"two objects without a line between", "{a: b}\n{c: d}\n", []string{
			`web.yaml:1: there is something behind the document (put --- between documents)`,
		}},
		{"a Secret's data", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata:\n  password: hunter2!\n", []string{
			`web.yaml:5: secret s: data.password: is no base64 (encode it, or in a Secret put it under stringData as it is)`,
		}},
		{"a ConfigMap's keys", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a/b: x\n", []string{
			`web.yaml:5: configmap c: data[a/b]: invalid value: "a/b" (a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+'))`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, got := fromFile().lines(c.text)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLoose shows that fields that are not known, and kinds, are let pass with a warning, and nothing else is. B118
func TestLoose(t *testing.T) {
	loose := fromFile()
	loose.strict = false
	c, got := loose.lines(strings.Replace(web, "name: web\n", "name: web\n  restartPolicy: Never\n  name: web\n", 1) +
		"---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\n")
	want := []string{
		"warning: web.yaml:6: pod web: metadata.name: is given twice (keep one)",
		"warning: web.yaml:5: pod web: metadata.restartPolicy: unknown field (it belongs to spec.restartPolicy)",
		`warning: web.yaml:12: service web: "Service" of "v1" is not known here (v1 Pod, ConfigMap, Secret and List and node.k8s.io/v1 RuntimeClass are; the rest needs an API server)`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(c.pods) != 1 || c.pods[0].Spec.RestartPolicy != corev1.RestartPolicyAlways {
		t.Errorf("got %v", c.pods)
	}
	for _, bad := range []string{
		strings.Replace(web, "web:1", "''", 1), strings.Replace(web, "web:1", "1", 1), web + "  serviceAccountName: a\n", web + " x",
	} {
		if _, problems := loose.decode("web.yaml", []byte(bad), start); usable(problems) {
			t.Errorf("it is used:\n%s", bad)
		}
	}
}

// TestManyProblems shows that what is said of one file has an end, and that what is not said counts.
func TestManyProblems(t *testing.T) {
	loose := fromFile()
	loose.strict = false
	text := web
	for i := range 50 {
		text += fmt.Sprintf("  unknown%d: 1\n", i)
	}
	_, got := loose.decode("web.yaml", []byte(text), start)
	if last := got[len(got)-1]; len(got) != maxProblems+1 || last.Message != "there are 30 problems more" || !usable(got) {
		t.Errorf("%d, the last: %v", len(got), last)
	}
	if _, got := loose.decode("web.yaml", []byte(text+"---\n- x"), start); usable(got) {
		t.Error("an error among what is not said is passed over")
	}
}

// TestPod shows what a pod of a file is given, and what is left out.
func TestPod(t *testing.T) {
	text := `
apiVersion: v1
kind: Pod
metadata:
  name: web
  annotations: {a: b}
  resourceVersion: "5"
  deletionTimestamp: 2026-01-01T00:00:00Z
  deletionGracePeriodSeconds: 0
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: x}]
  managedFields: [{manager: x}]
  creationTimestamp: null
spec:
  nodeName: elsewhere
  tolerations: [{operator: Exists, effect: NoSchedule}]
  containers: [{name: main, image: "web:1", securityContext: {privileged: yes}, resources: {limits: {memory: 1Gi}}}]
  volumes: [{name: v, configMap: {name: c, defaultMode: 0400}}]
status: {phase: Failed}
`
	c, lines := fromFile().lines(text)
	if len(lines) > 0 || len(c.pods) != 1 {
		t.Fatalf("got %d pods, %v", len(c.pods), lines)
	}
	pod := c.pods[0]
	if len(pod.UID) != 32 || strings.Trim(string(pod.UID), "0123456789abcdef") != "" {
		t.Errorf("the UID is %q", pod.UID)
	}
	meta := metav1.ObjectMeta{
		Namespace: "default", Name: "web-node1", UID: pod.UID,
		Annotations: map[string]string{
			"a": "b", podmill.AnnotationConfigSource: "file", podmill.AnnotationConfigHash: string(pod.UID), podmill.AnnotationConfigSeen: "2026-01-02T15:04:05Z",
		},
	}
	if diff := cmp.Diff(meta, pod.ObjectMeta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(corev1.PodStatus{}, pod.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	tolerations := []corev1.Toleration{{Operator: "Exists", Effect: "NoSchedule"}, {Operator: "Exists", Effect: "NoExecute"}}
	if diff := cmp.Diff(tolerations, pod.Spec.Tolerations); diff != "" {
		t.Errorf("tolerations (-want +got):\n%s", diff)
	}
	// The values are those of YAML 1.1, as with Kubernetes, and defaults are filled in.
	main := pod.Spec.Containers[0]
	if !*main.SecurityContext.Privileged || *pod.Spec.Volumes[0].ConfigMap.DefaultMode != 0o400 || main.Resources.Requests.Memory().String() != "1Gi" ||
		pod.Spec.NodeName != "node1" || pod.Spec.DNSPolicy != corev1.DNSClusterFirst {
		t.Errorf("got %v", pod.Spec)
	}
}

// TestSources shows in what pods of a URL are others than those of a file.
func TestSources(t *testing.T) {
	o := fromFile()
	o.source = sourceHTTP
	c, lines := o.lines(web + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n")
	want := []string{"warning: web.yaml:10: secret s: is not used (put it into a directory of manifests)"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := c.pods[0]; got.Annotations[podmill.AnnotationConfigSource] != "http" || len(got.Spec.Tolerations) != 0 || len(c.secrets) != 0 {
		t.Errorf("got %v", got)
	}
}

// TestKinds shows all that a manifest may hold, in one file.
func TestKinds(t *testing.T) {
	c, lines := fromFile().lines("\ufeff%YAML 1.1\n---\n" + web + `
--- # a ConfigMap
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: shop}
data:
  text: |
    ---
    ...
    more
...
# nothing
---
{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}}
---
apiVersion: v1
kind: PodList
items:
- metadata: {name: one}
  spec: &spec {containers: [{name: a, image: a}]}
- metadata: {name: two}
  spec:
    <<: *spec
    hostname: two
--- {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: d}}]}
---
`)
	if len(lines) > 0 {
		t.Fatalf("got %v", lines)
	}
	var got []string
	for _, pod := range c.pods {
		got = append(got, "pod "+pod.Namespace+"/"+pod.Name+" "+pod.Spec.Containers[0].Image+" "+pod.Spec.Hostname)
	}
	for _, m := range c.configMaps {
		got = append(got, "configmap "+m.Namespace+"/"+m.Name+" "+m.Data["text"])
	}
	for _, s := range c.secrets {
		got = append(got, "secret "+s.Namespace+"/"+s.Name+" "+string(s.Data["a"])+" "+string(s.Type))
	}
	want := []string{
		"pod default/web-node1 web:1 ", "pod default/one-node1 a ", "pod default/two-node1 a two",
		"configmap shop/c ---\n...\nmore\n", "configmap default/d ", "secret default/s b Opaque",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBombs shows that aliases, depth and size cost neither memory nor time.
func TestBombs(t *testing.T) {
	laughs := "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n"
	for i := 1; i < 20; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9))
	}
	for _, c := range []struct{ name, text, want string }{
		{"a billion laughs", laughs, "web.yaml:1: its aliases make it larger than 10 MiB"},
		{"a large text again and again", "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a, ", 20) + "]\n", "web.yaml:1: its aliases make it larger than 10 MiB"},
		{"an alias of what it is in", "a: &a [*a]\n", "web.yaml:1: the alias *a is part of what it stands for"},
		{"merges", "a: &a {x: " + strings.Repeat("y", 1<<20) + "}\n" + strings.Repeat("b:\n  <<: *a\n", 20), "web.yaml:1: its aliases make it larger than 10 MiB"},
		{"lists in lists", strings.Repeat("[", 20000), "web.yaml:1: exceeded max depth of 10000"},
		{"lists in lists, in JSON", `{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "}", "web.yaml:1: exceeded max depth of 10000"},
		{"lists in lists, below each other", strings.Repeat("- ", 20000), "web.yaml:1: exceeded max depth of 10000"},
		{"many documents", strings.Repeat("---\na: b\n", 1000), "web.yaml: there are 980 problems more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, got := fromFile().lines(c.text)
			if len(got) == 0 || got[len(got)-1] != c.want {
				t.Errorf("got %.300v, want %s", got, c.want)
			}
		})
	}
}

// TestSecretsAreNotShown shows that what is wrong with a Secret is said without what it holds, also of a value of a wrong type.
func TestSecretsAreNotShown(t *testing.T) {
	const canary = "hunter2"
	for _, data := range []string{
		"data: {a: '" + canary + "!'}", "data: {a: [" + canary + "]}", "stringData: {a: {" + canary + ": b}}", "stringData: [" + canary + "]",
		"data: {a/b: " + canary + "}", "type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: " + canary + "}",
	} {
		_, got := fromFile().lines("{apiVersion: v1, kind: Secret, metadata: {name: s}, " + data + "}")
		if len(got) == 0 || strings.Contains(strings.Join(got, "\n"), canary) {
			t.Errorf("%s: got %q", data, got)
		}
	}
}

// What an agent does not serve is reported as what is wrong is, where it stands in the file.
func TestACheckHasFileAndLine(t *testing.T) {
	o := fromFile()
	o.check = func(*corev1.Pod) field.ErrorList {
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "containers").Index(0).Child("image"), "nothing serves it here")}
	}
	content, lines := o.lines(web)
	want := []string{"web.yaml:8: pod web: spec.containers[0].image: forbidden (nothing serves it here)"}
	if diff := cmp.Diff(want, lines); diff != "" || len(content.pods) > 0 {
		t.Errorf("%d pods, and (-want +got):\n%s", len(content.pods), diff)
	}
}
