package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/internal/testenv/apifault"
	"github.com/podmill/podmill/podmilltest"
)

// A token is renewed when four fifths of its life are over, to the second and not when somebody next looks at its pod, and never expires in the hands of the pod. Nobody is
// told, and the container runs on.
func TestATokenIsRenewed(t *testing.T) {
	testenv.Root(t)
	for _, life := range []time.Duration{10 * time.Minute, time.Hour} { // no server gives a shorter one than the first
		inVirtualTime(t, func(v *virtual) {
			v.api.CreatePod(withToken("p", life))
			running := v.says(time.Minute, "p")
			token := func() (until time.Time) {
				data, err := os.ReadFile(filepath.Join(v.root, "pods", string(running.UID), "volumes", "kubernetes.io~projected", "token", "token"))
				if err == nil {
					until, err = time.Parse(time.RFC3339, strings.TrimPrefix(string(data), "token-until-"))
				}
				if err != nil {
					t.Fatal(err)
				}
				return until
			}
			last, renewals, step := token(), 0, life/600
			for begin := time.Now(); time.Since(begin) < 10*life; v.pass(step) {
				now := token()
				if !now.After(last) {
					continue
				}
				if left := time.Until(last); left < life/5-step-2*time.Second || left > life/5+12*time.Second {
					t.Errorf("a token of %v was renewed with %v left, want a fifth, and up to ten seconds more", life, left)
				}
				last, renewals = now, renewals+1
			}
			if renewals < 12 || renewals > 13 {
				t.Errorf("%d renewals in ten times the life", renewals)
			}
			if n := v.rt.Log().Count(podmilltest.OpCreateContainer); n != 1 || v.api.Pod("x", "p").ResourceVersion != running.ResourceVersion {
				t.Errorf("%d containers were made, and the status is %+v", n, v.api.Pod("x", "p").Status)
			}
		})
	}
}

// A token that lives for seconds is renewed in time too: nothing waits for the next look at the pod.
func TestATokenOfFiveSeconds(t *testing.T) {
	testenv.Root(t)
	inVirtualTime(t, func(v *virtual) {
		request := apifault.Request{Verb: "create", Resource: "serviceaccounts", Subresource: "token"}
		v.way.Add(apifault.Fault{On: request, Effect: apifault.ShortLived(5 * time.Second)})
		v.api.CreatePod(withToken("p", time.Hour))
		v.says(time.Minute, "p")
		v.way.Take()
		v.pass(time.Minute)
		if n := count(v.way.Take(), request); n < 14 || n > 21 { // the server tells the end in whole seconds
			t.Errorf("%d tokens in a minute, want one every three or four seconds", n)
		}
	})
}

// Tokens of a real server, which it says live for five seconds: the file in a container that runs is another one again and again, whoever reads it finds a whole token that the
// server knows as the pod's, and nothing else happens to the pod.
func TestTokensOfARealServerAreRenewed(t *testing.T) {
	c := newCluster(t)
	way := throughAProxy(c)
	way.Add(apifault.Fault{On: apifault.Request{Verb: "create", Resource: "serviceaccounts", Subresource: "token"}, Effect: apifault.ShortLived(5 * time.Second)})
	c.start()
	const script = `cd /var/run/secrets/kubernetes.io/serviceaccount
while :; do now=$(cat token) || now=unreadable; [ "$now" = "$last" ] || echo "$now"; last=$now; sleep 0.1; done`
	c.CreatePod(podmilltest.Pod("x/reader", podmilltest.Grace(0), podmilltest.Container("main", busybox, podmilltest.Command("sh", "-c", script))))
	pod := c.reaches("reader", "is ready", ready)
	var read []string
	c.Eventually("four tokens have been read", func() bool {
		text, _ := c.logs("reader")
		read = strings.Split(strings.TrimSpace(text), "\n")
		return len(read) > 4
	})
	for _, token := range read[:4] {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
		c.Raw("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review, review)
		if of := review.Status.User.Extra["authentication.kubernetes.io/pod-uid"]; !review.Status.Authenticated || len(of) != 1 || of[0] != string(pod.UID) {
			t.Errorf("token %.20s... of %d bytes is %+v, want the pod's", token, len(token), review.Status)
		}
	}
	if now := c.Pod("reader"); now.ResourceVersion != pod.ResourceVersion || now.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the pod is %+v", now.Status)
	}
}

func withToken(name string, life time.Duration) *corev1.Pod {
	pod := needy(name)
	seconds := int64(life / time.Second)
	pod.Spec.Volumes[0].Projected.Sources[0].ServiceAccountToken.ExpirationSeconds = &seconds
	return pod
}
