// Package feature reads what blocks say of the fields that they serve.
package feature

import (
	"strings"

	"github.com/podmill/podmill"
)

// Parse reads features, one or more fields on a line:
//
//	containers.env.valueFrom.{configMapKeyRef,secretKeyRef}: name key optional
//	volumes.nfs ! it takes a client of NFS on the node
//	affinity nodeSelector ~ the scheduler has seen to it
//
// What is before a colon is put before each name; what is after ! is why fields are refused, and after ~ why nothing has to be done about them.
func Parse(text string) podmill.Features {
	all := podmill.Features{}
	for line := range strings.Lines(text) {
		names, why, refused := strings.Cut(line, " ! ")
		if !refused {
			names, why, _ = strings.Cut(line, " ~ ")
		}
		prefix, rest, found := strings.Cut(names, ": ")
		if !found {
			prefix, rest = "", names
		} else {
			prefix += "."
		}
		for _, name := range strings.Fields(rest) {
			for _, field := range expand(strings.TrimSpace(prefix) + name) {
				all[field] = podmill.Feature{Refused: refused, Why: strings.TrimSpace(why)}
			}
		}
	}
	return all
}

// expand returns a path for each of the alternatives in its braces.
func expand(path string) []string {
	before, rest, found := strings.Cut(path, "{")
	if !found {
		return []string{path}
	}
	alternatives, after, _ := strings.Cut(rest, "}")
	var all []string
	for alternative := range strings.SplitSeq(alternatives, ",") {
		all = append(all, expand(before+alternative+after)...)
	}
	return all
}
