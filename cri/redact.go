package cri

import (
	"context"
	"encoding/base64"
	"net/url"
	"regexp"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// pull is the call of PullImage, whose errors are the runtime's and a registry's words: neither is trusted to keep a secret.
func (c *Client) pull(ctx context.Context, request *runtimeapi.PullImageRequest, opts ...grpc.CallOption) (*runtimeapi.PullImageResponse, error) {
	r, err := c.images.PullImage(ctx, request, opts...)
	if err != nil {
		s := status.Convert(err)
		return nil, status.Error(s.Code(), redact(s.Message(), request.GetAuth()))
	}
	return r, nil
}

// redact takes a credential out of a message, and what links carry beside an address: who may follow them, and signatures.
func redact(message string, auth *runtimeapi.AuthConfig) string {
	basic := base64.StdEncoding.EncodeToString([]byte(auth.GetUsername() + ":" + auth.GetPassword()))
	for _, secret := range []string{
		auth.GetPassword(), url.QueryEscape(auth.GetPassword()), basic, auth.GetAuth(), auth.GetIdentityToken(), auth.GetRegistryToken(),
	} {
		if len(secret) >= 4 { // less is found in any text, and would be given away by where it is missing
			message = strings.ReplaceAll(message, secret, "***")
		}
	}
	if !strings.Contains(message, "://") {
		return message
	}
	message = regexp.MustCompile(`(://)[^/\s"@]+@`).ReplaceAllString(message, "$1***@")
	return regexp.MustCompile(`(://[^\s"?]+\?)[^\s"]+`).ReplaceAllString(message, "$1***")
}
