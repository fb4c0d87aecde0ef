package staticpod

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podspec"
)

// pod completes a pod as the kubelet does one of a file, and takes it if it is valid.
func (d *decoder) pod(pod *corev1.Pod, data []byte, name string, from *source) {
	hash := contentHash(data, d.node)
	if pod.UID == "" {
		pod.UID = types.UID(hash)
	}
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	if pod.Name != "" {
		pod.Name += "-" + strings.ToLower(d.node)
	}
	pod.Spec.NodeName = d.node
	pod.Status = corev1.PodStatus{}
	pod.Annotations = withAnnotations(pod.Annotations, map[string]string{
		podmill.AnnotationConfigHash:   hash,
		podmill.AnnotationConfigSource: d.source,
		podmill.AnnotationConfigSeen:   time.Now().Format(time.RFC3339Nano),
	})
	everything := corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	if !slices.Contains(pod.Spec.Tolerations, everything) {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, everything)
	}
	podspec.Default(pod)
	if d.invalid(append(podspec.Validate(pod), podspec.ValidateStatic(pod)...), name, from) {
		return
	}
	d.found.pods = append(d.found.pods, pod)
}

func withAnnotations(annotations, more map[string]string) map[string]string {
	all := make(map[string]string, len(annotations)+len(more))
	for _, m := range []map[string]string{annotations, more} {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}

// contentHash is the identity of a manifest's content on a node. It is made of the decoded content, before defaults, so that neither layout nor the order of
// fields counts, nor a field that a later version of the API adds.
func contentHash(data []byte, node string) string {
	var content map[string]any
	if err := json.Unmarshal(data, &content); err != nil {
		content = nil // it was decoded before
	}
	delete(content, "status")
	canonical, err := json.Marshal(content)
	if err != nil {
		canonical = data
	}
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "host:%s\n", node)
	_, _ = h.Write(canonical)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func (d *decoder) configMap(m *corev1.ConfigMap, name string, from *source) {
	if m.Namespace == "" {
		m.Namespace = metav1.NamespaceDefault
	}
	if !d.invalid(podspec.ValidateConfigMap(m), name, from) {
		d.found.configMaps = append(d.found.configMaps, m)
	}
}

func (d *decoder) secret(s *corev1.Secret, name string, from *source) {
	if s.Namespace == "" {
		s.Namespace = metav1.NamespaceDefault
	}
	podspec.DefaultSecret(s)
	if !d.invalid(podspec.ValidateSecret(s), name, from) {
		d.found.secrets = append(d.found.secrets, s)
	}
}

// invalid notes what a validation has found, and reports whether it was anything.
func (d *decoder) invalid(errs field.ErrorList, name string, from *source) bool {
	for _, err := range errs {
		d.say(from.lineOf(err.Field), name, err.Field, "%s", err.ErrorBody())
	}
	return len(errs) > 0
}
