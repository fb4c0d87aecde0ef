package apiserver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// How long answers are remembered, as in the kubelet: those about tokens, whosoever they are or nobody's, and those about rights.
const (
	knownFor   = 2 * time.Minute
	allowedFor = 5 * time.Minute
	deniedFor  = 30 * time.Second
	// mostAnswers bounds each memory; beyond it nothing is remembered until some have expired.
	mostAnswers = 1000
)

// mostReviews bounds how many reviews of a kind are under way, and reviewWithin how long one takes, its wait for a turn included: whoever reaches the node may ask for
// one, and they are paid for with the node's own share of the API server.
const (
	mostReviews  = 16
	reviewWithin = 10 * time.Second
)

// Reviews asks the API server who people are and what they may, in the node's name, and remembers the answers for a while. Package server's Guard takes it.
// Its methods may be called concurrently.
type Reviews struct {
	client *Client
	people answers[*authenticationv1.UserInfo]
	nobody answers[struct{}] // tokens that are nobody's; of such there is no end, and they take no room from the others
	rights answers[authorizationv1.SubjectAccessReviewStatus]

	tokens, accesses chan struct{} // the turns of each kind: strangers' tokens keep nobody waiting who is known
}

// NewReviews returns reviews by the client's node.
func NewReviews(client *Client) *Reviews {
	return &Reviews{client: client, tokens: make(chan struct{}, mostReviews), accesses: make(chan struct{}, mostReviews)}
}

// Authenticate says whose a bearer token is, by a TokenReview; nil if it is nobody's. That is remembered too, unless the server says that something was wrong when it looked:
// then it may say something else the next time.
func (r *Reviews) Authenticate(ctx context.Context, token string) (*authenticationv1.UserInfo, error) {
	key := sha256.Sum256([]byte(token)) // who reads this memory finds no token
	if user, ok := r.people.get(key); ok {
		return user, nil
	}
	if _, ok := r.nobody.get(key); ok {
		return nil, nil
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	err := inTurn(ctx, r.tokens, func(ctx context.Context) error {
		return r.client.authentication.Post().Resource("tokenreviews").Body(review).Do(ctx).Into(review)
	})
	if err != nil {
		return nil, fmt.Errorf("review a token: %w", err)
	}
	if !review.Status.Authenticated {
		if review.Status.Error == "" {
			r.nobody.put(key, struct{}{}, knownFor)
		}
		return nil, nil
	}
	r.people.put(key, &review.Status.User, knownFor)
	return &review.Status.User, nil
}

// Authorize says whether something is allowed, by a SubjectAccessReview.
func (r *Reviews) Authorize(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (allowed bool, reason string, err error) {
	asked, err := json.Marshal(spec)
	if err != nil {
		return false, "", fmt.Errorf("review access of %s: %w", spec.User, err)
	}
	key := sha256.Sum256(asked)
	if status, ok := r.rights.get(key); ok {
		return status.Allowed, status.Reason, nil
	}
	review := &authorizationv1.SubjectAccessReview{Spec: *spec}
	err = inTurn(ctx, r.accesses, func(ctx context.Context) error {
		return r.client.authorization.Post().Resource("subjectaccessreviews").Body(review).Do(ctx).Into(review)
	})
	if err != nil {
		return false, "", fmt.Errorf("review access of %s: %w", spec.User, err)
	}
	remembered := deniedFor
	if review.Status.Allowed {
		remembered = allowedFor
	}
	r.rights.put(key, review.Status, remembered)
	return review.Status.Allowed, review.Status.Reason, nil
}

// inTurn asks for a review when there is a turn, all within reviewWithin.
func inTurn(ctx context.Context, turns chan struct{}, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, reviewWithin)
	defer cancel()
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
		return ask(ctx)
	case <-ctx.Done():
		return fmt.Errorf("%d reviews are under way: %w", mostReviews, ctx.Err())
	}
}

// answers remembers answers by the hash of what was asked. The zero value remembers nothing yet.
type answers[T any] struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]answer[T]
}

type answer[T any] struct {
	value T
	until time.Time
}

func (a *answers[T]) get(key [sha256.Size]byte) (T, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.all[key]
	return known.value, ok && time.Now().Before(known.until)
}

func (a *answers[T]) put(key [sha256.Size]byte, value T, remembered time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if len(a.all) >= mostAnswers {
		for k, known := range a.all {
			if now.After(known.until) {
				delete(a.all, k)
			}
		}
	}
	if a.all == nil {
		a.all = map[[sha256.Size]byte]answer[T]{}
	}
	if len(a.all) < mostAnswers {
		a.all[key] = answer[T]{value, now.Add(remembered)}
	}
}
