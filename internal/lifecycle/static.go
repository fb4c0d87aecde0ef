package lifecycle

import "github.com/podmill/podmill"

// API is the name of the source that an API server is, as the kubelet has it.
const API = "api"

// Static reports, by the annotations of a pod or of its sandbox, that the pod comes from elsewhere than an API server. Such a source knows it by its name, so
// that a change of it is another pod; an API server gives a name to one pod at a time, whatever has become of the one before.
func Static(annotations map[string]string) bool {
	source, ok := annotations[podmill.AnnotationConfigSource]
	return ok && source != API
}
