package cri

import (
	"flag"
	"net/http"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given { // the tests wait for containerd more than they compute
		_ = flag.Set("test.parallel", "6")
	}
	goleak.VerifyTestMain(hangingUp{m})
}

// hangingUp closes what was kept open to a registry.
type hangingUp struct{ *testing.M }

func (h hangingUp) Run() int {
	defer http.DefaultClient.CloseIdleConnections()
	return h.M.Run()
}
