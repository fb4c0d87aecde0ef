package volume

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/volume/internal/issued"
)

// issuers make what pods prove themselves by, and what they trust. Each may be nil; then what it would make is refused.
type issuers struct {
	tokens       podmill.ServiceAccountTokens
	bundles      podmill.TrustBundles
	certificates podmill.PodCertificates
	issued       *issued.Credentials[credentialID, map[string][]byte]
}

// issue returns what a source of a projected volume holds that is a credential or a trust bundle. source is which one of the volume's it is.
func (i issuers) issue(ctx context.Context, m Mount, source int) (credential, error) {
	s := &m.Volume.Projected.Sources[source]
	which := credentialID{m.Pod.UID, m.Volume.Name, source}
	switch {
	case s.ServiceAccountToken != nil && i.tokens != nil:
		token := func(ctx context.Context) (credential, error) { return i.token(ctx, m.Pod, s.ServiceAccountToken) }
		return i.issued.Get(ctx, which, token)
	case s.PodCertificate != nil && i.certificates != nil:
		certificate := func(ctx context.Context) (credential, error) { return i.certificate(ctx, m.Pod, s.PodCertificate) }
		return i.issued.Get(ctx, which, certificate)
	case s.ClusterTrustBundle != nil && i.bundles != nil:
		return i.bundle(ctx, s.ClusterTrustBundle)
	}
	return credential{}, unsupportedError(kindOf(s) + " sources of projected volumes are not supported")
}

func (i issuers) token(ctx context.Context, pod *corev1.Pod, s *corev1.ServiceAccountTokenProjection) (credential, error) {
	begun := time.Now()
	token, err := i.tokens.ServiceAccountToken(ctx, pod, s)
	if err != nil {
		return credential{}, fmt.Errorf("failed to fetch token: %w", err)
	}
	return credential{
		Value: map[string][]byte{s.Path: []byte(token.Value)}, Renew: begun.Add(issued.RenewAfter(token.Expires.Sub(begun))), Expires: token.Expires,
	}, nil
}

func (i issuers) certificate(ctx context.Context, pod *corev1.Pod, s *corev1.PodCertificateProjection) (credential, error) {
	c, err := i.certificates.PodCertificate(ctx, pod, s)
	if err != nil {
		return credential{}, fmt.Errorf("failed to get a certificate of signer %q: %w", s.SignerName, err)
	}
	files := map[string][]byte{}
	if s.KeyPath != "" {
		files[s.KeyPath] = c.Key
	}
	if s.CertificateChainPath != "" {
		files[s.CertificateChainPath] = c.Chain
	}
	if s.CredentialBundlePath != "" {
		files[s.CredentialBundlePath] = append(append([]byte{}, c.Key...), c.Chain...)
	}
	return credential{Value: files, Renew: c.Renew, Expires: c.Expires}, nil
}

func (i issuers) bundle(ctx context.Context, s *corev1.ClusterTrustBundleProjection) (credential, error) {
	pem, err := i.bundles.TrustBundle(ctx, s)
	if err != nil && (!is(s.Optional) || !errors.Is(err, podmill.ErrNotFound)) {
		return credential{}, fmt.Errorf("clustertrustbundle %s: %w", bundleName(s), err)
	}
	return credential{Value: map[string][]byte{s.Path: pem}}, nil
}

func bundleName(s *corev1.ClusterTrustBundleProjection) string {
	switch {
	case s.Name != nil:
		return fmt.Sprintf("%q", *s.Name)
	case s.SignerName != nil:
		return fmt.Sprintf("of signer %q", *s.SignerName)
	}
	return "without a name"
}

// credential is something that a pod proves itself by, as the files, by path, that it is. A trust bundle is one that does not end.
type credential = issued.Credential[map[string][]byte]

// credentialID is one source of one volume of a pod.
type credentialID struct {
	pod    types.UID
	volume string
	source int
}

func (c credentialID) String() string {
	return fmt.Sprintf("pod %s, volume %s, source %d", c.pod, c.volume, c.source)
}
