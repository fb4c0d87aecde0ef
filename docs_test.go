package podmill_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A package that users import has a line in the README's table.
func TestTheREADMENamesEveryPackage(t *testing.T) {
	readme := read(t, "README.md")
	for _, p := range packages(t) {
		path, _ := within(p.ImportPath)
		switch top(path) {
		case "", "internal", "examples", "bench":
			continue
		}
		if !strings.Contains(path, "/internal/") && !strings.Contains(readme, "]("+path+")") {
			t.Errorf("the README does not name package %s", path)
		}
	}
}

// The first agent that the README and the package's documentation show is the one that compiles as an example.
func TestTheFirstAgentCompiles(t *testing.T) {
	_, example, _ := strings.Cut(read(t, "example_test.go"), "func Example() {\n")
	example, _, _ = strings.Cut(example, "\n}\n")
	example = strings.ReplaceAll("\n"+example, "\n\t", "\n")[1:]
	if !strings.Contains(read(t, "README.md"), "```go\n"+example+"\n```") {
		t.Errorf("the README shows another first agent than example_test.go:\n%s", example)
	}
	doc := strings.ReplaceAll(strings.ReplaceAll(read(t, "doc.go"), "//\t", ""), "//\n", "\n")
	if !strings.Contains(doc, example) {
		t.Errorf("doc.go shows another first agent than example_test.go:\n%s", example)
	}
}

// The list of decisions has each page, by its title.
func TestDecisionsAreListed(t *testing.T) {
	list := read(t, "docs/decisions/README.md")
	pages, err := filepath.Glob("docs/decisions/0*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	title := regexp.MustCompile(`^# (\d+): (.*)\n`)
	for _, page := range pages {
		m := title.FindStringSubmatch(read(t, page))
		if m == nil || !strings.Contains(list, "| ["+m[1]+"]("+filepath.Base(page)+") | "+m[2]+" |") {
			t.Errorf("%s is not in the list by its number and title: %q", page, m)
		}
	}
}
