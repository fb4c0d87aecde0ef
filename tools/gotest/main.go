// Command gotest reads the output of `go test -json` on standard input and
// prints what go test itself would, and then, one line each, the tests that
// were skipped and why: an ordinary run keeps silent about those.
//
//	go test -json ./... | gotest [-by-reason]
//
// It exits 1 if anything failed, for a pipe hides go test's own exit code.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	byReason := flag.Bool("by-reason", false, "one line per reason, not per test")
	flag.Parse()
	s := summary{output: map[test][]string{}}
	ok, err := s.read(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
	s.print(os.Stdout, *byReason)
	if !ok {
		os.Exit(1)
	}
}

// event is what `go doc test2json` describes.
type event struct {
	Action, Package, Test, Output string
}

// test names a test, or a whole package where name is empty.
type test struct{ pkg, name string }

type skip struct {
	test
	reason string
}

type summary struct {
	output map[test][]string // of tests that have not ended yet
	skips  []skip
	passed int
	failed int
}

// read passes on the lines of packages and of failed tests.
func (s *summary) read(in io.Reader, out io.Writer) (ok bool, err error) {
	ok = true
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				// go test itself speaks here: a download, a package that does not load.
				fmt.Fprintf(out, "%s", line)
			} else if !s.event(e, out) {
				ok = false
			}
		}
		if err == io.EOF {
			return ok, nil
		}
		if err != nil {
			return false, err
		}
	}
}

func (s *summary) event(e event, out io.Writer) (ok bool) {
	t := test{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(out, e.Output)
	case "output":
		s.output[t] = append(s.output[t], e.Output)
	case "build-fail":
		return false
	case "pass", "skip", "fail":
		defer delete(s.output, t)
		switch {
		case t.name == "":
			s.endPackage(t, e.Action == "fail", out)
		case e.Action == "skip":
			s.skips = append(s.skips, skip{t, reason(s.output[t])})
		case e.Action == "fail":
			s.failed++
			fmt.Fprint(out, strings.Join(s.output[t], ""))
		default:
			s.passed++
		}
		return e.Action != "fail"
	}
	return true
}

// endPackage prints a package's last line, or all that it said if it failed,
// with the output of tests that never ended: a panic, a time-out.
func (s *summary) endPackage(p test, failed bool, out io.Writer) {
	lines := s.output[p]
	if !failed {
		for _, l := range lines {
			if strings.HasPrefix(l, "ok ") || strings.HasPrefix(l, "? ") || strings.HasPrefix(l, "\t") {
				fmt.Fprint(out, l)
			}
		}
		return
	}
	for t, cut := range s.output {
		if t.pkg == p.pkg && t.name != "" {
			fmt.Fprint(out, strings.Join(cut, ""))
			delete(s.output, t)
		}
	}
	fmt.Fprint(out, strings.Join(lines, ""))
}

// reason finds what was given to t.Skip: the line that starts with a place.
func reason(output []string) string {
	for _, l := range output {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "=== ") || strings.HasPrefix(l, "--- ") {
			continue
		}
		if _, text, ok := strings.Cut(l, ": "); ok {
			return text
		}
		if l != "" {
			return l
		}
	}
	return "no reason given"
}

func (s *summary) print(out io.Writer, byReason bool) {
	slices.SortFunc(s.skips, func(a, b skip) int {
		return strings.Compare(a.pkg+" "+a.name, b.pkg+" "+b.name)
	})
	if !byReason {
		for _, k := range s.skips {
			fmt.Fprintf(out, "skipped %s %s: %s\n", k.pkg, k.name, k.reason)
		}
	} else {
		count := map[string]int{}
		var reasons []string
		for _, k := range s.skips {
			if count[k.reason]++; count[k.reason] == 1 {
				reasons = append(reasons, k.reason)
			}
		}
		for _, r := range reasons {
			fmt.Fprintf(out, "skipped %d tests: %s\n", count[r], r)
		}
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", s.passed, s.failed, len(s.skips))
}
