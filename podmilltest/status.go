package podmilltest

import (
	"context"

	"github.com/podmill/podmill"
)

// RuntimeStatus implements [podmill.StatusReporter].
func (r *Runtime) RuntimeStatus(ctx context.Context) (*podmill.RuntimeStatus, error) {
	var status podmill.RuntimeStatus
	err := r.call(ctx, OpRuntimeStatus, "", func() error {
		status = r.status
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &status, nil
}

// ReopenLog implements [podmill.LogReopener].
func (r *Runtime) ReopenLog(ctx context.Context, containerID string) error {
	return r.call(ctx, OpReopenLog, r.containerName(containerID), func() error {
		c, err := r.findContainer(containerID)
		if err != nil {
			return err
		}
		if c.log != nil {
			_ = c.log.Close() // its file was rotated away
			c.log = nil
			c.openLog()
		}
		return nil
	})
}
