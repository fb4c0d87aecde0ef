// Package ratio compares, in a test, what two pieces of work cost in one run, so that a busy machine does not upset it.
package ratio

import (
	"testing"
	"time"
)

const (
	// turn is how long one measurement takes, at least: long for the clock, and so short that on a busy machine, too, some go by undisturbed.
	turn = 200 * time.Microsecond
	// enough is how many turns each has before anything is concluded.
	enough = 20
	// patience is how long a ratio that is too high may take to turn out to be the machine's fault.
	patience = 5 * time.Second
)

// AtMost fails the test if work takes more than limit times as long as baseline. The two take turns, and the shortest turn of each counts: it is
// what the work costs when nothing comes in between. Where that is too much, turns go on for a while: others may have had the machine. So a test
// that fails does so for what the work is, and one that passes takes some ten milliseconds.
func AtMost(t testing.TB, limit float64, work, baseline func()) {
	t.Helper()
	w, b := newRunner(work), newRunner(baseline)
	began := time.Now()
	for n := 1; ; n++ {
		b.turn()
		w.turn()
		if n < enough {
			continue
		}
		switch ratio := w.least / b.least; {
		case ratio <= limit:
			t.Logf("%.0f ns, %.2f times its baseline; the limit is %g", w.least, ratio, limit)
			return
		case time.Since(began) > patience:
			t.Errorf("%.0f ns, %.2f times its baseline; the limit is %g", w.least, ratio, limit)
			return
		}
	}
}

// runner runs one of the two.
type runner struct {
	do    func()
	times int     // in a turn
	least float64 // nanoseconds for one, in the shortest turn
}

func newRunner(do func()) *runner {
	do() // the first may be dearer
	r := &runner{do: do, times: 1}
	for r.took() < turn {
		r.times *= 2
	}
	r.least = float64(r.took()) / float64(r.times)
	return r
}

func (r *runner) took() time.Duration {
	began := time.Now()
	for range r.times {
		r.do()
	}
	return time.Since(began)
}

func (r *runner) turn() {
	r.least = min(r.least, float64(r.took())/float64(r.times))
}
