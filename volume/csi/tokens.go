package csi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/volume"
	"github.com/podmill/podmill/volume/internal/issued"
)

const tokensKey = "csi.storage.k8s.io/serviceAccount.tokens" //nolint:gosec // the name of a field

// withTokens adds the service account tokens that the driver wants, to the attributes or to the secrets as it says.
func (w *mounting) withTokens(ctx context.Context, attributes, secrets map[string]string) (withAttributes, withSecrets map[string]string, err error) {
	if len(w.info.Spec.TokenRequests) == 0 {
		return attributes, secrets, nil
	}
	tokens, err := w.tokens(ctx)
	if err != nil {
		return nil, nil, err
	}
	data, err := json.Marshal(tokens)
	if err != nil {
		return nil, nil, err
	}
	with := func(all map[string]string) map[string]string {
		all = maps.Clone(all)
		if all == nil {
			all = map[string]string{}
		}
		all[tokensKey] = string(data)
		return all
	}
	if ptr.Deref(w.info.Spec.ServiceAccountTokenInSecrets, false) {
		return attributes, with(secrets), nil
	}
	return with(attributes), secrets, nil
}

// tokens returns the tokens by audience.
func (w *mounting) tokens(ctx context.Context) (map[string]authenticationv1.TokenRequestStatus, error) {
	if w.opts.tokens == nil {
		return nil, errNoTokens
	}
	all, renew := map[string]authenticationv1.TokenRequestStatus{}, time.Time{}
	for _, r := range w.info.Spec.TokenRequests {
		which := tokenID{w.mount.Place, r.Audience, ptr.Deref(r.ExpirationSeconds, 0)}
		has, err := w.issued.Get(ctx, which, func(ctx context.Context) (issued.Credential[podmill.Token], error) { return w.token(ctx, r) })
		if err != nil {
			return nil, fmt.Errorf("failed to fetch token for CSI driver %s: %w", w.DriverName, err)
		}
		all[r.Audience] = authenticationv1.TokenRequestStatus{Token: has.Value.Value, ExpirationTimestamp: metav1.NewTime(has.Expires)}
		if renew.IsZero() || has.Renew.Before(renew) {
			renew = has.Renew
		}
	}
	k := w.remembered(w.mount.Place)
	k.renew = renew
	w.remember(w.mount.Place, k)
	return all, nil
}

func (w *mounting) token(ctx context.Context, r storagev1.TokenRequest) (issued.Credential[podmill.Token], error) {
	begun := time.Now()
	token, err := w.opts.tokens.ServiceAccountToken(ctx, w.pod, &corev1.ServiceAccountTokenProjection{Audience: r.Audience, ExpirationSeconds: r.ExpirationSeconds})
	return issued.Credential[podmill.Token]{Value: token, Renew: begun.Add(issued.RenewAfter(token.Expires.Sub(begun))), Expires: token.Expires}, err
}

// tokenID is a token that a volume's driver has asked for: one with other wishes has another.
type tokenID struct {
	volume   volume.Place
	audience string
	seconds  int64 // that it should live, 0 leaves it to who makes it
}

func (t tokenID) String() string {
	return fmt.Sprintf("pod %s, volume %s, audience %s", t.volume.UID, t.volume.Name, t.audience)
}
