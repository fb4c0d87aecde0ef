package main

import (
	"errors"
	"fmt"
	"slices"
)

// What is asked of a runtime does not depend on how busy the machine is, but for a look more or less when things take long. So the numbers of
// calls are what a run fails for.

// counted tells how many calls a pod has taken in a turn: those that change something, and those that look at it.
func (b *bench) counted(w *work, pods []string, mark int, note func(string, string, float64)) {
	changes, looks := 0, 0
	for _, c := range b.tap.since(mark) {
		switch {
		case !slices.Contains(pods, c.pod):
		case c.read() != nil:
			changes++
		default:
			looks++
		}
	}
	note(w.changes(), "calls a pod", float64(changes)/float64(len(pods)))
	note(w.looks(), "calls a pod", float64(looks)/float64(len(pods)))
}

func (w *work) changes() string { return "changes, " + w.title() }

func (w *work) looks() string { return "looks, " + w.title() }

// mostChanges is what a pod takes in a turn, and no more: RunPodSandbox, CreateContainer, StartContainer; for a restart CreateContainer and
// StartContainer; for its end StopContainer, StopPodSandbox, RemovePodSandbox. A containerd that is busy with many says now and then of a container that it is stopped, and for a while of the same container that it
// runs: then it is stopped again, up to five times.
func (w *work) mostChanges() float64 {
	switch {
	case w.restart:
		return 8
	case w.pods > 1:
		return 6.2
	default:
		return 6
	}
}

// mostLooks allows for one look more than a quiet machine needs: each is four or five calls, and there is one at the new sandbox.
func (w *work) mostLooks() float64 {
	if w.restart {
		return 30
	}
	if w.pods > 1 {
		return 36 // one step of many takes so long that it is looked in between
	}
	return 20
}

// atRestName is what is counted of an agent at rest.
func atRestName(pods int) string { return fmt.Sprintf("looks at rest, %d pods", pods) }

// regressions says in which of the works minikubelet has made more calls than it may.
func (r *results) regressions(works []work, rests []int) error {
	var errs []error
	most := func(what string, limit float64) {
		if one := r.find(what, minikubelet); one != nil && one.Median > limit {
			errs = append(errs, fmt.Errorf("%s: %.4g %s, which may be %.4g at most", what, one.Median, one.Unit, limit))
		}
	}
	for i := range works {
		most(works[i].changes(), works[i].mostChanges())
		most(works[i].looks(), works[i].mostLooks())
	}
	for _, pods := range rests {
		most(atRestName(pods), 0)
	}
	return errors.Join(errs...)
}
