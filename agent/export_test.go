package agent

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// Kill ends a pod for a reason of the node's, as an eviction does.
func (a *Agent) Kill(uid types.UID, kill podmill.Kill) { a.workers.Kill(uid, kill) }
