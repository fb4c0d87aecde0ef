package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"github.com/podmill/podmill/agent"
	"github.com/podmill/podmill/examples/internal/machine"
	"github.com/podmill/podmill/node"
)

// shutdown ends the pods when the machine goes down, in the order of their priorities, where there is a --shutdown-grace-period. The kubelet hears of that from
// systemd-logind; here whoever shuts down sends SIGPWR, which stands for no more than that the power is about to fail. SIGTERM is another thing: it restarts an agent, and containers run on.
func (c *config) shutdown(o *observer, self *node.Node, a *agent.Agent) machine.Part {
	return func(ctx context.Context) error {
		if c.shutdownGrace > 0 {
			power := make(chan os.Signal, 1)
			signal.Notify(power, unix.SIGPWR)
			defer signal.Stop(power)
			select {
			case <-ctx.Done():
				return nil
			case <-power:
			}
			o.down.Store(true)
			self.Look()
			pods, _ := a.Pods()
			if err := node.Shutdown(ctx, pods, node.ShutdownBands(c.shutdownGrace, c.shutdownCritical), a.Kill); err != nil {
				logr.FromContextOrDiscard(ctx).Error(err, "not all pods have ended before the machine does")
			}
		}
		<-ctx.Done()
		return nil
	}
}
