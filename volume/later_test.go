package volume

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

// later is a plugin that can make nothing before it is there.
type later struct {
	slow
	there chan struct{}
}

func (l later) SetUp(ctx context.Context, m Mount) (podmill.Volume, error) {
	select {
	case <-l.there:
		return l.slow.SetUp(ctx, m)
	default:
		return podmill.Volume{}, LaterError{Err: errNotThere, Changed: l.there}
	}
}

func (l later) Features() podmill.Features { return podmill.Features{"volumes.nfs.path": {}} }

var errNotThere = errors.New("it is not there")

// A plugin that knows when it is worth another attempt is asked again at once then, in the middle of a long pause.
func TestAPluginThatSaysWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := later{there: make(chan struct{})}
		r := newRig(t, WithPlugins(l))
		start := time.Now()
		time.AfterFunc(time.Minute, func() { close(l.there) })
		r.mount(podOf(nfs()))
		if took := time.Since(start); took != time.Minute {
			t.Errorf("ready after %v, and could be after 1m", took)
		}
		if events := r.events.String(); !strings.Contains(events, `MountVolume.SetUp failed for volume "v" : it is not there`) {
			t.Errorf("people are told %q", events)
		}
	})
}

// A plugin may say itself what it serves.
func TestFeaturesOfAPlugin(t *testing.T) {
	r := newRig(t, WithPlugins(later{}))
	for field, refused := range map[string]bool{"volumes.nfs.path": false, "volumes.nfs.server": true} {
		if how, _ := r.Features().Of(field); how.Refused != refused {
			t.Errorf("%s: %+v", field, how)
		}
	}
}

// A plugin that takes long to take away one pod's volume does not keep the clean-up from others.
func TestPodsAreCleanedUpSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, WithPlugins(slow{tearDown: time.Minute}))
		for _, name := range []string{"a", "b", "c"} {
			r.mount(podmilltest.Pod(name, volume("v", nfs())))
		}
		r.restart()
		start := time.Now()
		must(t, r.Cleanup(t.Context(), func(types.UID) bool { return false }))
		if took := time.Since(start); took != time.Minute {
			t.Errorf("cleaned up in %v, want 1m", took)
		}
	})
}

// A plugin gets what a claim is bound to, and the claim.
func TestAPluginGetsTheClaim(t *testing.T) {
	var got Mount
	r := claimRig(t, WithPlugins(asked{got: &got}))
	r.objects.Bind(claim("c"), persistent("pv", corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{}}))
	r.mount(podOf(claimSource("c")))
	if got.Claim == nil || got.Claim.Name != "c" || got.PV.Name != "pv" {
		t.Errorf("it got %+v", got)
	}
}

// asked makes persistent volumes, and keeps what it was asked for.
type asked struct {
	slow
	got *Mount
}

func (asked) HandlesPersistent(pv *corev1.PersistentVolume) bool { return pv.Spec.NFS != nil }

func (a asked) SetUp(ctx context.Context, m Mount) (podmill.Volume, error) {
	*a.got = m
	return a.slow.SetUp(ctx, m)
}
