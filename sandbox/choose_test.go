package sandbox

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/podmill/podmill"
)

func ready(attempt uint32, change ...func(*podmill.Sandbox)) podmill.Sandbox {
	s := podmill.Sandbox{ID: string(rune('a' + attempt)), Attempt: attempt, Ready: true, IPs: []string{"10.0.0.1"}}
	for _, c := range change {
		c(&s)
	}
	return s
}

func dead(attempt uint32, change ...func(*podmill.Sandbox)) podmill.Sandbox {
	return ready(attempt, append(change, func(s *podmill.Sandbox) { s.Ready = false })...)
}

// TestChoose shows which sandbox is used, and when a new one is made.
func TestChoose(t *testing.T) {
	noAddress := func(s *podmill.Sandbox) { s.IPs = nil }
	onHost := func(s *podmill.Sandbox) { s.HostNetwork, s.IPs = true, nil }
	runsc := func(s *podmill.Sandbox) { s.RuntimeHandler = "runsc" }
	inTwoHours := func(s *podmill.Sandbox) { s.CreatedAt = time.Now().Add(2 * time.Hour) }
	for name, tc := range map[string]struct {
		host    bool
		seen    []podmill.Sandbox
		current string // the ID, empty for none
		attempt uint32
		why     string
	}{
		"none":                        {attempt: 0, why: "there is no sandbox"},
		"ready":                       {seen: []podmill.Sandbox{ready(2)}, current: "c", attempt: 2},
		"dead":                        {seen: []podmill.Sandbox{dead(2)}, attempt: 3, why: "no sandbox is ready"}, // B028
		"all dead":                    {seen: []podmill.Sandbox{dead(7), dead(2)}, attempt: 8, why: "no sandbox is ready"},
		"ready beside a dead one":     {seen: []podmill.Sandbox{ready(1), dead(0)}, current: "b", attempt: 1},
		"dead one from the future":    {seen: []podmill.Sandbox{ready(1), dead(0, inTwoHours)}, current: "b", attempt: 1}, // B010
		"newer dead from the future":  {seen: []podmill.Sandbox{dead(1, inTwoHours), ready(0)}, current: "a", attempt: 0}, // B010
		"two ready":                   {seen: []podmill.Sandbox{ready(1), ready(0)}, attempt: 2, why: "2 sandboxes are ready"},
		"in no order":                 {seen: []podmill.Sandbox{ready(0), ready(5), dead(3)}, attempt: 6, why: "2 sandboxes are ready"},
		"no address":                  {seen: []podmill.Sandbox{ready(0, noAddress)}, attempt: 1, why: "the sandbox has no address"},
		"host network":                {host: true, seen: []podmill.Sandbox{ready(0, onHost)}, current: "a", attempt: 0},
		"pod moved to the host":       {host: true, seen: []podmill.Sandbox{ready(0)}, attempt: 1, why: "the pod is in the host's network and the sandbox is not"},
		"pod moved from the host":     {seen: []podmill.Sandbox{ready(0, onHost)}, attempt: 1, why: "the sandbox is in the host's network and the pod is not"},
		"of some handler":             {seen: []podmill.Sandbox{ready(0, runsc)}, current: "a", attempt: 0},
		"dead ones need not fit":      {seen: []podmill.Sandbox{ready(1), dead(0, onHost, runsc)}, current: "b", attempt: 1},
		"dead ones have no addresses": {seen: []podmill.Sandbox{ready(1), dead(0, noAddress)}, current: "b", attempt: 1},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod("web")
			pod.Spec.HostNetwork = tc.host
			current, attempt, why := choose(pod, &podmill.RuntimePod{Sandboxes: tc.seen})
			id := ""
			if current != nil {
				id = current.ID
			}
			if id != tc.current || attempt != tc.attempt || why != tc.why {
				t.Errorf("got %q, %d, %q; want %q, %d, %q", id, attempt, why, tc.current, tc.attempt, tc.why)
			}
		})
	}
	if current, attempt, _ := choose(newPod("web"), nil); current != nil || attempt != 0 {
		t.Errorf("nothing seen: got %v, %d", current, attempt)
	}
}

// TestChooseConverges shows that whatever a runtime holds, an attempt is never used twice, and that what is made once is used from then
// on, however the clocks ran (B010).
func TestChooseConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seen := &podmill.RuntimePod{}
		used := map[uint32]bool{}
		for _, attempt := range rapid.SliceOfDistinct(rapid.Uint32Range(0, 20), rapid.ID[uint32]).Draw(t, "attempts") {
			s := ready(attempt)
			s.Ready = rapid.Bool().Draw(t, "ready")
			s.CreatedAt = time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "created"), 0)
			s.HostNetwork = rapid.Bool().Draw(t, "host")
			seen.Sandboxes = append(seen.Sandboxes, s)
			used[attempt] = true
		}
		pod := &corev1.Pod{}
		current, attempt, why := choose(pod, seen)
		if (current == nil) != (why != "") {
			t.Fatalf("current %v, why %q", current, why)
		}
		if current != nil {
			return
		}
		if used[attempt] {
			t.Fatalf("attempt %d is used", attempt)
		}
		for i := range seen.Sandboxes { // as Stop leaves them
			seen.Sandboxes[i].Ready = false
		}
		seen.Sandboxes = append(seen.Sandboxes, ready(attempt))
		if current, _, why = choose(pod, seen); current == nil || current.Attempt != attempt {
			t.Fatalf("the new sandbox is not used: %s", why)
		}
	})
}
