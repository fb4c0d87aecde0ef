package volume

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// issuers make what pods prove themselves by, and what they trust. Each may be nil; then what it would make is refused.
type issuers struct {
	tokens       podmill.ServiceAccountTokens
	bundles      podmill.TrustBundles
	certificates podmill.PodCertificates
	issued       *issued
}

// issue returns what a source of a projected volume holds that is a credential or a trust bundle. source is which one of the volume's it is.
func (i issuers) issue(ctx context.Context, m Mount, source int) (credential, error) {
	s := &m.Volume.Projected.Sources[source]
	which := credentialID{m.Pod.UID, m.Volume.Name, source}
	switch {
	case s.ServiceAccountToken != nil && i.tokens != nil:
		token := func(ctx context.Context) (credential, error) { return i.token(ctx, m.Pod, s.ServiceAccountToken) }
		return i.issued.get(ctx, which, token)
	case s.PodCertificate != nil && i.certificates != nil:
		certificate := func(ctx context.Context) (credential, error) { return i.certificate(ctx, m.Pod, s.PodCertificate) }
		return i.issued.get(ctx, which, certificate)
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
		files: map[string][]byte{s.Path: []byte(token.Value)}, renew: begun.Add(renewAfter(token.Expires.Sub(begun))), expires: token.Expires,
	}, nil
}

// The kubelet's rules for tokens.
const (
	minAge    = time.Second // ours
	maxAge    = 24 * time.Hour
	maxJitter = 10 * time.Second // so that tokens which were made together are not renewed together
)

// renewAfter returns the age at which a token is renewed: at four fifths of its life, and after a day at the latest. One that has no life, as where the node's clock goes
// wrong, is not good for anything, and is not worth to be renewed in haste.
func renewAfter(life time.Duration) time.Duration {
	if life <= 0 {
		return 0
	}
	return max(minAge, min(life/5*4, maxAge)-rand.N(min(maxJitter, max(life/20, 1))))
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
	return credential{files: files, renew: c.Renew, expires: c.Expires}, nil
}

func (i issuers) bundle(ctx context.Context, s *corev1.ClusterTrustBundleProjection) (credential, error) {
	pem, err := i.bundles.TrustBundle(ctx, s)
	if err != nil && (!is(s.Optional) || !errors.Is(err, podmill.ErrNotFound)) {
		return credential{}, fmt.Errorf("clustertrustbundle %s: %w", bundleName(s), err)
	}
	return credential{files: map[string][]byte{s.Path: pem}}, nil
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
type credential struct {
	files          map[string][]byte
	renew, expires time.Time
}

// credentialID is one source of one volume of a pod.
type credentialID struct {
	pod    types.UID
	volume string
	source int
}

// issued holds what pods have. It is lost with the process; then all is made anew.
type issued struct {
	mu  sync.Mutex
	all map[credentialID]credential
}

// A credential that is still good is renewed beside the pod's other needs: an attempt may take this long, and after one that failed there is a pause, of a tenth of
// the life that is left and within these bounds.
const (
	renewalTimeout  = 5 * time.Second
	minRenewalPause = 10 * time.Second
	maxRenewalPause = 5 * time.Minute
)

// get returns a credential, made anew if it is time for that. While that fails, the old one is good until it ends. Calls for one credential come one after another.
func (i *issued) get(ctx context.Context, which credentialID, make func(context.Context) (credential, error)) (credential, error) {
	i.mu.Lock()
	has, ok := i.all[which]
	i.mu.Unlock()
	now := time.Now()
	switch {
	case ok && now.Before(has.renew):
		return has, nil
	case ok && now.Before(has.expires):
		return i.renewed(ctx, which, has, make), nil
	}
	fresh, err := make(ctx)
	if err != nil {
		return credential{}, err
	}
	i.put(which, fresh)
	return fresh, nil
}

// renewed returns a credential in the place of one that is still good, or that one if none is to be had soon.
func (i *issued) renewed(ctx context.Context, which credentialID, has credential, make func(context.Context) (credential, error)) credential {
	attempt, cancel := context.WithTimeout(ctx, renewalTimeout)
	defer cancel()
	fresh, err := make(attempt)
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "a credential is not renewed yet", "pod", which.pod, "volume", which.volume, "expires", has.expires)
		pause := min(max(time.Until(has.expires)/10, minRenewalPause), maxRenewalPause)
		fresh = has
		if fresh.renew = time.Now().Add(pause); fresh.renew.After(has.expires) {
			fresh.renew = has.expires
		}
	}
	i.put(which, fresh)
	return fresh
}

func (i *issued) put(which credentialID, c credential) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.all == nil {
		i.all = map[credentialID]credential{}
	}
	i.all[which] = c
}

// forget says that a pod has no volumes any more.
func (i *issued) forget(pod types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for which := range i.all {
		if which.pod == pod {
			delete(i.all, which)
		}
	}
}
