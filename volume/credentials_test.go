package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

// issuer makes tokens and certificates that live for a time, an hour unless it says otherwise, and has trust bundles.
type issuer struct {
	life    time.Duration
	made    int
	asked   int
	fail    error
	hangs   bool // until whoever asks gives up
	bundles map[string]string
}

func (i *issuer) issue(ctx context.Context) (time.Time, error) {
	i.asked++
	if i.hangs {
		<-ctx.Done()
		return time.Time{}, ctx.Err()
	}
	if i.fail != nil {
		return time.Time{}, i.fail
	}
	i.made++
	if i.life == 0 {
		i.life = time.Hour
	}
	return time.Now().Add(i.life), nil
}

func (i *issuer) ServiceAccountToken(ctx context.Context, pod *corev1.Pod, s *corev1.ServiceAccountTokenProjection) (podmill.Token, error) {
	expires, err := i.issue(ctx)
	value := "of " + pod.Namespace + "/" + pod.Name
	if s.Audience != "" {
		value = fmt.Sprintf("%d for %s", i.made, s.Audience)
	}
	return podmill.Token{Value: value, Expires: expires}, err
}

func (i *issuer) PodCertificate(ctx context.Context, _ *corev1.Pod, s *corev1.PodCertificateProjection) (podmill.PodCertificate, error) {
	expires, err := i.issue(ctx)
	return podmill.PodCertificate{
		Key: []byte(fmt.Sprintf("key %d\n", i.made)), Chain: []byte(fmt.Sprintf("chain %d of %s\n", i.made, s.SignerName)), Renew: expires.Add(-i.life / 2), Expires: expires,
	}, err
}

func (i *issuer) TrustBundle(_ context.Context, s *corev1.ClusterTrustBundleProjection) ([]byte, error) {
	if pem, ok := i.bundles[*s.Name]; ok {
		return []byte(pem), nil
	}
	return nil, podmill.ErrNotFound
}

func projected(sources ...corev1.VolumeProjection) corev1.VolumeSource {
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}
}

func tokenSource(audience string) corev1.VolumeProjection {
	return corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", Audience: audience}}
}

// jitter is how much earlier a token may be renewed.
const jitter = 10 * time.Second

// A token is the same until four fifths of its life have passed, and then it is another, for readers at once.
func TestTokenIsRenewed(t *testing.T) {
	for _, tt := range []struct{ life, renewed time.Duration }{{10 * time.Minute, 8 * time.Minute}, {time.Hour, 48 * time.Minute}, {10 * 24 * time.Hour, 24 * time.Hour}} {
		synctest.Test(t, func(t *testing.T) {
			i := &issuer{life: tt.life}
			r := newRig(t, WithServiceAccountTokens(i))
			pod := podOf(projected(tokenSource("vault")))
			path := r.mount(pod)
			time.Sleep(tt.renewed - jitter - time.Second)
			r.mount(pod)
			holds(t, path, map[string]string{"token": "1 for vault"})
			time.Sleep(jitter + time.Second)
			r.mount(pod)
			holds(t, path, map[string]string{"token": "2 for vault"})
			r.unmount(pod)
			r.mount(pod) // of a pod that was gone nothing is kept
			holds(t, path, map[string]string{"token": "3 for vault"})
			r.unmount(pod)
		})
	}
}

// While nobody renews it, a token is good as long as it lives; then a pod that runs keeps what it has, and people are told.
func TestTokenThatIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{life: time.Hour}
		r := newRig(t, WithServiceAccountTokens(i))
		pod := podOf(projected(tokenSource("vault")))
		path := r.mount(pod)
		i.fail = errors.New("nobody is there")
		time.Sleep(59 * time.Minute)
		r.mount(pod)
		if events := r.events.String(); events != "" {
			t.Errorf("events while the token is good: %s", events)
		}
		time.Sleep(2 * time.Minute)
		r.mount(pod)
		holds(t, path, map[string]string{"token": "1 for vault"})
		if events := r.events.String(); !strings.Contains(events, `FailedMount default/a: MountVolume.SetUp failed for volume "v" : failed to fetch token: nobody is there`) {
			t.Errorf("events when the token has ended: %s", events)
		}
		i.fail = nil
		r.mount(pod)
		holds(t, path, map[string]string{"token": "2 for vault"})
		r.unmount(pod)
	})
}

// Whoever does not answer does not hold a pod that has a good token, and is not asked at every sync. Where there is none, he is waited for.
func TestATokenThatIsGoodDoesNotHoldThePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{life: time.Hour}
		r := newRig(t, WithServiceAccountTokens(i))
		pod := podOf(projected(tokenSource("vault")))
		path := r.mount(pod)
		time.Sleep(50 * time.Minute) // ten are left
		i.hangs = true
		for range 3 {
			begun := time.Now()
			r.mount(pod)
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("the pod was held for %v", took)
			}
		}
		if i.asked != 2 {
			t.Errorf("asked %d times, want 2", i.asked)
		}
		i.hangs = false
		time.Sleep(time.Minute)
		r.mount(pod)
		holds(t, path, map[string]string{"token": "2 for vault"})
		time.Sleep(2 * time.Hour)
		i.hangs = true
		begun := time.Now()
		r.mount(pod)
		if took := time.Since(begun); took < time.Minute {
			t.Errorf("a token that has ended was waited for only %v", took)
		}
		r.unmount(pod)
	})
}

// Two sources have a token each, also in one volume.
func TestTokensOfTwoSources(t *testing.T) {
	r := newRig(t, WithServiceAccountTokens(&issuer{}))
	other := tokenSource("b")
	other.ServiceAccountToken.Path = "other"
	pod := podOf(projected(tokenSource("a"), other))
	for range 2 {
		holds(t, r.mount(pod), map[string]string{"token": "1 for a", "other": "2 for b"})
	}
}

func TestPodCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, WithPodCertificates(&issuer{life: time.Hour}))
		pod := podOf(projected(corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{
			SignerName: "x/y", KeyPath: "key.pem", CertificateChainPath: "chain.pem", CredentialBundlePath: "all.pem",
		}}), fsGroupOf(2000))
		path := r.mount(pod)
		time.Sleep(29 * time.Minute)
		r.mount(pod)
		holds(t, path, map[string]string{"key.pem": "key 1\n", "chain.pem": "chain 1 of x/y\n", "all.pem": "key 1\nchain 1 of x/y\n"})
		if info, err := os.Stat(filepath.Join(path, "key.pem")); err != nil || info.Mode() != 0o640 {
			t.Errorf("the key has mode %v, %v", info.Mode(), err)
		}
		time.Sleep(time.Minute)
		r.mount(pod)
		holds(t, path, map[string]string{"key.pem": "key 2\n", "chain.pem": "chain 2 of x/y\n", "all.pem": "key 2\nchain 2 of x/y\n"})
		r.unmount(pod)
	})
}

func TestTrustBundle(t *testing.T) {
	i := &issuer{bundles: map[string]string{}}
	r := newRig(t, WithTrustBundles(i))
	source := func(optional bool) corev1.VolumeSource {
		return projected(corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Name: ptr("ca"), Path: "ca.pem", Optional: &optional}})
	}
	r.notReady(podOf(source(false)), `clustertrustbundle "ca": not found`)
	pod := podmilltest.Pod("b", volume("v", source(true)))
	path := r.mount(pod)
	for _, pem := range []string{"", "one", "two"} {
		if pem != "" {
			i.bundles["ca"] = pem
			r.mount(pod)
		}
		holds(t, path, map[string]string{"ca.pem": pem})
	}
	r.unmount(pod)
}

// Whoever prints what a pod proves itself by learns nothing.
func TestCredentialsAreNotPrinted(t *testing.T) {
	const secret = "hush"
	for _, v := range []any{podmill.Token{Value: secret}, podmill.PodCertificate{Key: []byte(secret)}} {
		for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
			if said := fmt.Sprintf(format, v); strings.Contains(said, secret) || strings.Contains(said, "104 117") {
				t.Errorf("%s tells %s", format, said)
			}
		}
	}
}

// A volume that holds what ends says when it wants to be brought up to date, whatever the life of that; others do not.
func TestVolumeSaysWhenToRenewIt(t *testing.T) {
	for _, life := range []time.Duration{5 * time.Second, 10 * time.Minute, time.Hour, 10 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			i := &issuer{life: life}
			r := newRig(t, WithServiceAccountTokens(i))
			r.configMap("m", map[string]string{"a": "1"})
			long := tokenSource("long")
			long.ServiceAccountToken.Path = "long"
			pod := podmilltest.Pod("a", volume("v", projected(tokenSource("short"), long)), volume("w", configMapSource("m")))
			least := min(life/5*4, 24*time.Hour) - min(jitter, life/20)
			for made := 2; made < 40; made++ {
				volumes, err := r.MountVolumes(t.Context(), pod)
				must(t, err)
				if i.made < made || !volumes["w"].Renew.IsZero() {
					t.Fatalf("life %v: %d tokens were made, want at least %d; the ConfigMap is renewed at %v", life, i.made, made, volumes["w"].Renew)
				}
				left := time.Until(volumes["v"].Renew)
				if made == 2 && (left < least || left > life/5*4) || left <= 0 {
					t.Fatalf("life %v: it is to be renewed in %v, want %v to %v", life, left, least, life/5*4)
				}
				time.Sleep(left)
			}
			r.unmount(pod)
		})
	}
}

// What has ended and cannot be had is asked for every minute, and what has no life, as where a clock goes wrong, in no haste.
func TestVolumeThatCannotBeRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{life: 10 * time.Second}
		r := newRig(t, WithServiceAccountTokens(i))
		pod := podOf(projected(tokenSource("vault")))
		renew := func() time.Duration {
			t.Helper()
			volumes, err := r.MountVolumes(t.Context(), pod)
			must(t, err)
			return time.Until(volumes["v"].Renew)
		}
		time.Sleep(renew())
		i.fail = errors.New("nobody is there")
		time.Sleep(renew()) // until it ends
		for range 3 {
			if left := renew(); left != renewalPause {
				t.Errorf("it is to be renewed in %v, want %v", left, renewalPause)
			}
			time.Sleep(renewalPause)
		}
		i.fail, i.life = nil, -time.Hour
		if left := renew(); left > 0 {
			t.Errorf("a token without a life is to be renewed in %v", left)
		}
		r.unmount(pod)
	})
}
