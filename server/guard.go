package server

import (
	"context"
	"crypto/x509"
	"net/http"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// Reviewer knows who may do what; package apiserver asks an API server. It is asked with every request, also by whoever means no good: it remembers and bounds what it
// has to. Its methods may be called concurrently.
type Reviewer interface {
	// Authenticate says whose a bearer token is; nil if it is nobody's.
	Authenticate(ctx context.Context, token string) (*authenticationv1.UserInfo, error)
	// Authorize says whether something is allowed, and why.
	Authorize(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (allowed bool, reason string, err error)
}

// Guard lets those through to a handler who may do what they ask, on the node of that name. People are known by the client certificate that the server has verified
// (see [crypto/tls.VerifyClientCertIfGiven]), and by bearer tokens. Whoever is not known is answered 401, and who may not 403, before anything else is done.
//
// Rights are the kubelet's: on the resource nodes with its name, the subresources pods for /pods, healthz for /healthz, and proxy for these and everything else,
// with the verb of the method. A command takes the verb create, also where it comes as a GET, as over a WebSocket.
func Guard(node string, reviewer Reviewer, handler http.Handler) http.Handler {
	g := &guard{node: node, reviewer: reviewer}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, err := g.whoAsks(r)
		switch {
		case err != nil:
			g.unable(w, r, err, "authenticate", http.StatusUnauthorized)
			return
		case user == nil:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		why, err := g.whyNot(r, user)
		switch {
		case err != nil:
			g.unable(w, r, err, "authorize", http.StatusInternalServerError)
		case why != "":
			http.Error(w, why, http.StatusForbidden)
		default:
			handler.ServeHTTP(w, r)
		}
	})
}

type guard struct {
	node     string
	reviewer Reviewer
}

// unable answers that it cannot be told who asks or what they may. The reason is for the node's own people.
func (g *guard) unable(w http.ResponseWriter, r *http.Request, err error, to string, code int) {
	logr.FromContextOrDiscard(r.Context()).Error(err, "unable to "+to+" a request", "method", r.Method, "path", r.URL.Path)
	http.Error(w, "unable to "+to, code)
}

// whoAsks returns who sends a request, nil if nobody knows.
func (g *guard) whoAsks(r *http.Request) (*authenticationv1.UserInfo, error) {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		if user := userOf(r.TLS.VerifiedChains[0][0]); user != nil {
			return user, nil
		}
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); token == "" || !strings.EqualFold(scheme, "Bearer") {
		return nil, nil
	}
	return g.reviewer.Authenticate(r.Context(), token)
}

// userOf returns whom a client certificate names, as everywhere in Kubernetes: by its common name, with its organizations as groups.
func userOf(certificate *x509.Certificate) *authenticationv1.UserInfo {
	if certificate.Subject.CommonName == "" {
		return nil
	}
	groups := append(slices.Clone(certificate.Subject.Organization), "system:authenticated")
	return &authenticationv1.UserInfo{Username: certificate.Subject.CommonName, Groups: groups}
}

// whyNot returns why a user may not have what is asked for, empty if they may.
func (g *guard) whyNot(r *http.Request, user *authenticationv1.UserInfo) (string, error) {
	verb, subresources := access(r)
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	why := ""
	for _, subresource := range subresources {
		allowed, reason, err := g.reviewer.Authorize(r.Context(), &authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Version: "v1", Resource: "nodes", Subresource: subresource, Name: g.node,
			},
		})
		if err != nil || allowed {
			return "", err
		}
		why = "Forbidden (user=" + user.Username + ", verb=" + verb + ", resource=nodes, subresource=" + subresource + ")"
		if reason != "" {
			why += ": " + reason
		}
	}
	return why, nil
}

// access returns the verb of a request, and the subresources of a node of which one must be allowed (KEP-2862).
func access(r *http.Request) (verb string, subresources []string) {
	path, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch path {
	case "pods", "healthz":
		subresources = []string{path}
	case "exec", "run":
		return "create", []string{"proxy"}
	}
	verbs := map[string]string{
		http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
	}
	if verb = verbs[r.Method]; verb == "" {
		verb = "get"
	}
	return verb, append(subresources, "proxy")
}
