package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	"github.com/podmill/podmill/cri"
	"github.com/podmill/podmill/podspec"
)

// unconnected is a runtime of which only is known that it speaks CRI.
type unconnected struct {
	podmill.Runtime
	podmill.Resizer
}

func (unconnected) Features() podmill.Features { return cri.Features() }

// showFeatures writes which fields of a pod are served, as a table in Markdown. It composes the agent as ever, and never runs it.
func showFeatures(c *config, out io.Writer) error {
	root, err := os.MkdirTemp("", "minikubelet")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	p, err := c.parts(root, nil, nil)
	if err != nil {
		return err
	}
	a, err := agent.New(unconnected{}, root, p.sources, p.opts...)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, featureTable(a.Features()))
	return err
}

// featureTable has a row for each way in which fields are served. Where all fields in one are served alike, only that one is named.
func featureTable(features podmill.Features) string {
	fields := podspec.Fields()
	named := map[string][]string{}
	add := func(how podmill.Feature, field string) {
		if row := verdict(how); !slices.Contains(named[row], field) {
			named[row] = append(named[row], field)
		}
	}
	for _, field := range fields {
		how, _ := features.Of(field)
		add(how, widest(features, fields, field))
	}
	for key, how := range features {
		if strings.Contains(key, "=") {
			add(how, key)
		}
	}
	var table strings.Builder
	table.WriteString("| | fields of `spec` |\n|---|---|\n")
	for _, row := range slices.Sorted(maps.Keys(named)) {
		fmt.Fprintf(&table, "| %s | %s |\n", row, together(named[row]))
	}
	return table.String()
}

// together names fields, those in the same one behind it, a line each. Those that have the same in them share a line.
func together(fields []string) string {
	siblings := map[string][]string{}
	for _, field := range fields {
		above, _, _ := strings.Cut(field, "=")
		above = above[:strings.LastIndexByte(above, '.')+1]
		siblings[above] = append(siblings[above], strings.TrimPrefix(field, above))
	}
	alike := map[string][]string{}
	var order []string
	for _, above := range slices.Sorted(maps.Keys(siblings)) {
		slices.Sort(siblings[above])
		names := strings.Join(siblings[above], " ")
		if alike[names] == nil {
			order = append(order, names)
		}
		alike[names] = append(alike[names], strings.TrimSuffix(above, "."))
	}
	var lines []string
	for _, names := range order {
		if above := strings.Join(alike[names], ", "); above != "" {
			names = above + ": " + names
		}
		lines = append(lines, "`"+names+"`")
	}
	return strings.Join(lines, "<br>")
}

func verdict(f podmill.Feature) string {
	switch {
	case f.Refused:
		return "refused: " + f.Why
	case f.Why != "":
		return "accepted: " + f.Why
	}
	return "**served**"
}

// widest returns the widest field that field is in and in which all are served alike.
func widest(features podmill.Features, fields []string, field string) string {
	how, _ := features.Of(field)
	for i, c := range field {
		alike := func(f string) bool {
			is, _ := features.Of(f)
			return is == how || !strings.HasPrefix(f, field[:i+1])
		}
		if c == '.' && !slices.ContainsFunc(fields, func(f string) bool { return !alike(f) }) {
			return field[:i]
		}
	}
	return field
}
