package podmilltest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/podmill/podmill"
)

// Exec implements [podmill.Execer]. The command is a script or one of its commands, and ends with its container.
func (r *Runtime) Exec(ctx context.Context, containerID string, command []string) (*podmill.ExecResult, error) {
	var (
		c *container
		p *process
	)
	out := &execution{}
	err := r.call(ctx, OpExec, r.containerName(containerID)+" "+strings.Join(command, " "), func() (err error) {
		if c, err = r.findContainer(containerID); err != nil {
			return err
		}
		if c.seen.State != podmill.StateRunning {
			return fmt.Errorf("exec in container %s of pod %s: it is %v", c.seen.Name, c.sandbox.pod.PodRef, c.seen.State)
		}
		out.container = c
		if p, err = newProcess(command, environment(c), out); err != nil {
			return fmt.Errorf("exec in container %s of pod %s: %w", c.seen.Name, c.sandbox.pod.PodRef, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for {
		r.mu.Lock()
		p.run(time.Now())
		r.mu.Unlock()
		if p.exited {
			return &podmill.ExecResult{Stdout: []byte(out.stdout), Stderr: []byte(out.stderr), ExitCode: p.code}, nil
		}
		if err := out.pause(ctx, p); err != nil {
			return nil, err
		}
	}
}

// execution is a system whose output is collected.
type execution struct {
	*container
	stdout, stderr string
}

func (e *execution) write(stream, text string) {
	if stream == "stdout" {
		e.stdout += text
	} else {
		e.stderr += text
	}
}

// pause waits for the next step of p.
func (e *execution) pause(ctx context.Context, p *process) error {
	wait := forever
	if !p.forever {
		wait = time.Until(p.wakeAt)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.done:
		p.exit(137)
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
