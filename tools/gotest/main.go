// Command gotest runs `go test -json ARGS`, prints what go test itself would,
// and then, one line each, the tests that were skipped and why: an ordinary
// run keeps silent about those.
//
//	gotest [-by-reason] [-again REGEXP] -- ARGS
//	test2json | gotest
//
// Tests that failed in a package that REGEXP matches are run once more, alone,
// and have passed if they pass then: where two cores carry a whole cluster, one
// may have had to wait longer than it allows. That is told, and not done where
// a race was found, a package ended early, or so many failed that no chance
// explains it.
//
// Without ARGS it reads standard input. It exits 1 if anything failed.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// most is how many tests may be run again.
const most = 5

func main() {
	byReason := flag.Bool("by-reason", false, "one line per reason, not per test")
	again := flag.String("again", "", "run once more, alone, what failed in packages that match this")
	flag.Parse()
	s := newSummary()
	may, err := regexp.Compile(*again)
	if err == nil {
		err = s.run(flag.Args(), os.Stdout)
	}
	if err == nil && *again != "" {
		err = s.again(may, flag.Args(), goTest, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
	s.print(os.Stdout, *byReason)
	if !s.ok() {
		os.Exit(1)
	}
}

func (s *summary) run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return s.read(os.Stdin, out)
	}
	return goTest(s, args, out)
}

func goTest(s *summary, args []string, out io.Writer) error {
	c := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	c.Stderr = os.Stderr
	in, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	if err := s.read(in, out); err != nil {
		return err
	}
	var exit *exec.ExitError
	if err := c.Wait(); errors.As(err, &exit) {
		s.broken = s.broken || len(s.failed) == 0 // go test failed, and no test did
	} else if err != nil {
		return err
	}
	return nil
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
	failed []test
	lucky  []test // failed at first
	broken bool   // by more than a test that failed: a race, a panic, a build
}

func newSummary() *summary { return &summary{output: map[test][]string{}} }

func (s *summary) ok() bool { return len(s.failed) == 0 && !s.broken }

// again runs what failed once more, each test by itself.
func (s *summary) again(may *regexp.Regexp, args []string, run func(*summary, []string, io.Writer) error, out io.Writer) error {
	failed := slices.DeleteFunc(slices.Clone(s.failed), func(t test) bool { return strings.Contains(t.name, "/") || !may.MatchString(t.pkg) })
	if s.broken || len(failed) > most {
		return nil
	}
	flags := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return !strings.HasPrefix(a, "-") })
	for _, t := range failed {
		fmt.Fprintf(out, "== once more, alone: %s %s\n", t.pkg, t.name)
		second := newSummary()
		if err := run(second, append(slices.Clone(flags), "-run=^"+t.name+"$", t.pkg), out); err != nil {
			return err
		}
		if !second.ok() || second.passed == 0 {
			continue
		}
		s.lucky = append(s.lucky, t)
		all := len(s.failed)
		s.failed = slices.DeleteFunc(s.failed, func(f test) bool {
			return f.pkg == t.pkg && (f.name == t.name || strings.HasPrefix(f.name, t.name+"/"))
		})
		s.passed += all - len(s.failed)
	}
	return nil
}

// read passes on the lines of packages and of failed tests.
func (s *summary) read(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				// go test itself speaks here: a download, a package that does not load.
				fmt.Fprintf(out, "%s", line)
			} else {
				s.event(e, out)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *summary) event(e event, out io.Writer) {
	t := test{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(out, e.Output)
	case "output":
		s.output[t] = append(s.output[t], e.Output)
		s.broken = s.broken || strings.HasPrefix(e.Output, "WARNING: DATA RACE")
	case "build-fail":
		s.broken = true
	case "pass", "skip", "fail":
		defer delete(s.output, t)
		switch {
		case t.name == "":
			s.endPackage(t, e.Action == "fail", out)
		case e.Action == "skip":
			s.skips = append(s.skips, skip{t, reason(s.output[t])})
		case e.Action == "fail":
			s.failed = append(s.failed, t)
			fmt.Fprint(out, strings.Join(s.output[t], ""))
		default:
			s.passed++
		}
	}
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
	s.broken = s.broken || !slices.ContainsFunc(s.failed, func(t test) bool { return t.pkg == p.pkg })
	for t, cut := range s.output {
		if t.pkg == p.pkg && t.name != "" {
			s.broken = true
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
	for _, t := range s.lucky {
		fmt.Fprintf(out, "passed at the second try only: %s %s\n", t.pkg, t.name)
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", s.passed, len(s.failed), len(s.skips))
}
