package podspec

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// resourceName checks whether somebody can ask for a resource.
type resourceName func(*problems, path, corev1.ResourceName)

// resources checks what a container or a pod asks for.
func (e *problems) resources(p path, r *corev1.ResourceRequirements, check resourceName) {
	limits, requests := p.Child("limits"), p.Child("requests")
	e.resourceList(limits, r.Limits, check)
	e.resourceList(requests, r.Requests, check)
	for _, name := range sorted(r.Requests) {
		request := r.Requests[name]
		limit, limited := r.Limits[name]
		at := requests.Key(string(name))
		switch {
		case !limited && !canOvercommit(name):
			e.required(limits.Key(string(name)), "give the limit, which must be the request: there is never more than what was asked for")
		case !limited:
		case request.Cmp(limit) > 0:
			e.invalid(at, request.String(), fmt.Sprintf("must be the limit of %s or less", limit.String()))
		case request.Cmp(limit) < 0 && !canOvercommit(name):
			e.invalid(at, request.String(), fmt.Sprintf("must be the limit of %s: there is never more than what was asked for", limit.String()))
		}
	}
	e.hugePages(p, r.Limits, r.Requests)
}

func (e *problems) resourceList(p path, list corev1.ResourceList, check resourceName) {
	for _, name := range sorted(list) {
		check(e, p.Key(string(name)), name)
		e.quantity(p.Key(string(name)), name, list[name])
	}
}

// hugePages checks that nobody asks for huge pages alone.
func (e *problems) hugePages(p path, lists ...corev1.ResourceList) {
	huge, basic := false, false
	for _, list := range lists {
		for name := range list {
			huge = huge || isHugePages(name)
			basic = basic || name == corev1.ResourceCPU || name == corev1.ResourceMemory
		}
	}
	if huge && !basic {
		e.forbidden(p, "huge pages need a request or a limit of cpu or memory")
	}
}

// canOvercommit says whether a node can promise more of a resource than it has.
func canOvercommit(name corev1.ResourceName) bool { return isNative(name) && !isHugePages(name) }

// isNative says whether a resource is one of Kubernetes' own, which need no domain.
func isNative(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// isExtended says whether a resource is one that somebody else has added to nodes.
func isExtended(name corev1.ResourceName) bool {
	const ofQuotas = corev1.DefaultResourceRequestsPrefix
	return !isNative(name) && !strings.HasPrefix(string(name), ofQuotas) && len(validation.IsQualifiedName(ofQuotas+string(name))) == 0
}

// containerResourceName checks a resource that a container asks for.
func containerResourceName(e *problems, p path, name corev1.ResourceName) {
	if messages := validation.IsQualifiedName(string(name)); len(messages) > 0 {
		e.says(p, name, messages)
		return
	}
	switch {
	case !strings.Contains(string(name), "/"):
		basic := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
		if !slices.Contains(basic, name) && !isHugePages(name) {
			e.invalid(p, name, "must be cpu, memory, ephemeral-storage, hugepages-<size>, or fully qualified, such as \"example.com/gpu\"")
		}
	case !isNative(name) && !isExtended(name):
		e.invalid(p, name, "must be fully qualified, such as \"example.com/gpu\"")
	}
}

// podResourceName checks a resource that a pod asks for as a whole.
func podResourceName(e *problems, p path, name corev1.ResourceName) {
	messages := validation.IsQualifiedName(string(name))
	e.says(p, name, messages)
	if len(messages) == 0 && !isOfPods(name) {
		e.invalid(p, name, "must be cpu, memory or hugepages-<size>: ask for others in containers")
	}
}

func (e *problems) quantity(p path, name corev1.ResourceName, q resource.Quantity) {
	if q.Sign() < 0 {
		e.invalid(p, q.String(), "must be 0 or more")
	}
	if isExtended(name) && q.MilliValue()%1000 != 0 {
		e.invalid(p, q.String(), "must be a whole number")
	}
	if size, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix); ok {
		page, err := resource.ParseQuantity(size)
		if err != nil || page.Sign() <= 0 || page.MilliValue()%1000 != 0 || q.Value()%page.Value() != 0 {
			e.invalid(p, q.String(), fmt.Sprintf("must be a multiple of %s", name))
		}
	}
}

// podResources checks what the pod asks for as a whole (KEP-2837), which must be enough for its containers.
func (c *checker) podResources(spec path) {
	r := c.spec.Resources
	if r == nil {
		return
	}
	p := spec.Child("resources")
	if c.isWindows() {
		c.absent(spec, corev1.Windows, use{"resources", true})
		return
	}
	if r.Claims != nil {
		c.forbidden(p.Child("claims"), "containers have claims, not the pod")
	}
	c.claimNames(p.Child("claims"), r.Claims)
	c.resources(p, r, podResourceName)
	c.enough(p.Child("requests"), r.Requests, containerRequests(c.pod))
	limits := containerLimits(c.pod)
	for name := range limits {
		if !isHugePages(name) {
			delete(limits, name)
		}
	}
	c.enough(p.Child("limits"), r.Limits, limits)
	for i := range c.spec.Containers {
		list := c.spec.Containers[i].Resources.Limits
		for _, name := range sorted(list) {
			limit := list[name]
			if most, ok := r.Limits[name]; ok && limit.Cmp(most) > 0 {
				c.invalid(spec.Child("containers").Index(i).Child("resources", "limits").Key(string(name)), limit.String(),
					fmt.Sprintf("must be the pod's limit of %s or less", most.String()))
			}
		}
	}
}

func (c *checker) enough(p path, list, needed corev1.ResourceList) {
	for _, name := range sorted(needed) {
		need := needed[name]
		if q, ok := list[name]; ok && need.Cmp(q) > 0 {
			c.invalid(p.Key(string(name)), q.String(), fmt.Sprintf("must be %s or more, which the containers need together", need.String()))
		}
	}
}

func (c *checker) resizePolicy(p path, policies []corev1.ContainerResizePolicy) {
	e := &c.problems
	seen := map[corev1.ResourceName]bool{}
	for i, policy := range policies {
		at := p.Index(i)
		oneOf(e, at.Child("resourceName"), policy.ResourceName, corev1.ResourceCPU, corev1.ResourceMemory)
		oneOf(e, at.Child("restartPolicy"), policy.RestartPolicy, corev1.NotRequired, corev1.RestartContainer)
		if seen[policy.ResourceName] {
			e.duplicate(at.Child("resourceName"), policy.ResourceName)
		}
		seen[policy.ResourceName] = true
		if c.spec.RestartPolicy == corev1.RestartPolicyNever && policy.RestartPolicy != corev1.NotRequired {
			e.invalid(at.Child("restartPolicy"), policy.RestartPolicy, "must be NotRequired when the pod's restartPolicy is Never")
		}
	}
}
