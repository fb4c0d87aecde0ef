package podmilltest

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PodOption changes a pod that [Pod] makes. It is a plain function, so that a test writes what has no name here in place.
type PodOption func(*corev1.Pod)

// ContainerOption changes a container that [Container] makes.
type ContainerOption func(*corev1.Container)

// Pod returns a pod, with the API's defaults. name is "namespace/name", or a name in the namespace "default". Its UID is made of the
// two, unless [UID] gives another.
func Pod(name string, opts ...PodOption) *corev1.Pod {
	namespace, short, ok := strings.Cut(name, "/")
	if !ok {
		namespace, short = "default", name
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: short, UID: uidOf(namespace + "/" + short)}}
	for _, opt := range opts {
		opt(pod)
	}
	setDefaults(pod)
	return pod
}

// uidOf makes a UID of a name: of the usual form, and the same in every run.
func uidOf(name string) types.UID {
	sum := sha256.Sum256([]byte(name))
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}

// Edit returns a copy of a pod with changes: the next version of the same pod.
func Edit(pod *corev1.Pod, opts ...PodOption) *corev1.Pod {
	pod = pod.DeepCopy()
	for _, opt := range opts {
		opt(pod)
	}
	setDefaults(pod)
	return pod
}

// Container adds a container.
func Container(name, image string, opts ...ContainerOption) PodOption {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers = append(pod.Spec.Containers, newContainer(name, image, opts))
	}
}

// InitContainer adds an init container.
func InitContainer(name, image string, opts ...ContainerOption) PodOption {
	return func(pod *corev1.Pod) {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, newContainer(name, image, opts))
	}
}

// Sidecar adds an init container that goes on running.
func Sidecar(name, image string, opts ...ContainerOption) PodOption {
	return func(pod *corev1.Pod) {
		c := newContainer(name, image, opts)
		policy := corev1.ContainerRestartPolicyAlways
		c.RestartPolicy = &policy
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
}

func newContainer(name, image string, opts []ContainerOption) corev1.Container {
	c := corev1.Container{Name: name, Image: image}
	for _, opt := range opts {
		opt(&c)
	}
	return c
}

// UID gives the pod another UID.
func UID(uid types.UID) PodOption { return func(pod *corev1.Pod) { pod.UID = uid } }

// Label adds a label.
func Label(key, value string) PodOption {
	return func(pod *corev1.Pod) { metav1.SetMetaDataLabel(&pod.ObjectMeta, key, value) }
}

// Annotation adds an annotation.
func Annotation(key, value string) PodOption {
	return func(pod *corev1.Pod) { metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value) }
}

// Restart sets the restart policy.
func Restart(policy corev1.RestartPolicy) PodOption {
	return func(pod *corev1.Pod) { pod.Spec.RestartPolicy = policy }
}

// Grace sets the termination grace period, in whole seconds.
func Grace(d time.Duration) PodOption {
	seconds := int64(d / time.Second)
	return func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = &seconds }
}

// Deleted marks the pod as one that was deleted, now, with a grace period in whole seconds.
func Deleted(grace time.Duration) PodOption {
	seconds := int64(grace / time.Second)
	return func(pod *corev1.Pod) {
		at := metav1.NewTime(time.Now().Add(grace))
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &seconds
	}
}

// HostNetwork puts the pod in the host's network.
func HostNetwork() PodOption { return func(pod *corev1.Pod) { pod.Spec.HostNetwork = true } }

// Volume adds a volume.
func Volume(name string, source corev1.VolumeSource) PodOption {
	return func(pod *corev1.Pod) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	}
}

// Command sets the container's command.
func Command(command ...string) ContainerOption {
	return func(c *corev1.Container) { c.Command = command }
}

// Runs sets the container's command to a script; see the package documentation for what the in-memory runtime knows of the shell.
func Runs(script string) ContainerOption { return Command(Script(script)...) }

// Args sets the container's arguments.
func Args(args ...string) ContainerOption {
	return func(c *corev1.Container) { c.Args = args }
}

// Env adds an environment variable.
func Env(name, value string) ContainerOption {
	return func(c *corev1.Container) { c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value}) }
}

// Pull sets the image pull policy.
func Pull(policy corev1.PullPolicy) ContainerOption {
	return func(c *corev1.Container) { c.ImagePullPolicy = policy }
}

// VolumeMount mounts the pod's volume of that name at a path.
func VolumeMount(name, path string) ContainerOption {
	return func(c *corev1.Container) {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path})
	}
}
