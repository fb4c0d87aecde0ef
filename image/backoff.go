package image

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// The kubelet's back-off: from 10 s, doubling, up to 5 minutes. A failure is forgotten when twice the longest delay has passed since.
const (
	firstDelay = 10 * time.Second
	maxDelay   = 300 * time.Second
	forgotten  = 2 * maxDelay
)

// pullKey is what a back-off is counted for. A pod that was made anew has another UID and starts afresh.
type pullKey struct {
	pod   types.UID
	image string
}

// failure is the last failure of a pull, and what follows from it.
type failure struct {
	at      time.Time
	delay   time.Duration
	message string
}

// until returns when the next pull may be.
func (f failure) until() time.Time { return f.at.Add(f.delay) }

// next returns what a failure at now makes of the one before it; the zero one is none. A pull that began before that one was known is
// the same failure, seen by another container that waited for it.
func (f failure) next(began, now time.Time, message string) failure {
	switch {
	case f.delay == 0 || now.Sub(f.at) > forgotten:
		return failure{at: now, delay: firstDelay, message: message}
	case !began.After(f.at):
		return f
	default:
		return failure{at: now, delay: min(2*f.delay, maxDelay), message: message}
	}
}

// backOff holds the failures of all pods. What is forgotten is dropped with the next failure, so that there are no more than have failed in
// the last ten minutes.
type backOff struct {
	mu       sync.Mutex
	failures map[pullKey]failure
}

// waiting returns the failure that a pull has to wait for.
func (b *backOff) waiting(key pullKey, now time.Time) (failure, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.failures[key]
	return f, now.Before(f.until())
}

// failed notes a failure and returns it.
func (b *backOff) failed(key pullKey, began, now time.Time, message string) failure {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, f := range b.failures {
		if now.Sub(f.at) > forgotten {
			delete(b.failures, k)
		}
	}
	f := b.failures[key].next(began, now, message)
	b.failures[key] = f
	return f
}

// succeeded forgets a failure.
func (b *backOff) succeeded(key pullKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.failures, key)
}

// retryError says when it is worth while to ask again, beside the cause, which may be nil.
type retryError struct {
	at  time.Time
	err error
}

// Error returns the cause.
func (e *retryError) Error() string {
	if e.err == nil {
		return "not before " + e.at.UTC().Format(time.RFC3339)
	}
	return e.err.Error()
}

// Unwrap returns the cause.
func (e *retryError) Unwrap() error { return e.err }

// RetryAt returns when a pull may be tried again.
func (e *retryError) RetryAt() time.Time { return e.at }
