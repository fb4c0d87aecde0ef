package podmill

// Features says of the fields of a PodSpec how they are served. A key is a field's path below spec, without indexes, such as
// "containers.securityContext.runAsUser"; what is said of containers holds for init and ephemeral ones too. An entry that refuses a field, or says why nothing
// has to be done about it, holds for all that is in it; one that serves a field is of a field without others in it.
//
// A key may end in =value: the field is served, but not with that value or, where the field is a map, with that key; in the value * stands for
// anything without a slash.
//
// Every block of an agent says what it serves. A field of which none says anything is refused: new ones come with every version of the API, and a
// pod must not run without what it asks for.
type Features map[string]Feature

// Feature says how a field is served. The zero value serves it.
type Feature struct {
	Refused bool
	Why     string // it is refused, or why nothing has to be done about it here
}

// Add adds what another block says. Where the two differ, the field is refused: each has a part in serving it.
func (f Features) Add(other Features) {
	for field, feature := range other {
		if known, ok := f[field]; !ok || !known.Refused {
			f[field] = feature
		}
	}
}

// Of returns how a field is served that has no others in it. Where nothing is said of it, ok is false: it is refused.
func (f Features) Of(field string) (feature Feature, ok bool) {
	for i, c := range field + "." {
		if c != '.' {
			continue
		}
		above, said := f[field[:i]]
		if said && (i == len(field) || above != Feature{}) {
			return above, true
		}
	}
	return Feature{Refused: true, Why: "nothing serves it here"}, false
}
