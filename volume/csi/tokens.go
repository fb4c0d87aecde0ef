package csi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
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

// tokens returns the tokens by audience. They are made anew at four fifths of their life, and when the driver wants one for another audience.
func (w *mounting) tokens(ctx context.Context) (map[string]authenticationv1.TokenRequestStatus, error) {
	before := w.remembered(w.mount.Place)
	now := time.Now()
	missing := func(r storagev1.TokenRequest) bool { _, has := before.tokens[r.Audience]; return !has }
	if now.Before(before.renew) && !slices.ContainsFunc(w.info.Spec.TokenRequests, missing) {
		return before.tokens, nil
	}
	if w.opts.tokens == nil {
		return nil, errNoTokens
	}
	before.tokens, before.renew = map[string]authenticationv1.TokenRequestStatus{}, now.Add(24*time.Hour)
	for _, r := range w.info.Spec.TokenRequests {
		token, err := w.opts.tokens.ServiceAccountToken(ctx, w.pod, &corev1.ServiceAccountTokenProjection{Audience: r.Audience, ExpirationSeconds: r.ExpirationSeconds})
		if err != nil {
			return nil, fmt.Errorf("failed to fetch token for CSI driver %s: %w", w.DriverName, err)
		}
		before.tokens[r.Audience] = authenticationv1.TokenRequestStatus{Token: token.Value, ExpirationTimestamp: metav1.NewTime(token.Expires)}
		if renew := now.Add(token.Expires.Sub(now) / 5 * 4); renew.Before(before.renew) {
			before.renew = renew
		}
	}
	w.remember(w.mount.Place, before)
	return before.tokens, nil
}
