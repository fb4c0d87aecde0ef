package apiserver

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

const (
	// restoreAfter is how long what somebody else wrote over a status may stay: two that write against each other do so once in that time.
	restoreAfter = time.Second
	// restoreRetry is how long to wait when that fails.
	restoreRetry = 10 * time.Second
)

// saw takes a pod as the API shows it. What it says may be older than what was written, and is news only where it is not.
func (s *StatusSink) saw(pod *corev1.Pod) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.differs(pod) {
		delete(s.doubts, pod.UID)
		return
	}
	s.doubts[pod.UID] = pod
	select {
	case s.doubted <- struct{}{}:
	default:
	}
}

// differs reports whether a pod says, later, something else than was written, or than the server made of that. Callers hold mu.
func (s *StatusSink) differs(pod *corev1.Pod) bool {
	r := s.records[pod.UID]
	if r == nil || r.patch == nil || !later(pod.ResourceVersion, r.version) {
		return false
	}
	shown, err := statusPatch(pod.UID, &pod.Status)
	return err == nil && !bytes.Equal(shown, r.patch) && !bytes.Equal(shown, r.kept)
}

// later reports whether a version of an object comes after another. Versions are numbers that grow (KEP-5504).
func later(version, than string) bool {
	a, err := strconv.ParseUint(version, 10, 64)
	b, err2 := strconv.ParseUint(than, 10, 64)
	return err == nil && err2 == nil && a > b
}

// restore writes again what somebody else has written over, until ctx ends.
func (s *StatusSink) restore(ctx context.Context) {
	wait := restoreAfter
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.doubted:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = restoreAfter
		for _, pod := range s.takeDoubts() {
			if err := s.again(ctx, pod); err != nil && ctx.Err() == nil {
				logr.FromContextOrDiscard(ctx).Error(err, "a status that somebody else has changed is not restored yet", "pod", podmill.RefOf(pod).String())
				s.saw(pod)
				wait = restoreRetry
			}
		}
	}
}

func (s *StatusSink) takeDoubts() []*corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pods []*corev1.Pod
	for _, pod := range s.doubts {
		pods = append(pods, pod)
	}
	clear(s.doubts)
	return pods
}

// again writes what was written last, unless something newer was meanwhile.
func (s *StatusSink) again(ctx context.Context, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	s.mu.Lock()
	r := s.records[pod.UID]
	s.mu.Unlock()
	if r == nil {
		return nil // it has been finished with
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	s.mu.Lock()
	patch, differs := r.patch, s.differs(pod)
	s.mu.Unlock()
	if !differs {
		return nil
	}
	if err := s.write(ctx, pod, r, patch); !errors.Is(err, podmill.ErrGone) {
		return err
	}
	return nil
}
