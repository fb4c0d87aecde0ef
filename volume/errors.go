package volume

import (
	"errors"
	"fmt"
	"strings"

	"github.com/podmill/podmill"
)

// ErrUnmounting says that a pod's volumes are being taken away, and that this has to be finished first.
var ErrUnmounting = errors.New("its volumes are being taken away")

// NotReadyError says which volumes of a pod are not ready and, wrapped, why.
type NotReadyError struct {
	Pod     podmill.PodRef
	Volumes []string // by name, in the order of the pod's spec
	Errs    []error  // one for each
}

// Error names all volumes, as the kubelet does, and then each reason.
func (e *NotReadyError) Error() string {
	return fmt.Sprintf("mount volumes of pod %s: unmounted volumes=%v: %v", e.Pod, e.Volumes, several(e.Errs))
}

// Unwrap returns the reasons.
func (e *NotReadyError) Unwrap() []error { return e.Errs }

// LaterError is the error of a [Plugin] that knows when another attempt has better chances.
type LaterError struct {
	Err error
	// Changed is closed then. Attempts go on meanwhile, after growing pauses.
	Changed <-chan struct{}
}

// Error returns the error, and nothing else.
func (e LaterError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e LaterError) Unwrap() error { return e.Err }

// several is errors as one, on one line.
type several []error

func (s several) Error() string {
	if len(s) == 1 {
		return s[0].Error()
	}
	all := make([]string, len(s))
	for i, err := range s {
		all[i] = err.Error()
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// Unwrap returns the errors.
func (s several) Unwrap() []error { return s }

func (s several) orNil() error {
	if len(s) == 0 {
		return nil
	}
	return s
}

// unsupportedError says that something is not supported, in words of its own.
type unsupportedError string

func (e unsupportedError) Error() string { return string(e) }

// Is makes it an [errors.ErrUnsupported].
func (e unsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }
