package apiserver

import (
	"testing"

	"go.uber.org/goleak"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

func TestMain(m *testing.M) {
	// One of the handlers waits by the clock of the process, of which virtual time is decades away.
	utilruntime.ErrorHandlers = nil
	goleak.VerifyTestMain(m, // connections that wait for the next request are client-go's to keep
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}
