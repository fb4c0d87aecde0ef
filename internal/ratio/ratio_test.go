package ratio_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/podmill/podmill/internal/ratio"
)

// lasting is work that lasts so long each time, the last for ever after.
func lasting(turns ...time.Duration) func() {
	n := 0
	return func() {
		time.Sleep(turns[min(n, len(turns)-1)])
		n++
	}
}

// verdict is a test that may fail.
type verdict struct {
	testing.TB
	failed bool
}

func (v *verdict) Helper()               {}
func (v *verdict) Logf(string, ...any)   {}
func (v *verdict) Errorf(string, ...any) { v.failed = true }

func TestOnlyTheWorkItselfFailsATest(t *testing.T) {
	const ms = time.Millisecond
	disturbed := make([]time.Duration, 100)
	for i := range disturbed {
		disturbed[i] = 50 * ms
	}
	for name, tt := range map[string]struct {
		work   func()
		failed bool
	}{
		"as dear":               {lasting(ms), false},
		"just dear enough":      {lasting(2 * ms), false},
		"too dear":              {lasting(3 * ms), true},
		"disturbed for a while": {lasting(append(disturbed, 2*ms)...), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			v := &verdict{TB: t}
			ratio.AtMost(v, 2, tt.work, lasting(ms))
			if v.failed != tt.failed {
				t.Errorf("%s: failed: %v, want %v", name, v.failed, tt.failed)
			}
		})
	}
}
