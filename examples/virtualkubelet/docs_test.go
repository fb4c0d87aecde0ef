package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What the documentation shows is code of this program: it compiles, and does what it is said to do.
func TestTheDocumentationShowsWhatIsHere(t *testing.T) {
	page, err := os.ReadFile("../../docs/virtual-kubelet.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code.WriteString(plain(string(text)))
	}
	shown := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(shown) == 0 {
		t.Fatal("the page shows no code")
	}
	for _, block := range shown {
		for part := range strings.SplitSeq(plain(block[1]), "...\n") { // what is left out
			if !strings.Contains(code.String(), part) {
				t.Errorf("this is not in the program:\n%s", part)
			}
		}
	}
}

// plain is text without what comes from where it stands: the space at the beginnings and ends of lines.
func plain(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}
