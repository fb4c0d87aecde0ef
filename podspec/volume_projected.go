package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
)

// projected checks a volume that is made of several sources. No two of them may make the same file.
func (c *checker) projected(p path, v *corev1.ProjectedVolumeSource) {
	c.mode(p.Child("defaultMode"), v.DefaultMode)
	c.user(p.Child("defaultUser"), v.DefaultUser)
	taken := map[string]bool{}
	for i := range v.Sources {
		at := p.Child("sources").Index(i)
		if checkSet(at, c.projections(&v.Sources[i])) > 1 {
			c.forbidden(at, "must be one source: make it several")
		}
		if v.Sources[i].ServiceAccountToken != nil && c.spec.ServiceAccountName == "" {
			c.forbidden(at.Child("serviceAccountToken"), "needs spec.serviceAccountName")
		}
		for _, file := range projectedFiles(at, &v.Sources[i]) {
			if file.name != "" && taken[file.name] {
				c.invalid(file.at, file.name, "is the path of another file already")
			}
			taken[file.name] = true
		}
	}
}

func (e *problems) projections(s *corev1.VolumeProjection) []choice {
	return []choice{
		{"secret", s.Secret != nil, func(p path) {
			e.given(p.Child("name"), s.Secret.Name, "say which Secret")
			e.files(p, nil, nil, s.Secret.Items)
		}},
		{"configMap", s.ConfigMap != nil, func(p path) {
			e.given(p.Child("name"), s.ConfigMap.Name, "say which ConfigMap")
			e.files(p, nil, nil, s.ConfigMap.Items)
		}},
		{"downwardAPI", s.DownwardAPI != nil, func(p path) { e.downwardAPI(p.Child("items"), s.DownwardAPI.Items) }},
		{"serviceAccountToken", s.ServiceAccountToken != nil, func(p path) { e.token(p, s.ServiceAccountToken) }},
		{"clusterTrustBundle", s.ClusterTrustBundle != nil, func(p path) { e.trustBundle(p, s.ClusterTrustBundle) }},
		{"podCertificate", s.PodCertificate != nil, func(p path) { e.podCertificate(p, s.PodCertificate) }},
	}
}

// projectedFile is a file that a source is known to make, and where it says so.
type projectedFile struct {
	at   path
	name string
}

// projectedFiles returns the files of a source. What keys an object has is not known before.
func projectedFiles(p path, s *corev1.VolumeProjection) (files []projectedFile) {
	ofObject := func(p path, items []corev1.KeyToPath) {
		for i := range items {
			files = append(files, projectedFile{p.Child("items").Index(i).Child("path"), items[i].Path})
		}
	}
	if s.Secret != nil {
		ofObject(p.Child("secret"), s.Secret.Items)
	}
	if s.ConfigMap != nil {
		ofObject(p.Child("configMap"), s.ConfigMap.Items)
	}
	if s.DownwardAPI != nil {
		for i := range s.DownwardAPI.Items {
			files = append(files, projectedFile{p.Child("downwardAPI", "items").Index(i).Child("path"), s.DownwardAPI.Items[i].Path})
		}
	}
	if s.ClusterTrustBundle != nil {
		files = append(files, projectedFile{p.Child("clusterTrustBundle", "path"), s.ClusterTrustBundle.Path})
	}
	if c := s.PodCertificate; c != nil {
		at := p.Child("podCertificate")
		files = append(files, projectedFile{at.Child("credentialBundlePath"), c.CredentialBundlePath},
			projectedFile{at.Child("keyPath"), c.KeyPath}, projectedFile{at.Child("certificateChainPath"), c.CertificateChainPath})
	}
	return files
}

const (
	minTokenSeconds       = 10 * 60
	maxTokenSeconds       = 1 << 32
	minCertificateSeconds = 60 * 60
	maxCertificateSeconds = 91 * 24 * 60 * 60
	maxOwnCertificate     = 24 * 60 * 60 // of signers of Kubernetes itself
)

func (e *problems) token(p path, t *corev1.ServiceAccountTokenProjection) {
	if t.ExpirationSeconds == nil {
		e.required(p.Child("expirationSeconds"), "say for how long, such as 3600")
	} else {
		between(e, p.Child("expirationSeconds"), *t.ExpirationSeconds, minTokenSeconds, maxTokenSeconds)
	}
	e.file(p, t.Path, nil, t.User)
}

func (e *problems) trustBundle(p path, b *corev1.ClusterTrustBundleProjection) {
	switch {
	case b.Name != nil && b.SignerName != nil:
		e.invalid(p, *b.Name, "must have one of name and signerName")
	case b.Name != nil:
		e.trustBundleName(p.Child("name"), *b.Name)
		if b.LabelSelector != nil {
			e.invalid(p.Child("labelSelector"), *b.Name, "must be left out when there is a name")
		}
	case b.SignerName != nil:
		e.signer(p.Child("signerName"), *b.SignerName)
		e.selector(p.Child("labelSelector"), b.LabelSelector)
	default:
		e.required(p, "give the name or the signerName")
	}
	e.file(p, b.Path, nil, b.User)
}

// trustBundleName checks a name, which has the signer's before it if the bundle is a signer's.
func (e *problems) trustBundleName(p path, name string) {
	rest := name
	if i := strings.LastIndex(name, ":"); i > 0 {
		rest = name[i+1:]
	}
	e.says(p, name, apivalidation.NameIsDNSSubdomain(rest, false))
}

func (e *problems) podCertificate(p path, c *corev1.PodCertificateProjection) {
	e.signer(p.Child("signerName"), c.SignerName)
	oneOf(e, p.Child("keyType"), c.KeyType, "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
	for _, key := range sorted(c.UserAnnotations) {
		e.all(validation.IsDomainPrefixedKey(p.Child("userAnnotations"), strings.ToLower(key)))
	}
	if err := apivalidation.ValidateAnnotationsSize(c.UserAnnotations); err != nil {
		e.invalid(p.Child("userAnnotations"), "", err.Error())
	}
	if c.MaxExpirationSeconds != nil {
		most := int64(maxCertificateSeconds)
		if host, _, _ := strings.Cut(c.SignerName, "/"); host == "kubernetes.io" || strings.HasSuffix(host, ".kubernetes.io") {
			most = maxOwnCertificate
		}
		between(e, p.Child("maxExpirationSeconds"), *c.MaxExpirationSeconds, minCertificateSeconds, most)
	}
	e.user(p.Child("user"), c.User)
	e.fileName(p.Child("credentialBundlePath"), c.CredentialBundlePath)
	e.fileName(p.Child("keyPath"), c.KeyPath)
	e.fileName(p.Child("certificateChainPath"), c.CertificateChainPath)
	if c.CredentialBundlePath == "" && c.KeyPath == "" && c.CertificateChainPath == "" {
		e.required(p, "give at least one of credentialBundlePath, keyPath and certificateChainPath")
	}
}

// maxSignerPath is a namespace, a dot and the name of an object.
const maxSignerPath = validation.DNS1123LabelMaxLength + 1 + validation.DNS1123SubdomainMaxLength

// signer checks the name of who signs certificates: a domain and a path, such as example.com/signer.
func (e *problems) signer(p path, name string) {
	if !e.given(p, name, "say who signs, such as \"example.com/signer\"") {
		return
	}
	domain, rest, _ := strings.Cut(name, "/")
	bad := !strings.Contains(domain, ".") || len(domain) > validation.DNS1123SubdomainMaxLength ||
		len(name) > validation.DNS1123SubdomainMaxLength+1+maxSignerPath
	for label := range strings.SplitSeq(domain, ".") {
		bad = bad || len(validation.IsDNS1123Label(label)) > 0
	}
	for label := range strings.SplitSeq(rest, ".") {
		bad = bad || len(validation.IsDNS1123Subdomain(label)) > 0
	}
	if bad {
		e.invalid(p, name, fmt.Sprintf("must be a domain and a path, such as \"example.com/signer\", of %d and %d characters at most",
			validation.DNS1123SubdomainMaxLength, maxSignerPath))
	}
}
