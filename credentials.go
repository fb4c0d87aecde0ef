package podmill

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ServiceAccountTokens makes tokens by which pods prove who they are.
type ServiceAccountTokens interface {
	// ServiceAccountToken makes a new token for a pod's service account, bound to the pod, for the audience and the life that a projection asks for. It may live shorter or
	// longer than that.
	ServiceAccountToken(ctx context.Context, pod *corev1.Pod, s *corev1.ServiceAccountTokenProjection) (Token, error)
}

// Token is a token of a service account, and when it ends.
type Token struct {
	Value   string
	Expires time.Time
}

// String tells when the token ends, so that a token that meets a log or an error stays secret.
func (t Token) String() string { return "token until " + t.Expires.Format(time.RFC3339) }

// GoString is String: %#v does not tell the token either.
func (t Token) GoString() string { return t.String() }

// TrustBundles gives the certificates that pods may trust.
type TrustBundles interface {
	// TrustBundle returns as PEM the certificates of the ClusterTrustBundles that a projection names or selects, each once: the same bytes until they change. Where there is
	// none it returns ErrNotFound, and any other error if it cannot tell.
	TrustBundle(ctx context.Context, s *corev1.ClusterTrustBundleProjection) (pem []byte, err error)
}

// PodCertificates makes certificates by which pods prove who they are.
type PodCertificates interface {
	// PodCertificate makes a new key and has its certificate signed, for a pod and as a projection asks for. It may take as long as its signer does, or ctx lasts. That is
	// a few seconds where the pod has one that is still good; it is asked again later, so a slow signer's answer is best kept for the next call.
	PodCertificate(ctx context.Context, pod *corev1.Pod, s *corev1.PodCertificateProjection) (PodCertificate, error)
}

// PodCertificate is a certificate with its key.
type PodCertificate struct {
	Key   []byte // PKCS#8 in PEM
	Chain []byte // the certificates in PEM, the pod's own first
	// Renew is when another should be made, which its signer says; Expires is when it ends.
	Renew, Expires time.Time
}

// String tells when the certificate ends, so that a key that meets a log or an error stays secret.
func (c PodCertificate) String() string { return "certificate until " + c.Expires.Format(time.RFC3339) }

// GoString is String: %#v does not tell the key either.
func (c PodCertificate) GoString() string { return c.String() }
