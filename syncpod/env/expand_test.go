package env_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/syncpod/env"
)

func lookup(name string) (string, bool) {
	v, ok := map[string]string{"A": "1", "B": "$(A)", "": "empty"}[name]
	return v, ok
}

func TestExpand(t *testing.T) {
	for in, want := range map[string]string{
		"":             "",
		"plain":        "plain",
		"$(A)":         "1",
		"<$(A)$(A)>":   "<11>",
		"$(B)":         "$(A)", // once only
		"$(none)":      "$(none)",
		"$$(A)":        "$(A)",
		"$$$(A)":       "$1",
		"$$$$(A)":      "$$(A)",
		"$A":           "$A",
		"$(A":          "$(A",
		"$(A $(A)":     "$(A $(A)",
		"cost: 5$":     "cost: 5$",
		"$":            "$",
		"$$":           "$",
		"$()":          "empty",
		"$((A))":       "$((A))",
		"ü$(A)ü$x$(A)": "ü1ü$x1",
	} {
		if got := env.Expand(in, lookup); got != want {
			t.Errorf("Expand(%q) = %q, want %q", in, got, want)
		}
	}
}

// FuzzExpand compares with a reading of one character after another.
func FuzzExpand(f *testing.F) {
	for _, s := range []string{"$$(A)", "$(A", "a$(B)$", "$((A))"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want strings.Builder
		for i := 0; i < len(s); i++ {
			if s[i] == '$' && i+1 < len(s) {
				if s[i+1] == '$' {
					want.WriteByte('$')
					i++
					continue
				}
				if end := strings.IndexByte(s[i:], ')'); s[i+1] == '(' && end > 0 {
					if v, ok := lookup(s[i+2 : i+end]); ok {
						want.WriteString(v)
					} else {
						want.WriteString(s[i : i+end+1])
					}
					i += end
					continue
				}
			}
			want.WriteByte(s[i])
		}
		if got := env.Expand(s, lookup); got != want.String() {
			t.Errorf("Expand(%q) = %q, want %q", s, got, want.String())
		}
	})
}

func Example() {
	c := &corev1.Container{
		Args: []string{"--greeting=$(GREETING)"},
		Env:  []corev1.EnvVar{{Name: "WHO", Value: "world"}, {Name: "GREETING", Value: "hello, $(WHO)"}},
	}
	vars, err := env.Resolve(env.Input{Pod: &corev1.Pod{}, Container: c})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, args := env.Command(c, vars)
	fmt.Println(vars[1].Value, args)
	// Output: hello, world [--greeting=hello, world]
}
