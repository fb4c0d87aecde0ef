package env

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/downward"
)

// Input is what a container's environment is made of.
type Input struct {
	Pod       *corev1.Pod
	Container *corev1.Container
	// PodIPs and HostIPs are the addresses of the pod and of its node, the primary one first. A field that needs one that
	// is not known is an error.
	PodIPs, HostIPs []string
	// Allocatable is what the node has for pods: the limit of a container that has none.
	Allocatable corev1.ResourceList
	// ConfigMap and Secret return the object of that name in the pod's namespace, podmill.ErrNotFound if there is none. A
	// reference to a kind whose function is nil is an error.
	ConfigMap func(name string) (*corev1.ConfigMap, error)
	Secret    func(name string) (*corev1.Secret, error)
	// File returns a file of a volume of the pod, podmill.ErrNotFound if there is none. A reference to one where the function is nil is an error.
	File func(volume, path string) ([]byte, error)
	// Services returns the Services of the pod's namespace and that of the API server; nil is none.
	Services func() ([]*corev1.Service, error)
}

// Resolve returns the variables of a container, each name once. The error is a *podmill.ReasonError.
func Resolve(in Input) ([]podmill.EnvVar, error) {
	r := resolver{Input: in, index: map[string]int{}, objects: map[string]content{}}
	if in.Services != nil {
		services, err := in.Services()
		if err != nil {
			return nil, configError("services have not yet been read at least once, cannot construct envvars: %w", err)
		}
		for _, v := range Services(in.Pod, services) {
			r.set(v.Name, v.Value)
		}
	}
	for i := range in.Container.EnvFrom {
		if err := r.addSource(&in.Container.EnvFrom[i]); err != nil {
			return nil, configError("envFrom[%d]: %w", i, err)
		}
	}
	for i := range in.Container.Env {
		if err := r.addVar(&in.Container.Env[i]); err != nil {
			return nil, configError("env %s: %w", in.Container.Env[i].Name, err)
		}
	}
	return r.vars, nil
}

// Command returns the container's command and arguments with its variables put in. Each is empty where the container leaves it to its image.
func Command(c *corev1.Container, vars []podmill.EnvVar) (command, args []string) {
	values := valuesOf(vars)
	lookup := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	return expandAll(c.Command, lookup), expandAll(c.Args, lookup)
}

// SubPath returns a subPathExpr with a container's variables put in, and the names of those that are not known or empty, sorted.
func SubPath(expr string, vars []podmill.EnvVar) (path string, missing []string) {
	values := valuesOf(vars)
	path = Expand(expr, func(name string) (string, bool) {
		value := values[name]
		if value == "" && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
		return value, true
	})
	slices.Sort(missing)
	return path, missing
}

func valuesOf(vars []podmill.EnvVar) map[string]string {
	values := make(map[string]string, len(vars))
	for _, v := range vars {
		values[v.Name] = v.Value
	}
	return values
}

type resolver struct {
	Input
	vars    []podmill.EnvVar
	index   map[string]int     // of a name in vars
	objects map[string]content // by kind and name
}

// content is the keys of a ConfigMap or Secret, or the text of a file, and nothing if there is no such object.
type content struct {
	data  map[string]string
	text  []byte
	found bool
}

func (r *resolver) set(name, value string) {
	if i, ok := r.index[name]; ok {
		r.vars[i].Value = value
		return
	}
	r.index[name] = len(r.vars)
	r.vars = append(r.vars, podmill.EnvVar{Name: name, Value: value})
}

func (r *resolver) lookup(name string) (string, bool) {
	i, ok := r.index[name]
	if !ok {
		return "", false
	}
	return r.vars[i].Value, true
}

func (r *resolver) addSource(from *corev1.EnvFromSource) error {
	var kind, name string
	var optional *bool
	switch {
	case from.ConfigMapRef != nil:
		kind, name, optional = "configMap", from.ConfigMapRef.Name, from.ConfigMapRef.Optional
	case from.SecretRef != nil:
		kind, name, optional = "secret", from.SecretRef.Name, from.SecretRef.Optional
	default:
		return errors.New("names neither a configMap nor a secret")
	}
	object, err := r.object(kind, name)
	if err != nil {
		return err
	}
	if !object.found {
		return missing(optional, "%s %q not found", strings.ToLower(kind), name)
	}
	for _, key := range slices.Sorted(maps.Keys(object.data)) {
		r.set(from.Prefix+key, object.data[key])
	}
	return nil
}

// addVar adds one variable; one whose optional source is missing is left out.
func (r *resolver) addVar(v *corev1.EnvVar) error {
	if v.ValueFrom == nil {
		r.set(v.Name, Expand(v.Value, r.lookup))
		return nil
	}
	var value string
	var err error
	switch from := v.ValueFrom; {
	case from.FieldRef != nil:
		value, err = r.field(from.FieldRef.FieldPath)
	case from.ResourceFieldRef != nil:
		value, err = downward.Resource(r.Pod, r.Container.Name, from.ResourceFieldRef, r.Allocatable)
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		return r.addKey(v.Name, "configMap", ref.Name, ref.Key, ref.Optional)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		return r.addKey(v.Name, "secret", ref.Name, ref.Key, ref.Optional)
	case from.FileKeyRef != nil:
		return r.addFileKey(v.Name, from.FileKeyRef)
	default:
		err = errors.New("valueFrom names no source")
	}
	if err == nil {
		r.set(v.Name, value)
	}
	return err
}

func (r *resolver) addKey(variable, kind, name, key string, optional *bool) error {
	object, err := r.object(kind, name)
	if err != nil {
		return err
	}
	if !object.found {
		return missing(optional, "%s %q not found", strings.ToLower(kind), name)
	}
	value, ok := object.data[key]
	if !ok {
		return missing(optional, "couldn't find key %s in %s %s/%s", key, strings.ToUpper(kind[:1])+kind[1:], r.Pod.Namespace, name)
	}
	r.set(variable, value)
	return nil
}

// object returns what an object holds. Only "not found" makes it missing: a provider that cannot tell is an error, also for
// an optional reference, or a container would start without what it will find there a moment later.
func (r *resolver) object(kind, name string) (content, error) {
	id := kind + "/" + name
	if c, ok := r.objects[id]; ok {
		return c, nil
	}
	found, err := r.fetch(kind, name)
	if err != nil && !errors.Is(err, podmill.ErrNotFound) {
		return content{}, fmt.Errorf("%s %q: %w", strings.ToLower(kind), name, err)
	}
	found.found = err == nil
	r.objects[id] = found
	return found, nil
}

func (r *resolver) fetch(kind, name string) (content, error) {
	switch {
	case kind == "configMap" && r.ConfigMap != nil:
		o, err := r.ConfigMap(name)
		if err != nil {
			return content{}, err
		}
		return content{data: o.Data}, nil
	case kind == "secret" && r.Secret != nil:
		o, err := r.Secret(name)
		if err != nil {
			return content{}, err
		}
		data := make(map[string]string, len(o.Data))
		for k, v := range o.Data {
			data[k] = string(v)
		}
		return content{data: data}, nil
	case kind == "file" && r.File != nil:
		volume, path, _ := strings.Cut(name, "/")
		text, err := r.File(volume, path)
		return content{text: text}, err
	}
	return content{}, errors.New("nothing provides such objects here")
}

// missing is an error unless the reference is optional.
func missing(optional *bool, format string, args ...any) error {
	if optional != nil && *optional {
		return nil
	}
	return fmt.Errorf(format, args...)
}

func configError(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &podmill.ReasonError{Reason: "CreateContainerConfigError", Message: err.Error(), Err: err}
}
