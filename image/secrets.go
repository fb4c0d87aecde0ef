package image

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// PullSecrets returns the credentials of a pod's pull secrets, in their order, each with the place that it is for as its ServerAddress. A
// secret that is not there, or cannot be read, is told in an event and left out: the image may do without. The only error is ctx's.
func (p *Puller) PullSecrets(ctx context.Context, pod *corev1.Pod) ([]podmill.ImageAuth, error) {
	var auths []podmill.ImageAuth
	var unusable []string
	for _, ref := range pod.Spec.ImagePullSecrets {
		if ref.Name == "" { // the API lets it pass
			continue
		}
		more, err := p.pullSecret(ctx, pod.Namespace, ref.Name)
		if ctxErr := ctx.Err(); ctxErr != nil {
			return nil, fmt.Errorf("get pull secrets of pod %s: %w", podmill.RefOf(pod), ctxErr)
		}
		var bad *malformedError
		switch {
		case errors.As(err, &bad):
			unusable = append(unusable, ref.Name+": "+bad.Error())
		case err != nil:
			unusable = append(unusable, ref.Name)
		}
		if err != nil {
			logr.FromContextOrDiscard(ctx).Info("pull secret is left out", "pod", podmill.RefOf(pod).String(), "secret", ref.Name, "reason", err.Error())
		}
		auths = append(auths, more...)
	}
	if len(unusable) > 0 {
		p.event(podmill.ReferenceTo(pod, ""), corev1.EventTypeWarning, "FailedToRetrieveImagePullSecret", fmt.Sprintf(
			"Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", strings.Join(unusable, ", ")))
	}
	return auths, nil
}

func (p *Puller) pullSecret(ctx context.Context, namespace, name string) ([]podmill.ImageAuth, error) {
	if p.opts.secrets == nil {
		return nil, errors.New("this agent has no secrets")
	}
	secret, err := p.opts.secrets.Secret(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return authsOf(secret)
}
