package main

import (
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
		s := summary{output: map[test][]string{}}
		ok, err := s.read(strings.NewReader(sample), &out)
		if err != nil || !ok {
			t.Fatalf("ok %v, err %v", ok, err)
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
		s := summary{output: map[test][]string{}}
		ok, err := s.read(strings.NewReader(in), &out)
		if err != nil || ok || !strings.Contains(out.String(), "panic: boom\n") {
			t.Errorf("%s: ok %v, err %v, output %q", name, ok, err, out.String())
		}
	}
}
