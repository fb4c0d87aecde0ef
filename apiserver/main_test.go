package apiserver

import (
	"testing"

	"go.uber.org/goleak"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

func TestMain(m *testing.M) {
	// One of the handlers waits by the clock of the process, of which virtual time is decades away.
	utilruntime.ErrorHandlers = nil
	goleak.VerifyTestMain(m)
}
