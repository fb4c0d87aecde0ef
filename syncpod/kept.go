package syncpod

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/atomicfile"
)

// keptFile holds how far a pod is in its life, as far as neither a manifest nor the runtime can say that to an agent that was restarted
// meanwhile, nor the last status, which may be late.
const keptFile = "lifecycle.json"

// kept is what is in that file. Of hooks, it names one instance of each container, so it does not grow.
type kept struct {
	// Termination is how and until when the pod has to end.
	Termination *podmill.Termination `json:"termination,omitempty"`
	// PostStart are, by container, the IDs of instances whose postStart hook was begun and is not known to have succeeded.
	PostStart map[string]string `json:"postStart,omitempty"`
	// PreStop are, by container, the IDs of instances whose preStop hook is over: it has ended, or the grace that it had has.
	PreStop map[string]string `json:"preStop,omitempty"`
	// Reset are the names of containers that were removed to be started again with all others, and have not started yet.
	Reset []string `json:"reset,omitempty"`
	keptSizes
}

// keeper keeps one pod's [kept], in its file and here. It may be used concurrently: containers start, and their hooks end, side by side.
type keeper struct {
	path string // empty where pods have no directories: then an agent that is restarted begins anew

	mu sync.Mutex
	kept
	unwritten bool // the last change could not be written
}

// keeper returns a pod's keeper. With an error it is of use as well, but has nothing from before and keeps nothing for later.
func (s *Syncer) keeper(uid types.UID) (*keeper, error) {
	s.mu.Lock()
	k := s.keepers[uid]
	s.mu.Unlock()
	if k != nil {
		return k, nil
	}
	dir, err := s.podDir(uid)
	if err != nil {
		return &keeper{}, err
	}
	k = &keeper{}
	if dir != "" {
		k.path = filepath.Join(dir, keptFile)
		k.kept = readKept(k.path)
		k.unwritten = k.bound(time.Now())
	}
	s.mu.Lock()
	s.keepers[uid] = k
	s.mu.Unlock()
	return k, nil
}

// bound has a deadline that was read count by the monotonic clock from now on, and not be further away than the grace that it was made of: what the wall
// clock said when it was written may have been wrong, and it may be set again. It reports whether the deadline had to come nearer.
func (k *keeper) bound(now time.Time) (nearer bool) {
	t := k.Termination
	if t == nil {
		return false
	}
	left, most := t.Remaining(now), time.Duration(t.GracePeriodSeconds)*time.Second
	t.Deadline = now.Add(min(left, most))
	return left > most
}

// change makes a change and writes it down. It is made here also where that fails.
func (k *keeper) change(change func(*kept)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := kept{Termination: k.Termination, PostStart: maps.Clone(k.PostStart), PreStop: maps.Clone(k.PreStop), Reset: k.Reset, keptSizes: k.keptSizes}
	change(&k.kept)
	same := k.Termination == before.Termination && maps.Equal(k.PostStart, before.PostStart) && maps.Equal(k.PreStop, before.PreStop) &&
		slices.Equal(k.Reset, before.Reset) && k.Changes == before.Changes
	if same && !k.unwritten || k.path == "" {
		return nil
	}
	err := writeKept(k.path, &k.kept)
	k.unwritten = err != nil
	return err
}

// terminate joins a termination with the one that is kept, and returns and keeps the stricter of the two: the deadline
// only ever comes nearer, and the first reason stays. The termination that is returned is good also with an error.
func (k *keeper) terminate(t podmill.Termination) (podmill.Termination, error) {
	err := k.change(func(kept *kept) {
		if kept.Termination != nil {
			t = stricter(*kept.Termination, t)
			if t == *kept.Termination {
				return
			}
		}
		kept.Termination = &t
	})
	return t, err
}

// doomed returns how a pod has to end although it is wanted, nil if it has not: an eviction and a deadline, which have a reason, are not called off by a
// restart of the agent.
func (k *keeper) doomed() *podmill.Kill {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.Termination; t != nil && t.Reason != "" {
		return &podmill.Kill{GracePeriodSeconds: &t.GracePeriodSeconds, Reason: t.Reason, Message: t.Message}
	}
	return nil
}

// live takes back a termination of a pod that is wanted again, and is not over: its deadline is not that of its next end, and for that its preStop hooks
// run anew.
func (k *keeper) live() error {
	k.mu.Lock()
	lives := k.Termination == nil
	k.mu.Unlock()
	if lives {
		return nil
	}
	return k.change(func(kept *kept) { kept.Termination, kept.PreStop = nil, nil })
}

// postStartBegins keeps that the postStart hook of an instance will run.
func (k *keeper) postStartBegins(container, id string) error {
	return k.change(func(kept *kept) {
		if kept.PostStart == nil {
			kept.PostStart = map[string]string{}
		}
		kept.PostStart[container] = id
	})
}

// postStartSucceeded keeps that there is nothing more to say about an instance's postStart hook.
func (k *keeper) postStartSucceeded(container string) error {
	return k.change(func(kept *kept) { delete(kept.PostStart, container) })
}

// preStopOver keeps that the preStop hook of an instance is over.
func (k *keeper) preStopOver(container, id string) error {
	return k.change(func(kept *kept) {
		if kept.PreStop == nil {
			kept.PreStop = map[string]string{}
		}
		kept.PreStop[container] = id
	})
}

// resets keeps which containers have to start again with all others.
func (k *keeper) resets(containers []string) error {
	return k.change(func(kept *kept) { kept.Reset = containers })
}

// hooks returns, by container ID, what is kept of hooks.
func (k *keeper) hooks() map[string]Hooks {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.PostStart)+len(k.PreStop) == 0 {
		return nil
	}
	states := map[string]Hooks{}
	for _, id := range k.PostStart {
		states[id] = Hooks{PostStart: PostStartLost}
	}
	for _, id := range k.PreStop {
		states[id] = Hooks{PostStart: states[id].PostStart, PreStop: true}
	}
	return states
}

func stricter(kept, t podmill.Termination) podmill.Termination {
	if kept.Reason == "" {
		kept.Reason, kept.Message = t.Reason, t.Message
	}
	if t.Deadline.Before(kept.Deadline) {
		kept.Deadline, kept.GracePeriodSeconds = t.Deadline, t.GracePeriodSeconds
	}
	return kept
}

// readKept reads a file. One that cannot be read tells nothing: a pod that would not go on for that could not even end.
func readKept(path string) (k kept) {
	b, err := os.ReadFile(path) //nolint:gosec // ours
	if err != nil || json.Unmarshal(b, &k) != nil {
		return kept{}
	}
	return k
}

// writeKept replaces the file as a whole: a reader sees the old one or the new one.
func writeKept(path string, k *kept) error {
	b, err := json.Marshal(k)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	if err := atomicfile.Replace(path, b, false); err != nil {
		return fmt.Errorf("keep the pod's progress: %w", err)
	}
	return nil
}

// ownFile reports that a file of a pod's directory, by its path in there, was written here.
func ownFile(path string) bool {
	switch path {
	case hostsFile, keptFile, keptFile + atomicfile.Unfinished:
		return true
	}
	return false
}
