package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// claims checks the devices that the pod claims (dynamic resource allocation).
func (c *checker) claims(p path) {
	if _, mirror := c.pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror && len(c.spec.ResourceClaims) > 0 {
		c.forbidden(p, "a static pod cannot claim devices")
		return
	}
	names := map[string]bool{}
	for i, claim := range c.spec.ResourceClaims {
		at := p.Index(i)
		c.label(at.Child("name"), claim.Name)
		if names[claim.Name] && claim.Name != "" {
			c.duplicate(at.Child("name"), claim.Name)
		}
		names[claim.Name] = true
		if (claim.ResourceClaimName == nil) == (claim.ResourceClaimTemplateName == nil) {
			c.invalid(at, claim.Name, "must have one of resourceClaimName or resourceClaimTemplateName")
		}
		if claim.ResourceClaimName != nil {
			c.subdomain(at.Child("resourceClaimName"), *claim.ResourceClaimName)
		}
		if claim.ResourceClaimTemplateName != nil {
			c.subdomain(at.Child("resourceClaimTemplateName"), *claim.ResourceClaimTemplateName)
		}
	}
}

// claimNames checks which of the pod's claims, or of their requests, a container uses. None is used twice, as a whole or in part.
func (c *checker) claimNames(p path, uses []corev1.ResourceClaim) {
	ofPod := map[string]bool{}
	for _, claim := range c.spec.ResourceClaims {
		ofPod[claim.Name] = true
	}
	used := map[string]bool{}
	for i, use := range uses {
		at := p.Index(i)
		if !c.given(at.Child("name"), use.Name, "say which of spec.resourceClaims") {
			continue
		}
		if !ofPod[use.Name] {
			c.notFound(at.Child("name"), use.Name, "must be one of spec.resourceClaims")
		}
		key := use.Name
		if use.Request != "" && !used[key] {
			c.label(at.Child("request"), use.Request)
			key += "/" + use.Request
		}
		overlaps := used[key]
		for other := range used {
			overlaps = overlaps || use.Request == "" && strings.HasPrefix(other, use.Name+"/")
		}
		if overlaps {
			c.duplicate(at.Child("name"), key)
		}
		used[key] = true
	}
}
