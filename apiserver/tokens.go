package apiserver

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// ServiceAccountToken implements [podmill.ServiceAccountTokens] by TokenRequest.
func (o *Objects) ServiceAccountToken(ctx context.Context, pod *corev1.Pod, s *corev1.ServiceAccountTokenProjection) (podmill.Token, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: s.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if s.Audience != "" {
		request.Spec.Audiences = []string{s.Audience}
	}
	answer := &authenticationv1.TokenRequest{}
	err := o.client.core.Post().Namespace(pod.Namespace).Resource("serviceaccounts").Name(pod.Spec.ServiceAccountName).SubResource("token").
		Body(request).Do(ctx).Into(answer)
	if err != nil {
		return podmill.Token{}, fmt.Errorf("token of service account %s for pod %s: %w", pod.Spec.ServiceAccountName, podmill.RefOf(pod), err)
	}
	return podmill.Token{Value: answer.Status.Token, Expires: answer.Status.ExpirationTimestamp.Time}, nil
}
