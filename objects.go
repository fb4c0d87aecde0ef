package podmill

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
)

// ConfigMaps gives the ConfigMaps that pods refer to. What it returns is shared and read-only.
type ConfigMaps interface {
	// ConfigMap returns a ConfigMap, ErrNotFound if there is none of that name, and any other error if it cannot tell.
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
}

// Secrets gives the Secrets that pods refer to. What it returns is shared and read-only.
type Secrets interface {
	// Secret returns a Secret, ErrNotFound if there is none of that name, and any other error if it cannot tell.
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// Services gives the Services that containers find in their environment. What it returns is shared and read-only.
type Services interface {
	// Services returns the Services of a namespace and kubernetes in the namespace default, and an error while it cannot tell.
	Services(ctx context.Context, namespace string) ([]*corev1.Service, error)
}

// RuntimeClasses gives the RuntimeClasses that pods name. What it returns is shared and read-only.
type RuntimeClasses interface {
	// RuntimeClass returns a RuntimeClass, ErrNotFound if there is none of that name, and any other error if it cannot tell. It returns soon: the start of a pod waits
	// for it.
	RuntimeClass(ctx context.Context, name string) (*nodev1.RuntimeClass, error)
}

// ObjectWatcher is an optional role of a provider of objects: it says when one has changed.
type ObjectWatcher interface {
	// WatchObjects calls changed for each object that may have changed, appeared or gone, until ctx ends. changed returns at
	// once. Several watchers may run at a time.
	WatchObjects(ctx context.Context, changed func(ObjectRef)) error
}

// ObjectRef names an object that a pod may refer to.
type ObjectRef struct {
	Kind      string // "ConfigMap", "Secret", "PersistentVolumeClaim" or "RuntimeClass"
	Namespace string // empty where there is none
	Name      string
}
