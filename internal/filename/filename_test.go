package filename

import "testing"

func TestValid(t *testing.T) {
	for name, want := range map[string]bool{
		"web": true, "..data": true, "a.b-c": true, " ": true, "": false, ".": false, "..": false, "/": false, "a/b": false, "../a": false, `a\b`: false, "a/": false,
	} {
		if got := Valid(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
