package cri

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(hangingUp{m}) }

// hangingUp closes what was kept open to a registry.
type hangingUp struct{ *testing.M }

func (h hangingUp) Run() int {
	defer http.DefaultClient.CloseIdleConnections()
	return h.M.Run()
}
