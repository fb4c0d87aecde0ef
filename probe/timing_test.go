package probe

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestTimingDefaults(t *testing.T) {
	if got, want := timingOf(&corev1.Probe{}), (timing{0, 10 * time.Second, time.Second}); got != want {
		t.Error(got)
	}
	if got, want := timingOf(&corev1.Probe{InitialDelaySeconds: 3, PeriodSeconds: 2, TimeoutSeconds: 5}), (timing{3 * time.Second, 2 * time.Second, 5 * time.Second}); got != want {
		t.Error(got)
	}
}

func TestTurns(t *testing.T) {
	t0 := time.Now()
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	tm := timing{delay: 5 * time.Second, period: 10 * time.Second}
	for name, tc := range map[string]struct{ got, want time.Time }{
		"first after the delay":           {tm.first(at(0), at(1)), at(5)},
		"first when the delay has passed": {tm.first(at(0), at(7)), at(7)},
		"next after a quick one":          {tm.next(at(10), at(11)), at(20)},
		"next after a slow one":           {tm.next(at(10), at(23)), at(23)},
	} {
		if !tc.got.Equal(tc.want) {
			t.Errorf("%s: %v", name, tc.got.Sub(t0))
		}
	}
	for range 1000 {
		if d := tm.spread(); d < 0 || d >= tm.period {
			t.Fatal(d)
		}
	}
}

// A clock that jumped makes a container neither of the future nor older than it can be.
func TestAgeOf(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
		started time.Time
		ago     time.Duration
		want    time.Duration
	}{
		"not told":              {time.Time{}, -1, 0},
		"first look":            {now.Add(-time.Hour), -1, time.Hour},
		"first look, of future": {now.Add(time.Hour), -1, 0},
		"just begun":            {now.Add(-time.Second), time.Minute, time.Second},
		"clock jumped forward":  {now.Add(-time.Hour), time.Minute, time.Minute},
		"clock jumped back":     {now.Add(time.Hour), time.Minute, 0},
	} {
		if got := ageOf(tc.started.Round(0), now, tc.ago); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
