package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podmill/podmill/examples/internal/machine"
)

var update = flag.Bool("update", false, "write golden files, and the README's table of features")

// The README's table is what the program prints.
func TestFeaturesInTheREADME(t *testing.T) {
	const file, begin, end = "../../README.md", "<!-- minikubelet --features -->\n", "<!-- end -->"
	var table strings.Builder
	if err := showFeatures(&config{manifestPath: t.TempDir(), Flags: machine.Flags{LogRoot: "/log", NodeName: "node"}}, &table); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(data), begin)
	shown, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatal("the README has no place for the table")
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+table.String()+end+after), 0o644); err != nil { //nolint:gosec // a text for all
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(table.String(), shown); diff != "" {
		t.Errorf("the README's table is old, run this test with -update (-want +got):\n%s", diff)
	}
}
