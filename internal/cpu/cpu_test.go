package cpu

import (
	"math"
	"testing"
)

func TestShares(t *testing.T) {
	for milli, want := range map[int64]uint64{-1: 2, 0: 2, 1: 2, 2: 2, 10: 10, 1000: 1024, 2500: 2560, 256000: 262144, math.MaxInt64: 262144} {
		if got := Shares(milli); got != want {
			t.Errorf("Shares(%d) = %d, want %d", milli, got, want)
		}
	}
}

func TestQuota(t *testing.T) {
	for _, tc := range []struct{ milli, period, want int64 }{
		{0, DefaultPeriod, 0}, {-5, DefaultPeriod, 0}, {500, 0, 0},
		{1, DefaultPeriod, 1000}, {5, DefaultPeriod, 1000}, {10, DefaultPeriod, 1000}, {500, DefaultPeriod, 50000}, {2000, DefaultPeriod, 200000},
		{500, 10_000, 5000}, // B112: another period does not change the limit
		{math.MaxInt64, DefaultPeriod, math.MaxInt64 / 1000},
	} {
		if got := Quota(tc.milli, tc.period); got != tc.want {
			t.Errorf("Quota(%d, %d) = %d, want %d", tc.milli, tc.period, got, tc.want)
		}
	}
}

// What the kernel was told is read back as it was asked for, but for the least that it takes.
func TestUnitsThereAndBack(t *testing.T) {
	for _, milli := range []int64{3, 10, 99, 100, 250, 333, 1000, 2500, 255999} {
		if got := OfShares(int64(Shares(milli))); got != milli {
			t.Errorf("a request of %d is read back as %d", milli, got)
		}
		if got := OfQuota(Quota(milli, DefaultPeriod), DefaultPeriod); got != max(10, milli) {
			t.Errorf("a limit of %d is read back as %d", milli, got)
		}
	}
	if OfShares(0) != 0 || OfShares(2) != 0 || OfQuota(0, DefaultPeriod) != 0 || OfQuota(-1, DefaultPeriod) != 0 || OfQuota(1000, 0) != 0 {
		t.Error("what is not asked for or not limited is something")
	}
	if got := OfQuota(math.MaxInt64, 1); got <= 0 {
		t.Errorf("an absurd quota is %d", got)
	}
}

func TestWeight(t *testing.T) {
	for shares, want := range map[uint64]uint64{0: 1, 2: 1, 1024: 100, 262144: 10000, 1 << 40: 10000} {
		if got := Weight(shares); got != want {
			t.Errorf("Weight(%d) = %d, want %d", shares, got, want)
		}
	}
	for s, last := uint64(2), uint64(0); s <= MaxShares; s++ {
		if w := Weight(s); w < last {
			t.Fatalf("Weight(%d) = %d is less than that of fewer shares, %d", s, w, last)
		} else {
			last = w
		}
	}
}
