package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const sample = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: needs root: run it as root\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:9: chatter\n"}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}
`

func TestSkipsAreTold(t *testing.T) {
	for _, c := range []struct {
		byReason bool
		want     string
	}{
		{false, "ok  \tp\t0.1s\nskipped p TestA: needs root: run it as root\n1 passed, 0 failed, 1 skipped\n"},
		{true, "ok  \tp\t0.1s\nskipped 1 tests: needs root: run it as root\n1 passed, 0 failed, 1 skipped\n"},
	} {
		var out strings.Builder
		s := newSummary()
		if err := s.read(strings.NewReader(sample), &out); err != nil || !s.ok() {
			t.Fatalf("ok %v, err %v", s.ok(), err)
		}
		s.print(&out, c.byReason)
		if out.String() != c.want {
			t.Errorf("by reason %v: %q, want %q", c.byReason, out.String(), c.want)
		}
	}
}

// A test that panics never ends: what it said must be seen, and the run fail.
func TestFailuresAreTold(t *testing.T) {
	in := `{"Action":"output","Package":"p","Test":"TestC","Output":"panic: boom\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
`
	for name, in := range map[string]string{"panic": in, "build": `{"Action":"build-output","ImportPath":"p","Output":"panic: boom\n"}
{"Action":"build-fail","ImportPath":"p"}
`} {
		var out strings.Builder
		s := newSummary()
		if err := s.read(strings.NewReader(in), &out); err != nil || s.ok() || !strings.Contains(out.String(), "panic: boom\n") {
			t.Errorf("%s: ok %v, err %v, output %q", name, s.ok(), err, out.String())
		}
		err := s.again(regexp.MustCompile("p"), nil, func(*summary, []string, io.Writer) error { t.Errorf("%s: it is run again", name); return nil }, &out)
		if err != nil || s.ok() {
			t.Errorf("%s: after a second try ok %v, err %v", name, s.ok(), err)
		}
	}
}

// result is what a package's tests end with, one after another.
func result(action string, names ...string) string {
	var all strings.Builder
	for _, name := range names {
		fmt.Fprintf(&all, `{"Action":%q,"Package":"p","Test":%q}`+"\n", action, name)
	}
	return all.String() + fmt.Sprintf(`{"Action":%q,"Package":"p"}`+"\n", action)
}

func TestWhatFailsIsRunOnceMore(t *testing.T) {
	for name, c := range map[string]struct {
		first, second string
		ok            bool
		runs          int
		last          string
	}{
		"passes then":    {result("fail", "TestA/x", "TestA"), result("pass", "TestA/x", "TestA"), true, 1, "passed at the second try only: p TestA\n2 passed, 0 failed, 0 skipped\n"},
		"fails again":    {result("fail", "TestA"), result("fail", "TestA"), false, 1, "0 passed, 1 failed, 0 skipped\n"},
		"is not found":   {result("fail", "TestA"), result("pass"), false, 1, "0 passed, 1 failed, 0 skipped\n"},
		"a race":         {`{"Action":"output","Package":"p","Test":"TestA","Output":"WARNING: DATA RACE\n"}` + "\n" + result("fail", "TestA"), "", false, 0, "0 passed, 1 failed, 0 skipped\n"},
		"ends early":     {`{"Action":"output","Package":"p","Test":"TestB","Output":"panic\n"}` + "\n" + result("fail", "TestA"), "", false, 0, "0 passed, 1 failed, 0 skipped\n"},
		"all at once":    {result("fail", "TestA", "TestB", "TestC", "TestD", "TestE", "TestF"), "", false, 0, "0 passed, 6 failed, 0 skipped\n"},
		"nothing failed": {result("pass", "TestA"), "", true, 0, "1 passed, 0 failed, 0 skipped\n"},
	} {
		var out strings.Builder
		s := newSummary()
		runs := 0
		err := s.read(strings.NewReader(c.first), io.Discard)
		if err == nil {
			err = s.again(regexp.MustCompile("^p$"), []string{"-race", "./..."}, func(s *summary, args []string, out io.Writer) error {
				if want := []string{"-race", "-run=^TestA$", "p"}; !slices.Equal(args, want) {
					t.Errorf("%s: run again with %v, want %v", name, args, want)
				}
				runs++
				return s.read(strings.NewReader(c.second), out)
			}, io.Discard)
		}
		s.print(&out, false)
		if err != nil || s.ok() != c.ok || runs != c.runs || out.String() != c.last {
			t.Errorf("%s: ok %v, %d runs, err %v, and says %q", name, s.ok(), runs, err, out.String())
		}
	}
}
