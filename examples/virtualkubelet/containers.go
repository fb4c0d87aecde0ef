package main

import (
	"context"

	"github.com/podmill/podmill/agent"
)

// Containers runs pods in a container runtime, as a kubelet does: init containers in their order, sidecars beside them, hooks, probes, restarts, volumes. An
// agent is all of podmill's blocks joined; it finds the containers of an earlier process again, and goes on with them.
type Containers struct {
	*Source
	Agent *agent.Agent
}

// Run runs the agent until ctx ends. Containers run on.
func (c Containers) Run(ctx context.Context) error { return c.Agent.Run(ctx) }
