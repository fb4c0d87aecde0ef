package sandbox

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/podmill/podmill"
)

// TestGhosts shows which sandboxes are of no use to anyone.
func TestGhosts(t *testing.T) {
	now := time.Now()
	age := func(d time.Duration) func(*podmill.Sandbox) {
		return func(s *podmill.Sandbox) { s.CreatedAt = now.Add(-d) }
	}
	for name, tc := range map[string]struct {
		sandboxes  []podmill.Sandbox
		containers []podmill.Container
		want       []string
	}{
		"none":                        {},
		"the only one":                {sandboxes: []podmill.Sandbox{dead(0, age(time.Hour))}},
		"replaced":                    {sandboxes: []podmill.Sandbox{ready(1), dead(0, age(time.Hour))}, want: []string{"a"}},
		"left by failed attempts":     {sandboxes: []podmill.Sandbox{dead(2, age(time.Hour)), dead(1, age(time.Hour)), dead(0, age(time.Hour))}, want: []string{"b", "a"}},
		"young":                       {sandboxes: []podmill.Sandbox{ready(1), dead(0, age(29*time.Second))}},
		"old enough":                  {sandboxes: []podmill.Sandbox{ready(1), dead(0, age(30*time.Second))}, want: []string{"a"}},
		"from the future":             {sandboxes: []podmill.Sandbox{ready(1), dead(0, age(-time.Hour))}},
		"without a time":              {sandboxes: []podmill.Sandbox{ready(1), dead(0)}, want: []string{"a"}},
		"alive":                       {sandboxes: []podmill.Sandbox{ready(1), ready(0, age(time.Hour))}},
		"with a container":            {sandboxes: []podmill.Sandbox{ready(1), dead(0, age(time.Hour))}, containers: []podmill.Container{{SandboxID: "a"}}},
		"with another's container":    {sandboxes: []podmill.Sandbox{ready(1), dead(0, age(time.Hour))}, containers: []podmill.Container{{SandboxID: "b"}}, want: []string{"a"}},
		"older, but dead and foreign": {sandboxes: []podmill.Sandbox{dead(1, age(time.Hour)), ready(0, age(time.Hour))}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ghosts(&podmill.RuntimePod{Sandboxes: tc.sandboxes, Containers: tc.containers}, now, 30*time.Second)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestGhostsAreNeverChosen shows that what Collect removes is never what Choose would use.
func TestGhostsAreNeverChosen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seen := &podmill.RuntimePod{}
		for _, attempt := range rapid.SliceOf(rapid.Uint32Range(0, 9)).Draw(t, "attempts") {
			s := ready(attempt)
			s.ID = fmt.Sprint(len(seen.Sandboxes))
			s.Ready = rapid.Bool().Draw(t, "ready")
			seen.Sandboxes = append(seen.Sandboxes, s)
		}
		gone := ghosts(seen, time.Now(), 0)
		if len(seen.Sandboxes) > 0 && len(gone) == len(seen.Sandboxes) {
			t.Fatal("nothing is left of the pod")
		}
		current, _, _ := choose(newPod("web"), seen)
		for _, id := range gone {
			if current != nil && current.ID == id {
				t.Fatalf("%s is in use", id)
			}
		}
	})
}

// TestCollect shows that ghosts of several pods go, that one that cannot be removed does not keep the others, and that age is told by the
// clock of the node.
func TestCollect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("busy")
		f := &fake{fail: map[string]error{"remove x0": boom, "remove x1": podmill.ErrNotFound}}
		var collected []string
		m := New(f, WithGhostAge(time.Minute), WithObserver(Observer{
			Collected: func(pod podmill.PodRef, id string, err error) {
				collected = append(collected, fmt.Sprint(pod.Name, " ", id, " ", err))
			},
		}))
		made := func(id string) func(*podmill.Sandbox) {
			return func(s *podmill.Sandbox) { s.ID, s.CreatedAt = id, time.Now() }
		}
		pods := []*podmill.RuntimePod{
			{PodRef: podmill.PodRef{Name: "x"}, Sandboxes: []podmill.Sandbox{dead(2, made("x2")), dead(1, made("x1")), dead(0, made("x0"))}},
			{PodRef: podmill.PodRef{Name: "y"}, Sandboxes: []podmill.Sandbox{ready(1, made("y1")), dead(0, made("y0"))}},
		}
		if err := m.Collect(t.Context(), pods); err != nil || len(f.calls) > 0 {
			t.Errorf("all are young: %v, %v", err, f.calls)
		}
		time.Sleep(time.Minute)
		if err := m.Collect(t.Context(), pods); !errors.Is(err, boom) || err.Error() != "remove dead sandbox x0 of pod /x(): busy" {
			t.Errorf("got %v", err)
		}
		wantCalls(t, f.calls, "remove x1", "remove x0", "remove y0")
		wantCalls(t, collected, "x x1 <nil>", "x x0 busy", "y y0 <nil>")
	})
}
