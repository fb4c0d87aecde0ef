package apiserver

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
	err := patiently(ctx, func(ctx context.Context) error {
		return o.client.core.Post().Namespace(pod.Namespace).Resource("serviceaccounts").Name(pod.Spec.ServiceAccountName).SubResource("token").
			Body(request).Do(ctx).Into(answer)
	})
	if err != nil {
		return podmill.Token{}, fmt.Errorf("token of service account %s for pod %s: %w", pod.Spec.ServiceAccountName, podmill.RefOf(pod), err)
	}
	return podmill.Token{Value: answer.Status.Token, Expires: answer.Status.ExpirationTimestamp.Time}, nil
}

// authorizerLag is how long the server's authorizer may take to hear of a pod.
const authorizerLag = time.Second

// patiently asks for what belongs to a pod. The authorizer hears of a new pod no sooner than its node does, and refuses until then what it will grant.
func patiently(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	begin := time.Now()
	for pause := objectPatience; ; pause *= 2 {
		err := ask(ctx)
		if !apierrors.IsForbidden(err) || time.Since(begin)+pause > authorizerLag {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}
