package event

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

func say(message string) saying {
	return saying{corev1.ObjectReference{Kind: "Pod", Name: "web"}, corev1.EventTypeNormal, "Said", message}
}

func at(seconds float64) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

// texts writes lines as message*count.
func texts(lines []line) (out []string) {
	for _, l := range lines {
		out = append(out, fmt.Sprintf("%s*%d", l.Message, l.Count))
	}
	return out
}

func wantTexts(t *testing.T, lines []line, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, texts(lines)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRepeatsAreCounted shows that what is said again is written at the end of each window, with the count of all, until it is not said any
// more.
func TestRepeatsAreCounted(t *testing.T) {
	l := newLedger(60*time.Second, 50, 100)
	l.note(say("a"), at(0))
	l.note(say("b"), at(1))
	l.note(say("a"), at(2))
	lines, next := l.take(at(2))
	wantTexts(t, lines, "a*1", "b*1")
	if next != 58*time.Second {
		t.Errorf("next in %v", next)
	}
	l.note(say("a"), at(30))
	lines, next = l.take(at(60))
	wantTexts(t, lines, "a*3")
	if !lines[0].FirstTimestamp.Equal(at(0)) || !lines[0].LastTimestamp.Equal(at(30)) {
		t.Errorf("from %v to %v", lines[0].FirstTimestamp, lines[0].LastTimestamp)
	}
	if next != time.Second {
		t.Errorf("next in %v", next)
	}
	l.note(say("a"), at(70))
	lines, _ = l.take(at(119))
	wantTexts(t, lines)
	lines, _ = l.take(at(120))
	wantTexts(t, lines, "a*4")
	lines, next = l.take(at(180))
	wantTexts(t, lines)
	if len(l.repeats) > 0 || next < time.Minute {
		t.Errorf("something is remembered: %v, next in %v", l.repeats, next)
	}
	l.note(say("a"), at(181))
	lines, _ = l.take(at(181))
	wantTexts(t, lines, "a*1")
}

// TestWhatIsTheSame shows that a pod's new resource version makes no new event, and that another type, reason or object does.
func TestWhatIsTheSame(t *testing.T) {
	l := newLedger(time.Minute, 50, 100)
	same := say("a")
	same.about.ResourceVersion = "7"
	other := []saying{say("a"), say("a"), say("a"), say("a")}
	other[0].about.FieldPath = "spec.containers{c}"
	other[1].about.UID = "2"
	other[2].eventType = corev1.EventTypeWarning
	other[3].reason = "Heard"
	for _, s := range append([]saying{say("a"), same}, other...) {
		l.note(s, at(0))
	}
	wantTexts(t, l.takeAll(), "a*1", "a*1", "a*1", "a*1", "a*1", "a*2")
}

// TestRate shows that a flood is dropped and counted, and that it ends.
func TestRate(t *testing.T) {
	l := newLedger(time.Minute, 2, 3)
	for i := range 10 {
		l.note(say(fmt.Sprint(i)), at(0))
	}
	l.note(say("later"), at(0.5))
	l.note(say("too soon"), at(0.6))
	l.note(say("much later"), at(100))
	wantTexts(t, l.waiting, "0*1", "1*1", "2*1", "later*1", "much later*1")
	if l.stats.Dropped != 8 {
		t.Errorf("dropped %d", l.stats.Dropped)
	}
	// A clock that is set back gives nothing and takes nothing.
	l.note(say("back"), at(0))
	l.note(say("back again"), at(0))
	l.note(say("and again"), at(0))
	wantTexts(t, l.waiting[5:], "back*1", "back again*1")
}

// TestLongMessage shows that a message is cut where a character ends.
func TestLongMessage(t *testing.T) {
	l := newLedger(time.Minute, 50, 100)
	l.note(say("x"+strings.Repeat("é", maxMessage)), at(0))
	got := l.waiting[0].Message
	if len(got) != maxMessage-1 || !utf8.ValidString(got) {
		t.Errorf("%d bytes, %q", len(got), got[len(got)-4:])
	}
}

// TestLedgerIsBounded shows, for any course of events, that memory is bounded and that every event is written, counted or dropped.
func TestLedgerIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLedger(time.Duration(rapid.Int64Range(0, 10).Draw(t, "window"))*time.Second, 1e6, 1e6)
		now, said, written := at(0), 0, 0
		count := map[string]int{}
		took := func(lines []line) {
			for _, line := range lines {
				if line.Count == 1 {
					count[line.Message] = 0
				}
				written += int(line.Count) - count[line.Message]
				count[line.Message] = int(line.Count)
			}
		}
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, 4000).Draw(t, "pause")) * time.Millisecond)
			for i := range rapid.SampledFrom([]int{1, 5, 900}).Draw(t, "events") {
				l.note(say(fmt.Sprint(i%rapid.SampledFrom([]int{1, 900}).Draw(t, "messages"))), now)
				said++
			}
			if len(l.repeats) > maxRepeats || len(l.queue) != len(l.repeats) || len(l.waiting) > maxWaiting {
				t.Fatalf("%d repeats, %d queued, %d waiting", len(l.repeats), len(l.queue), len(l.waiting))
			}
			if rapid.Bool().Draw(t, "take") {
				lines, next := l.take(now)
				if next <= 0 {
					t.Fatalf("next in %v", next)
				}
				took(lines)
			}
		}
		took(l.takeAll())
		if l.stats.Dropped == 0 && written != said {
			t.Fatalf("%d said, %d written", said, written)
		}
		if int(l.stats.Repeated)+int(l.stats.Dropped) > said {
			t.Fatalf("%d said, %+v", said, l.stats)
		}
	})
}

// TestOldestIsForgotten shows that where too much is remembered, the oldest goes, and its count is written.
func TestOldestIsForgotten(t *testing.T) {
	l := newLedger(time.Minute, 1e6, 1e6)
	l.note(say("first"), at(0))
	l.note(say("first"), at(0))
	for i := range maxRepeats - 1 {
		l.note(say(fmt.Sprint(i)), at(0))
	}
	l.take(at(0))
	l.note(say("one more"), at(1))
	lines, _ := l.take(at(1))
	wantTexts(t, lines, "one more*1", "first*2")
}
