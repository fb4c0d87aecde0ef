package staticpod

import "github.com/go-logr/logr"

// teller tells of each problem once, when it appears, however often it is found again.
type teller struct {
	observer Observer
	told     map[Problem]bool
}

func (t *teller) tell(log logr.Logger, problems []Problem) {
	now := make(map[Problem]bool, len(problems))
	for _, p := range problems {
		if now[p] {
			continue
		}
		now[p] = true
		if t.told[p] {
			continue
		}
		if p.Warning {
			log.Info("manifest: " + p.String())
		} else {
			log.Error(nil, "manifest not used: "+p.String())
		}
		if t.observer.Problem != nil {
			t.observer.Problem(p)
		}
	}
	t.told = now
}
