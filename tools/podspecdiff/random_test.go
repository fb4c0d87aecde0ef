package podspecdiff

import (
	"math/rand/v2"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// words are what texts are made of: good for one field, bad for another.
var words = append(strings.Fields(`a b main init sidecar data web empty host config -dash dash- UPPER under_score a.b a..b
	.. ../up a/../b /abs/path sub/path ..hidden ... example.com/thing kubernetes.io/thing requests.example.com/thing
	127.0.0.1 ::1 010.0.0.1 1.2.3 metadata.name metadata.labels metadata.labels['a'] metadata.annotations['B/c'] metadata.labels[''] spec.host
	spec.nodeName status.podIP status.phase limits.cpu requests.memory limits.hugepages-2Mi requests.gpu limits.ephemeral-storage 8080 http v1 v2 cluster.local. _tcp.x
	iqn.2015-02.example.com:test eui.0123456789ABCDEF naa.1 10.0.0.1:80,b:81 https://x /subscriptions/x net.ipv4.ip_forward kernel.sem net/ipv4/x kernel.msgmax user.x
	localhost/x runtime/default docker/default unconfined NAME A=B web-a web-data CAP_SYS_ADMIN NT\user a\b\c DOM/x user: example.com:signer:x :x x:y domain.io/a.b/c
	linux windows orphan 10 0 -1 008 {} [{"key":"a","operator":"Exists"}] [{"key":"_","effect":"x"}] default kube-system`),
	"", " ", " spaced ", "two words", strings.Repeat("a", 64), strings.Repeat("b", 254), strings.Repeat("c/", 130))

// keys are what maps of texts have for keys.
var keys = append([]string{
	"a", "app", "UPPER", "bad key", "example.com/a", "kubernetes.io/a", "/", "",
	corev1.MirrorPodAnnotationKey, corev1.TolerationsAnnotationKey, "controller.kubernetes.io/pod-deletion-cost",
	corev1.SeccompPodAnnotationKey, corev1.SeccompContainerAnnotationKeyPrefix + "main", corev1.SeccompContainerAnnotationKeyPrefix + "agent",
	corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + "main", corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + "nobody",
}, strings.Repeat("k", 64))

var resourceNames = strings.Fields(`cpu memory ephemeral-storage hugepages-2Mi hugepages-1Gi hugepages-x hugepages-0 storage pods gpu example.com/gpu
	requests.cpu requests.example.com/gpu kubernetes.io/x bad_/x a/b/c _ requests.hugepages-2Mi`)

var quantities = []string{"0", "1", "2", "100m", "0.0001", "-1", "1Gi", "2Mi", "3Mi", "1.5", "1m", "1k", "1Ki", "7"}

var integers = []int64{0, 1, 1, 2, 80, 100, 101, 255, 256, 511, 512, 1023, 1024, 3600, 7200, 65535, 65536, 1 << 31, -1}

// enum are the words that there are for a type.
type enum struct {
	of    reflect.Type
	words []string
}

func enumOf[T ~string](words ...T) enum {
	e := enum{of: reflect.TypeFor[T]()}
	for _, w := range words {
		e.words = append(e.words, string(w))
	}
	return e
}

var enums = func() map[reflect.Type][]string {
	all := map[reflect.Type][]string{}
	for _, e := range []enum{
		enumOf(corev1.PullAlways, corev1.PullNever, corev1.PullIfNotPresent),
		enumOf(corev1.RestartPolicyAlways, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure),
		enumOf(corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure),
		enumOf(corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers),
		enumOf(corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn),
		enumOf(corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet, corev1.DNSDefault, corev1.DNSNone),
		enumOf(corev1.TerminationMessageFallbackToLogsOnError, corev1.TerminationMessageReadFile),
		enumOf(corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP),
		enumOf(corev1.URISchemeHTTP, corev1.URISchemeHTTPS),
		enumOf(corev1.HTTPProtocolHTTP1, corev1.HTTPProtocolHTTP2),
		enumOf(corev1.GRPCProbeModePlaintext, corev1.GRPCProbeModeTLS),
		enumOf(corev1.SIGTERM, corev1.SIGKILL, corev1.SIGRTMAX, corev1.SIGRTMINPLUS15, corev1.SIGRTMAXMINUS14, "SIGRTMIN+16", "SIGRTMAX-15", "TERM"),
		enumOf(corev1.Linux, corev1.Windows),
		enumOf(corev1.MountPropagationNone, corev1.MountPropagationHostToContainer, corev1.MountPropagationBidirectional),
		enumOf(corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyEnabled, corev1.RecursiveReadOnlyIfPossible),
		enumOf(corev1.HostPathDirectory, corev1.HostPathFile, corev1.HostPathUnset, corev1.HostPathSocket),
		enumOf(corev1.StorageMediumMemory, corev1.StorageMediumDefault),
		enumOf(corev1.NotRequired, corev1.RestartContainer),
		enumOf(corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined),
		enumOf(corev1.AppArmorProfileTypeLocalhost, corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined),
		enumOf(corev1.DefaultProcMount, corev1.UnmaskedProcMount),
		enumOf(corev1.FSGroupChangeAlways, corev1.FSGroupChangeOnRootMismatch),
		enumOf(corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict),
		enumOf(corev1.SELinuxChangePolicyMountOption, corev1.SELinuxChangePolicyRecursive),
		enumOf(corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpGt, ""),
		enumOf(corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, ""),
		enumOf(corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt),
		enumOf(metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist),
		enumOf(corev1.DoNotSchedule, corev1.ScheduleAnyway),
		enumOf(corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore),
		enumOf(corev1.PreemptNever, corev1.PreemptLowerPriority),
		enumOf(corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod),
		enumOf(corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem),
		enumOf(corev1.AzureDataDiskCachingNone, corev1.AzureDataDiskCachingReadOnly),
		enumOf(corev1.AzureManagedDisk, corev1.AzureSharedBlobDisk, corev1.AzureDedicatedBlobDisk),
		enumOf(corev1.ResourceCPU, corev1.ResourceMemory),
		enumOf[corev1.Capability]("CAP_SYS_ADMIN", "NET_ADMIN", "ALL"),
		enumOf[corev1.PodConditionType]("example.com/ready", "Ready", "_"),
	} {
		all[e.of] = e.words
	}
	return all
}()

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// fill makes a value of anything.
func fill(r *rand.Rand, pod *corev1.Pod) {
	*pod = corev1.Pod{}
	fillValue(r, reflect.ValueOf(&pod.Spec).Elem(), 0)
	if r.IntN(4) > 0 {
		pod.Name, pod.Namespace = "web", "default"
	}
	if r.IntN(2) == 0 {
		pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = "", ""
	}
	if r.IntN(2) == 0 {
		pod.Annotations = map[string]string{pick(r, keys): pick(r, words)}
	}
}

func skip(name string) bool {
	switch name {
	case "ObjectMeta", "TypeMeta", "Status", "EphemeralContainers":
		return true
	}
	return false
}

func fillValue(r *rand.Rand, v reflect.Value, depth int) {
	switch x := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*x = resource.MustParse(pick(r, quantities))
		return
	case *intstr.IntOrString:
		*x = intstr.FromInt32(int32(pick(r, integers)))
		if r.IntN(2) == 0 {
			*x = intstr.FromString(pick(r, words))
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		if list := enums[v.Type()]; list != nil && r.IntN(8) > 0 {
			v.SetString(pick(r, list))
		} else {
			v.SetString(pick(r, words))
		}
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int32, reflect.Int64:
		v.SetInt(pick(r, integers))
	case reflect.Pointer:
		if r.IntN(2+depth) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fillValue(r, v.Elem(), depth+1)
		}
	case reflect.Slice:
		for range r.IntN(3) {
			v.Set(reflect.Append(v, reflect.New(v.Type().Elem()).Elem()))
			fillValue(r, v.Index(v.Len()-1), depth+1)
		}
	case reflect.Map:
		if r.IntN(2) == 0 {
			addKey(r, v, depth)
		}
	case reflect.Struct:
		oneOf := v.Type() == reflect.TypeFor[corev1.VolumeSource]() || v.Type() == reflect.TypeFor[corev1.VolumeProjection]()
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !skip(f.Name) && (!oneOf || r.IntN(v.NumField()) < 2) {
				fillValue(r, v.Field(i), depth+1)
			}
		}
	}
}

func addKey(r *rand.Rand, v reflect.Value, depth int) {
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	key := reflect.New(v.Type().Key()).Elem()
	if v.Type() == reflect.TypeFor[corev1.ResourceList]() {
		key.SetString(pick(r, resourceNames))
	} else {
		key.SetString(pick(r, keys))
	}
	value := reflect.New(v.Type().Elem()).Elem()
	fillValue(r, value, depth+1)
	v.SetMapIndex(key, value)
}

// change changes a pod in n places.
func change(r *rand.Rand, pod *corev1.Pod, n int) {
	for range n {
		switch r.IntN(12) {
		case 0:
			if pod.Annotations == nil {
				pod.Annotations = map[string]string{}
			}
			pod.Annotations[pick(r, keys)] = pick(r, words)
		case 1:
			switch r.IntN(4) {
			case 0:
				pod.Name = pick(r, words)
			case 1:
				pod.Labels = map[string]string{pick(r, keys): pick(r, words)}
			case 2:
				pod.Finalizers = []string{pick(r, words)}
			default:
				pod.Namespace = pick(r, words)
			}
		default:
			changeValue(r, reflect.ValueOf(&pod.Spec).Elem(), 0)
		}
	}
}

// changeValue goes down to a place and changes it.
func changeValue(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Addr().Interface().(type) {
	case *resource.Quantity, *intstr.IntOrString:
		fillValue(r, v, depth)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		switch {
		case v.IsNil():
			v.Set(reflect.New(v.Type().Elem()))
			fillValue(r, v.Elem(), depth)
		case r.IntN(8) == 0:
			v.SetZero()
		default:
			changeValue(r, v.Elem(), depth+1)
		}
	case reflect.Slice:
		switch n, how := v.Len(), r.IntN(8); {
		case n == 0 || how == 0:
			v.Set(reflect.Append(v, reflect.New(v.Type().Elem()).Elem()))
			fillValue(r, v.Index(v.Len()-1), depth)
		case how == 1: // once more
			v.Set(reflect.Append(v, v.Index(r.IntN(n))))
		case how == 2:
			v.SetLen(n - 1)
		default:
			changeValue(r, v.Index(r.IntN(n)), depth+1)
		}
	case reflect.Map:
		addKey(r, v, depth)
	case reflect.Struct:
		for {
			i := r.IntN(v.NumField())
			f := v.Type().Field(i)
			if !f.IsExported() || skip(f.Name) {
				continue
			}
			if empty := v.Field(i).IsZero(); empty && r.IntN(3) > 0 {
				continue // rather what is there
			}
			changeValue(r, v.Field(i), depth+1)
			return
		}
	default:
		fillValue(r, v, depth)
	}
}

// withoutObjects takes away what a static pod can have here, but not with the kubelet, and what no pod can have.
func withoutObjects(pod *corev1.Pod) {
	s := &pod.Spec
	s.ImagePullSecrets, s.EphemeralContainers = nil, nil
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			list[i].Env, list[i].EnvFrom = nil, nil
		}
	}
	var kept []corev1.Volume
	for _, v := range s.Volumes {
		var sources []corev1.VolumeProjection
		if v.Projected != nil {
			for _, source := range v.Projected.Sources {
				if source.ConfigMap == nil && source.Secret == nil && set(source) <= 1 {
					sources = append(sources, source)
				}
			}
			v.Projected.Sources = sources
		}
		object := v.ConfigMap != nil || v.Secret != nil || v.CSI != nil || v.AzureFile != nil || v.ISCSI != nil || v.CephFS != nil || v.RBD != nil ||
			v.Cinder != nil || v.ScaleIO != nil || v.FlexVolume != nil || v.StorageOS != nil
		if !object && set(v.VolumeSource) == 1 {
			kept = append(kept, v)
		}
	}
	s.Volumes = kept
}

// set counts the fields that are set of a struct of pointers.
func set(v any) (n int) {
	for i := range reflect.ValueOf(v).NumField() {
		if !reflect.ValueOf(v).Field(i).IsNil() {
			n++
		}
	}
	return n
}
