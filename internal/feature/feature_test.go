package feature_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/feature"
)

func TestParse(t *testing.T) {
	got := feature.Parse(`
hostname subdomain
containers.{env,envFrom}: name
{containers.,}resources: limits=*/* ! nothing hands out devices here
affinity ~ the scheduler has seen to it
`)
	devices := podmill.Feature{Refused: true, Why: "nothing hands out devices here"}
	want := podmill.Features{
		"hostname": {}, "subdomain": {}, "containers.env.name": {}, "containers.envFrom.name": {},
		"containers.resources.limits=*/*": devices, "resources.limits=*/*": devices,
		"affinity": {Why: "the scheduler has seen to it"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A refusal wins over a part that would serve the field, whichever speaks first, and holds for all that is in the field.
func TestARefusalWins(t *testing.T) {
	served, refused := podmill.Features{"a.b": {}}, podmill.Features{"a": {Refused: true, Why: "no"}, "a.b": {Refused: true, Why: "no"}}
	for _, order := range [][]podmill.Features{{served, refused}, {refused, served}} {
		all := podmill.Features{}
		for _, f := range order {
			all.Add(f)
		}
		if f, ok := all.Of("a.b"); !ok || !f.Refused {
			t.Errorf("%v, %v", f, ok)
		}
	}
	if f, ok := served.Of("a.c"); ok || !f.Refused {
		t.Errorf("of a field that nobody speaks of: %v, %v", f, ok)
	}
	if f, ok := (podmill.Features{"a": {}}).Of("a.b"); ok || !f.Refused {
		t.Errorf("of a field in one that is served: %v, %v", f, ok)
	}
}
