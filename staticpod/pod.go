package staticpod

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podspec"
)

// pod takes a pod and gives it what the kubelet gives one of a file.
func (o *object) pod() {
	pod := &corev1.Pod{}
	if !o.into(pod) {
		return
	}
	if pod.Name == "" {
		o.say(Problem{Line: o.place.find("metadata").line, Object: o.name, Field: "metadata.name", Message: "is missing", Cure: "give the pod a name"})
		return
	}
	if pod.UID == "" {
		pod.UID = o.uid(o.value)
	} else if !regexp.MustCompile(`^[a-zA-Z0-9][-a-zA-Z0-9]{0,62}$`).MatchString(string(pod.UID)) { // directories are named by it
		o.say(Problem{
			Line: o.place.find("metadata.uid").line, Object: o.name, Field: "metadata.uid", Message: "is no UID",
			Cure: "leave it out, or give letters, digits and dashes",
		})
		return
	}
	// What only a server says of a pod is not of this one, but of where somebody has copied it from.
	pod.Status = corev1.PodStatus{}
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = nil, nil
	pod.ResourceVersion, pod.ManagedFields, pod.OwnerReferences, pod.GenerateName = "", nil, nil, ""

	pod.Namespace = namespaceOf(pod)
	pod.Name += "-" + strings.ToLower(o.node)
	pod.Spec.NodeName = o.node
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[podmill.AnnotationConfigSource] = o.source
	pod.Annotations[podmill.AnnotationConfigHash] = string(pod.UID)
	pod.Annotations[podmill.AnnotationConfigSeen] = o.now.Format(time.RFC3339Nano)
	if o.source == sourceFile {
		tolerate(pod)
	}
	podspec.Default(pod)
	if o.valid(podspec.Validate(pod), podspec.ValidateStatic(pod), o.check(pod)) {
		o.content.pods = append(o.content.pods, pod)
	}
}

// tolerate keeps a pod of a file on its node whatever taints that has.
func tolerate(pod *corev1.Pod) {
	all := corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	if !slices.Contains(pod.Spec.Tolerations, all) {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, all)
	}
}

// uid returns the identity of a pod: of what its manifest says, where manifests come from, and for which node. It is made of the decoded
// values, before defaults: neither layout nor the order of fields counts, nor the name of the file, nor what a later version of the API
// adds. It looks like the kubelet's.
func (o origin) uid(value map[string]any) types.UID {
	said := maps.Clone(value)
	for _, key := range []string{"apiVersion", "kind", "status"} {
		delete(said, key)
	}
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s\x00%s\x00%s\x00", o.node, o.source, o.location)
	if err := json.NewEncoder(h).Encode(withoutNull(said)); err != nil {
		_, _ = fmt.Fprint(h, err) // cannot be: it was JSON before
	}
	return types.UID(hex.EncodeToString(h.Sum(nil)[:16]))
}

// withoutNull leaves out the fields of maps that are null, which says the same as not being there.
func withoutNull(value any) any {
	switch v := value.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, value := range v {
			if value != nil {
				m[key] = withoutNull(value)
			}
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = withoutNull(item)
		}
		return list
	default:
		return value
	}
}
