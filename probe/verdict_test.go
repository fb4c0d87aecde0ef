package probe

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/podmill/podmill"
)

// with returns a container that has the probes named.
func with(probes map[kind]*corev1.Probe) *corev1.Container {
	return &corev1.Container{Name: "main", StartupProbe: probes[startup], LivenessProbe: probes[liveness], ReadinessProbe: probes[readiness]}
}

func TestVerdictBegins(t *testing.T) {
	yes, no := true, false
	p := &corev1.Probe{}
	all := map[kind]*corev1.Probe{startup: p, liveness: p, readiness: p}
	for name, tc := range map[string]struct {
		probes map[kind]*corev1.Probe
		prior  *corev1.ContainerStatus
		want   podmill.Health
		wants  [kinds]bool
	}{
		"new, liveness only":    {map[kind]*corev1.Probe{liveness: p}, nil, podmill.Health{Started: true, Ready: true}, [kinds]bool{liveness: true}},
		"new, readiness only":   {map[kind]*corev1.Probe{readiness: p}, nil, podmill.Health{Started: true}, [kinds]bool{readiness: true}},
		"new, startup only":     {map[kind]*corev1.Probe{startup: p}, nil, podmill.Health{}, [kinds]bool{startup: true}}, // B042
		"new, all":              {all, nil, podmill.Health{}, [kinds]bool{startup: true}},
		"known, nothing said":   {all, &corev1.ContainerStatus{}, podmill.Health{}, [kinds]bool{startup: true}},
		"known, not started":    {all, &corev1.ContainerStatus{Started: &no, Ready: true}, podmill.Health{}, [kinds]bool{startup: true}},
		"known, started":        {all, &corev1.ContainerStatus{Started: &yes}, podmill.Health{Started: true}, [kinds]bool{liveness: true, readiness: true}},
		"known, ready":          {all, &corev1.ContainerStatus{Started: &yes, Ready: true}, podmill.Health{Started: true, Ready: true}, [kinds]bool{liveness: true, readiness: true}},
		"known, ready, no gate": {map[kind]*corev1.Probe{readiness: p}, &corev1.ContainerStatus{Ready: true}, podmill.Health{Started: true, Ready: true}, [kinds]bool{readiness: true}},
	} {
		v := newVerdict(with(tc.probes), tc.prior)
		if got := v.health(); got != tc.want {
			t.Errorf("%s: %+v", name, got)
		}
		for k := range kinds {
			if v.wants(k) != tc.wants[k] {
				t.Errorf("%s: wants %s: %v", name, k.name(), v.wants(k))
			}
		}
	}
}

func TestVerdictThresholds(t *testing.T) {
	v := newVerdict(with(map[kind]*corev1.Probe{
		startup: {FailureThreshold: 3}, liveness: {}, readiness: {SuccessThreshold: 2, FailureThreshold: 2},
	}), nil)
	type step struct {
		kind    kind
		ok      bool
		changed bool
		want    podmill.Health
	}
	up, ready := podmill.Health{Started: true}, podmill.Health{Started: true, Ready: true}
	for i, s := range []step{
		{startup, false, false, podmill.Health{}},
		{startup, false, false, podmill.Health{}},
		{startup, true, true, up},
		{readiness, true, false, up},
		{readiness, false, false, up},
		{readiness, true, false, up}, // in a row
		{readiness, true, true, ready},
		{readiness, true, false, ready},
		{readiness, false, false, ready},
		{readiness, false, true, up},
		{liveness, false, false, up},
		{liveness, false, false, up},
		{liveness, true, false, up},
		{liveness, false, false, up},
		{liveness, false, false, up},
		{liveness, false, true, podmill.Health{Started: true, Failed: podmill.ProbeLiveness, Message: "no"}}, // the default: 3
	} {
		if changed := v.result(s.kind, s.ok, "no"); changed != s.changed || v.health() != s.want {
			t.Fatalf("step %d: changed %v, %+v", i, changed, v.health())
		}
	}
	if v.wants(liveness) || v.wants(startup) || !v.wants(readiness) {
		t.Error("a container that is to be restarted is probed for readiness alone")
	}
	v.ending = true // B052
	if h := v.health(); h.Failed != "" || h.Message != "" {
		t.Errorf("ending: %+v", h)
	}
}

// TestVerdictProperties compares the state machine with one that looks at the whole history.
func TestVerdictProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := with(map[kind]*corev1.Probe{})
		thresholds := [kinds][2]int{}
		for k := range kinds {
			if !rapid.Bool().Draw(t, "has") {
				continue
			}
			p := &corev1.Probe{SuccessThreshold: 1, FailureThreshold: rapid.Int32Range(1, 4).Draw(t, "failures")}
			if k == readiness {
				p.SuccessThreshold = rapid.Int32Range(1, 3).Draw(t, "successes")
			}
			*[kinds]**corev1.Probe{&c.StartupProbe, &c.LivenessProbe, &c.ReadinessProbe}[k] = p
			thresholds[k] = [2]int{int(p.FailureThreshold), int(p.SuccessThreshold)}
		}
		v := newVerdict(c, nil)
		var history [kinds][]bool
		// settled returns the last result that came often enough in a row.
		settled := func(k kind) (ok, any bool) {
			for end := len(history[k]); end > 0; end-- {
				last, n := history[k][end-1], 0
				for i := end; i > 0 && history[k][i-1] == last; i-- {
					n++
				}
				need := thresholds[k][0]
				if last {
					need = thresholds[k][1]
				}
				if n >= need {
					return last, true
				}
			}
			return false, false
		}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			k := kind(rapid.IntRange(0, int(kinds)-1).Draw(t, "kind"))
			if !v.wants(k) {
				continue
			}
			ok := rapid.Bool().Draw(t, "ok")
			before := v.health()
			history[k] = append(history[k], ok)
			if changed := v.result(k, ok, "m"); changed != (v.health() != before) {
				t.Fatalf("says changed %v: %+v, %+v", changed, before, v.health())
			}
			want := podmill.Health{Started: c.StartupProbe == nil}
			if up, any := settled(startup); any {
				want.Started = up
				if !up {
					want.Failed, want.Message = podmill.ProbeStartup, "m"
				}
			}
			if alive, any := settled(liveness); any && !alive {
				want.Failed, want.Message = podmill.ProbeLiveness, "m"
			}
			ready, _ := settled(readiness)
			want.Ready = want.Started && (c.ReadinessProbe == nil || ready)
			if got := v.health(); got != want {
				t.Fatalf("%v: %+v, want %+v", history, got, want)
			}
			if got := v.health(); got.Failed != "" && (v.wants(startup) || v.wants(liveness)) {
				t.Fatal("what has failed is probed on")
			}
		}
	})
}
