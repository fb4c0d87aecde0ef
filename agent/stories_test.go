package agent_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the stories anew, for people to read before they are committed")

// TestStories tells stories: each file below testdata/stories is one. At the top it says in prose what is shown and where the right outcome is
// documented; then come the pods, the script of what happens to them, and the story itself, which is everything that the agent did to the runtime, the
// events and the statuses that it told, in virtual time. The script's words are explained at [story.do].
//
// A change of behaviour shows as a change of stories:
//
//	go test ./agent -run TestStories -update
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { tell(t, file) })
	}
}

// tell acts one story, and compares it with the one in the file.
func tell(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	prose, rest, ok1 := strings.Cut(string(text), "\n-- pods --\n")
	pods, rest, ok2 := strings.Cut(rest, "\n-- script --\n")
	script, want, _ := strings.Cut(rest, "\n-- story --\n")
	if !ok1 || !ok2 || !strings.Contains(prose, "Source:") {
		t.Fatal("a story has prose that names its source, pods and a script")
	}
	root, web := t.TempDir(), newStoryServer()
	defer web.Close()
	var got string
	synctest.Test(t, func(t *testing.T) {
		s := newStory(t, root, web, pods, script)
		for line := range strings.Lines(script) {
			s.line(strings.TrimSpace(line))
		}
		s.stop()
		got = strings.ReplaceAll(s.tell(), web.port(), "PORT")
	})
	if *update {
		text := prose + "\n-- pods --\n" + pods + "\n-- script --\n" + strings.TrimRight(script, "\n") + "\n\n-- story --\n" + got
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Error(diff)
	}
}
