package podmill

import (
	"errors"
	"fmt"
)

// Errors that cross a block's border. They are tested with [errors.Is], through every wrap.
var (
	// ErrNotFound says that the thing asked for does not exist. It is an answer: a runtime that timed out, or that
	// could not tell, returns any other error, and is never taken to have said "absent".
	ErrNotFound = errors.New("not found")
	// ErrGone is a [StatusSink]'s answer when the pod of this UID is no longer there to take a status.
	ErrGone = errors.New("gone")
	// ErrConflict is a [StatusSink]'s answer when the write was made against something that has changed since; the
	// newest status may be offered again.
	ErrConflict = errors.New("conflict")
)

// ReasonError is an error that a person will meet in a pod's status or in an event. Reason is one of the kubelet's own
// words, such as "ErrImagePull" or "CreateContainerConfigError", and Message what the kubelet would say beside it.
type ReasonError struct {
	Reason  string
	Message string
	Err     error // the cause; may be nil
}

// Error returns the reason and the message, and the cause where the message is empty.
func (e *ReasonError) Error() string {
	if e.Message == "" && e.Err != nil {
		return fmt.Sprintf("%s: %v", e.Reason, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Reason, e.Message)
}

// Unwrap returns the cause.
func (e *ReasonError) Unwrap() error { return e.Err }
