package staticpod

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// uidOf returns the UID of the one pod in a manifest.
func uidOf(t interface {
	Helper()
	Fatalf(string, ...any)
}, o origin, file, text string) types.UID {
	t.Helper()
	c, problems := o.decode(file, []byte(text), start)
	if len(problems) > 0 || len(c.pods) != 1 {
		t.Fatalf("%d pods, %v in\n%s", len(c.pods), problems, text)
	}
	return c.pods[0].UID
}

// TestUIDStays shows what does not make another pod of a manifest, and what does. B072
func TestUIDStays(t *testing.T) {
	uid := uidOf(t, fromFile(), "web.yaml", web)
	_, bare, _ := strings.Cut(strings.TrimSpace(web), "kind: Pod\n")
	if want := types.UID("457ff8c325d933de3947533eb09768c7"); uid != want {
		t.Errorf("the UID is %s and was %s in versions before: all pods would be started anew", uid, want)
	}
	for name, text := range map[string]string{
		"comments":        "# c\n" + web + "# d\n",
		"CRLF":            strings.ReplaceAll(web, "\n", "\r\n"),
		"a byte order":    "\ufeff" + web,
		"order of fields": "spec: {containers: [{image: \"web:1\", name: main}]}\nmetadata: {name: web}\nkind: Pod\napiVersion: v1\n",
		"JSON":            `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web"},"spec":{"containers":[{"name":"main","image":"web:1"}]}}`,
		"null":            web + "  hostname: null\n",
		"a status":        web + "status: {phase: Running}\n",
		"in a list":       "apiVersion: v1\nkind: PodList\nitems:\n- " + strings.ReplaceAll(bare, "\n", "\n  ") + "\n",
		"an alias":        "apiVersion: v1\nkind: Pod\nmetadata: {name: &n web}\nspec: {containers: [{name: main, image: \"web:1\"}], hostname: null}\n",
	} {
		if got := uidOf(t, fromFile(), "web.yaml", text); got != uid {
			t.Errorf("%s: the UID is %s, not %s", name, got, uid)
		}
	}
	if got := uidOf(t, fromFile(), "renamed.json", web); got != uid {
		t.Errorf("another name of the file: the UID is %s, not %s", got, uid)
	}

	others := map[types.UID]string{uid: "the pod itself"}
	other := func(name string, o origin, text string) {
		t.Helper()
		got := uidOf(t, o, "web.yaml", text)
		if before, ok := others[got]; ok {
			t.Errorf("%s: the UID is that of %s", name, before)
		}
		others[got] = name
	}
	other("another image", fromFile(), strings.Replace(web, "web:1", "web:2", 1))
	other("a label more", fromFile(), strings.Replace(web, "name: web\n", "name: web\n  labels: {a: b}\n", 1))
	other("a text for a number", fromFile(), web+"    env: [{name: A, value: \"1\"}]\n")
	other("another order of a list", fromFile(), web+"    args: [a, b]\n")
	other("that order", fromFile(), web+"    args: [b, a]\n")
	o := fromFile()
	o.node = "node2"
	other("another node", o, web)
	o = fromFile()
	o.location = "/elsewhere"
	other("another directory", o, web)
	o = fromFile()
	o.source = sourceHTTP
	other("a URL", o, web)

	if got := uidOf(t, fromFile(), "web.yaml", strings.Replace(web, "name: web\n", "name: web\n  uid: 7d1\n", 1)); got != "7d1" {
		t.Errorf("a UID that is given is %s", got)
	}
}

// TestUIDOfAnything shows, for pods with anything in them, that the UID stays over another order of fields, YAML or JSON, indentation and another
// reader's way to write, and changes with any value. B072
func TestUIDOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ -~äß\n\t]{0,20}`)
		labels := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,8}(\.[a-z]{1,5}/[a-z]{1,5})?`), rapid.StringMatching(`([a-z0-9]([-a-z0-9._]{0,10}[a-z0-9])?)?`), 0, 4)
		pod := map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"name": "web", "labels": labels.Draw(t, "labels"), "annotations": map[string]any{"a": text.Draw(t, "annotation")}},
			"spec": map[string]any{
				"terminationGracePeriodSeconds": rapid.Int64Range(0, 1<<40).Draw(t, "grace"),
				"hostNetwork":                   rapid.Bool().Draw(t, "hostNetwork"),
				"containers": []any{map[string]any{
					"name": "main", "image": "web:1", "args": rapid.SliceOfN(text, 0, 3).Draw(t, "args"),
					"env":       []any{map[string]any{"name": "A", "value": rapid.SampledFrom([]string{"yes", "1", "null", "~", "0x1", "1e3", ""}).Draw(t, "value")}},
					"resources": map[string]any{"limits": map[string]any{"cpu": rapid.SampledFrom([]any{1, 0.5, "100m"}).Draw(t, "cpu")}},
				}},
			},
		}
		asJSON, err := json.MarshalIndent(pod, "", rapid.SampledFrom([]string{"", " ", "\t"}).Draw(t, "indent"))
		if err != nil {
			t.Fatal(err)
		}
		asYAML, err := yaml.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		uid := uidOf(t, fromFile(), "web.json", string(asJSON))
		if got := uidOf(t, fromFile(), "web.yaml", string(asYAML)); got != uid {
			t.Fatalf("as YAML it is %s, not %s:\n%s", got, uid, asYAML)
		}
		shuffled := shuffle(pod, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		if got := uidOf(t, fromFile(), "web.json", shuffled); got != uid {
			t.Fatalf("in another order it is %s, not %s:\n%s", got, uid, shuffled)
		}
		pod["spec"].(map[string]any)["hostname"] = "other"
		changed, err := yaml.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		if uidOf(t, fromFile(), "web.yaml", string(changed)) == uid {
			t.Fatal("another pod has the same UID")
		}
	})
}

// shuffle writes JSON with the fields of maps in any order.
func shuffle(value any, random *rand.Rand) string {
	switch v := value.(type) {
	case map[string]any:
		fields := []string{}
		for _, key := range sortedKeys(v) {
			name, _ := json.Marshal(key)
			fields = append(fields, fmt.Sprintf("%s : %s", name, shuffle(v[key], random)))
		}
		random.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		return "{" + strings.Join(fields, ",\n") + "}"
	case []any:
		items := []string{}
		for _, item := range v {
			items = append(items, shuffle(item, random))
		}
		return "[" + strings.Join(items, ", ") + "]"
	default:
		data, _ := json.Marshal(v)
		return string(data)
	}
}

// FuzzManifest shows that no manifest makes decoding, defaults or validation panic, and that a pod that is run would be run again if it were written
// out and read: as YAML, without a complaint, with the same spec and the same UID each time.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(web))
	f.Add([]byte(web + "---\n" + web))
	f.Add([]byte("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"},\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"a\"}]}}"))
	f.Add([]byte("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: eA==}}\n- &a {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n"))
	f.Add([]byte(web + "    env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.labels['a']}}}]\n    resources: {limits: {cpu: 1, hugepages-2Mi: 2Mi}}\n" +
		"    livenessProbe: {httpGet: {port: http}}\n    volumeMounts: [{name: v, mountPath: /v}]\n  volumes: [{name: v, projected: {sources: [{configMap: {name: c}}]}}]\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("%YAML 1.1\n--- # x\n...\n\t"))
	f.Fuzz(func(t *testing.T, data []byte) {
		strict, loose := fromFile(), fromFile()
		loose.strict = false
		_, _ = loose.decode("web.yaml", data, start)
		c, problems := strict.decode("web.yaml", data, start)
		if !usable(problems) {
			return
		}
		for _, pod := range c.pods {
			again := pod.DeepCopy()
			again.TypeMeta.APIVersion, again.TypeMeta.Kind = "v1", "Pod"
			again.Name = strings.TrimSuffix(again.Name, "-node1")
			text, err := yaml.Marshal(again)
			if err != nil {
				t.Fatal(err)
			}
			second, problems := strict.decode("web.yaml", text, start)
			if len(problems) > 0 || len(second.pods) != 1 {
				t.Fatalf("%v in\n%s", problems, text)
			}
			if got := second.pods[0]; got.UID != pod.UID || !samePod(pod, got) {
				t.Fatalf("it is another pod:\n%s", text)
			}
		}
	})
}
