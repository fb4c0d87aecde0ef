package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// reviewing answers reviews: the token is good, and alice may.
func reviewing(r *http.Request, body []byte) (int, any) {
	if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
		review := &authenticationv1.TokenReview{}
		_ = json.Unmarshal(body, review)
		review.Kind, review.APIVersion = "TokenReview", "authentication.k8s.io/v1"
		switch review.Spec.Token {
		case "odd":
			review.Status.Error = "could not tell"
		case "good":
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "alice"}}
		}
		return http.StatusCreated, review
	}
	review := &authorizationv1.SubjectAccessReview{}
	_ = json.Unmarshal(body, review)
	review.Kind, review.APIVersion = "SubjectAccessReview", "authorization.k8s.io/v1"
	review.Status.Allowed = review.Spec.User == "alice"
	return http.StatusCreated, review
}

// Answers are remembered, and no longer than the kubelet does, also that a token is nobody's, of which there is no end; where something was wrong it is asked each time.
func TestReviewsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.answer = reviewing
		r := NewReviews(s.client(t))
		asked := func(what string, want int, ask func()) {
			t.Helper()
			before := len(s.requests)
			ask()
			if got := len(s.requests) - before; got != want {
				t.Errorf("%s: %d requests, want %d: %v", what, got, want, s.requests)
			}
		}
		token := func(token, name string) func() {
			return func() {
				user, err := r.Authenticate(t.Context(), token)
				if err != nil || name == "" && user != nil || name != "" && (user == nil || user.Username != name) {
					t.Errorf("token %s is of %v, %v, want %q", token, user, err, name)
				}
			}
		}
		right := func(name string, want bool) func() {
			return func() {
				allowed, _, err := r.Authorize(t.Context(), &authorizationv1.SubjectAccessReviewSpec{User: name})
				if err != nil || allowed != want {
					t.Errorf("%s may: %v, %v, want %v", name, allowed, err, want)
				}
			}
		}
		asked("a token", 1, token("good", "alice"))
		asked("a token that is known", 0, token("good", "alice"))
		asked("nobody's token", 1, token("bad", ""))
		asked("nobody's token again", 0, token("bad", ""))
		asked("a token that the server has trouble with", 1, token("odd", ""))
		asked("that token again", 1, token("odd", ""))
		asked("a right", 1, right("alice", true))
		asked("no right", 1, right("bob", false))
		time.Sleep(29 * time.Second)
		asked("a right that is known", 0, right("alice", true))
		asked("no right, as is known", 0, right("bob", false))
		time.Sleep(2 * time.Second)
		asked("no right, which is forgotten", 1, right("bob", false))
		time.Sleep(90 * time.Second)
		asked("a token that is forgotten", 1, token("good", "alice"))
		asked("nobody's token that is forgotten", 1, token("bad", ""))
		asked("a right after two minutes", 0, right("alice", true))
		time.Sleep(4 * time.Minute)
		asked("a right that is forgotten", 1, right("alice", true))

		for i := range 2 * mostAnswers {
			right(fmt.Sprint("user-", i), false)()
		}
		if n := len(r.rights.all); n > mostAnswers {
			t.Errorf("%d answers are remembered, want at most %d", n, mostAnswers)
		}
		time.Sleep(time.Hour)
		asked("a right when there was no room", 1, right("alice", true))
		asked("a right when there is room again", 0, right("alice", true))
		for i := range 2 * mostAnswers {
			token(fmt.Sprint("token-", i), "")()
		}
		asked("a token among a great many strangers", 1, token("good", "alice"))
		asked("that token again", 0, token("good", "alice"))
		if known, strangers := len(r.people.all), len(r.nobody.all); known != 1 || strangers > mostAnswers {
			t.Errorf("%d tokens are remembered, want 1, and %d of nobody, want at most %d", known, strangers, mostAnswers)
		}
	})
}

func TestReviewsOfAServerThatFails(t *testing.T) {
	s := newServer()
	away := errors.New("no route to host")
	s.fault = func(*http.Request) (*http.Response, error) { return nil, away }
	r := NewReviews(s.client(t))
	if _, err := r.Authenticate(t.Context(), "canary"); !errors.Is(err, away) || strings.Contains(err.Error(), "canary") {
		t.Errorf("Authenticate: %v", err)
	}
	if allowed, _, err := r.Authorize(t.Context(), &authorizationv1.SubjectAccessReviewSpec{User: "alice"}); allowed || !errors.Is(err, away) {
		t.Errorf("Authorize: %v, %v", allowed, err)
	}
	if slices.ContainsFunc(s.requests, func(r string) bool { return strings.Contains(r, "canary") }) {
		t.Errorf("the token is in a request's address: %v", s.requests)
	}
}

// silent is a server that takes requests and answers none.
type silent struct{ open atomic.Int32 }

func (s *silent) RoundTrip(r *http.Request) (*http.Response, error) {
	s.open.Add(1)
	defer s.open.Add(-1)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// However many tokens strangers send, few are asked about at a time, none keeps its asker for long, and they take no turn from those who are known.
func TestReviewsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &silent{}
		client, err := NewClient(&rest.Config{Host: "http://server", Transport: s}, "n")
		if err != nil {
			t.Fatal(err)
		}
		r, began := NewReviews(client), time.Now()
		var askers sync.WaitGroup
		for i := range 100 {
			askers.Go(func() {
				if _, err := r.Authenticate(t.Context(), fmt.Sprint("token-", i)); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Authenticate: %v, want the deadline", err)
				}
			})
		}
		synctest.Wait()
		if open := s.open.Load(); open != mostReviews {
			t.Errorf("%d reviews are under way, want %d", open, mostReviews)
		}
		askers.Go(func() { _, _, _ = r.Authorize(t.Context(), &authorizationv1.SubjectAccessReviewSpec{User: "alice"}) })
		synctest.Wait()
		if open := s.open.Load(); open != mostReviews+1 {
			t.Errorf("%d reviews are under way, want one of a right beside %d", open, mostReviews)
		}
		askers.Wait()
		if took := time.Since(began); took != reviewWithin {
			t.Errorf("it took %v, want %v", took, reviewWithin)
		}
	})
}
