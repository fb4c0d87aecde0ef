package csi

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
)

// What a plugin says goes into errors, and from there into logs and into events that everybody reads who may read a namespace. A driver likes to quote the command that has
// failed, with the password in it.
const (
	// maxWords is how much of it is told, in bytes.
	maxWords = 1024
	// minSecret is how long a value of a secret is that is not told. Shorter ones, such as a flag or a version, are in every sentence, and nobody's secret.
	minSecret = 4
	hidden    = "***"
)

// guardWords is between a plugin and all that is asked of it: what it says when it fails keeps its code, and is told without what was given to it in confidence.
func guardWords(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	err := invoke(ctx, method, request, reply, conn, opts...)
	if said, ok := status.FromError(err); ok && err != nil {
		return status.Error(said.Code(), guarded(said.Message(), request))
	}
	return err
}

// guarded returns words without the secrets of the request that they answer, and not too many.
func guarded(words string, request any) string {
	var pairs []string
	for _, secret := range secretsOf(request) {
		pairs = append(pairs, secret, hidden)
	}
	words = strings.ToValidUTF8(strings.NewReplacer(pairs...).Replace(words), "?")
	if len(words) > maxWords {
		words = strings.ToValidUTF8(words[:maxWords], "") + "..."
	}
	return words
}

// secretsOf returns what is secret in a request as it may be quoted, the longest first: one may be part of another.
func secretsOf(request any) (all []string) {
	add := func(value string) {
		value = strings.TrimSpace(value)
		quoted := strconv.Quote(value)
		for _, form := range []string{value, quoted[1 : len(quoted)-1]} {
			if len(form) >= minSecret {
				all = append(all, form)
			}
		}
	}
	var secrets, attributes map[string]string
	if r, ok := request.(interface{ GetSecrets() map[string]string }); ok {
		secrets = r.GetSecrets()
	}
	if r, ok := request.(interface{ GetVolumeContext() map[string]string }); ok {
		attributes = r.GetVolumeContext()
	}
	for key, value := range secrets {
		if key != tokensKey {
			add(value)
		}
	}
	var tokens map[string]authenticationv1.TokenRequestStatus
	for _, m := range []map[string]string{secrets, attributes} {
		if json.Unmarshal([]byte(m[tokensKey]), &tokens) != nil {
			continue // it has none
		}
		for _, t := range tokens {
			add(t.Token)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return all
}
