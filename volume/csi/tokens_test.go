package csi

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/volume"
)

// renewals makes tokens that live for an hour, unless it is away.
type renewals struct {
	tokens
	away bool
}

func (r *renewals) ServiceAccountToken(ctx context.Context, pod *corev1.Pod, s *corev1.ServiceAccountTokenProjection) (podmill.Token, error) {
	if r.away {
		r.made++
		return podmill.Token{}, errAway
	}
	return r.tokens.ServiceAccountToken(ctx, pod, s)
}

// A driver's token is made anew at four fifths of its life. While that fails it is good, and asked for now and then; when it has ended there is none. A driver that wants another
// one gets it at once.
func TestADriversTokenIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		maker := &renewals{}
		drivers, err := New("/none", "node1", WithServiceAccountTokens(maker))
		must(t, err)
		w := &mounting{
			Drivers: drivers, spec: spec{pod: inline("a")}, mount: volume.Mount{Place: volume.Place{UID: "a", Name: "v"}},
			info: &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{TokenRequests: []storagev1.TokenRequest{{Audience: "vault"}}}},
		}
		start := time.Now()
		expires := func() time.Duration {
			t.Helper()
			all, err := w.tokens(t.Context())
			must(t, err)
			return all["vault"].ExpirationTimestamp.Sub(start)
		}
		if e := expires(); e != time.Hour {
			t.Errorf("it ends after %v", e)
		}
		time.Sleep(47 * time.Minute)
		if e := expires(); e != time.Hour || maker.made != 1 {
			t.Errorf("after %v it is another, of which %d were made", time.Since(start), maker.made)
		}
		maker.away = true
		time.Sleep(time.Minute)
		for range 3 {
			if e := expires(); e != time.Hour || maker.made != 2 {
				t.Errorf("while nobody makes one it is asked for %d times, and ends after %v", maker.made, e)
			}
		}
		time.Sleep(12 * time.Minute)
		if _, err := w.tokens(t.Context()); err == nil || !strings.Contains(err.Error(), errAway.Error()) {
			t.Errorf("one that has ended: %v", err)
		}
		maker.away = false
		if e := expires(); e != 2*time.Hour {
			t.Errorf("it ends after %v", e)
		}
		made := maker.made
		w.info.Spec.TokenRequests[0].ExpirationSeconds = ptr.To(int64(600))
		if expires(); maker.made != made+1 {
			t.Error("a driver that wants one of another life gets the one before")
		}
	})
}
