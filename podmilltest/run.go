package podmilltest

import (
	"syscall"
	"time"

	"github.com/podmill/podmill"
)

// commandLine is what a container runs: a script that a test gave for it, or what its spec and image make.
func (r *Runtime) commandLine(c *container) []string {
	full := podName(c.sandbox.pod.PodRef) + "/" + c.seen.Name
	for _, name := range []string{full, c.seen.Name} {
		if scripts := r.scripts[name]; len(scripts) > 0 {
			return Script(scripts[min(int(c.seen.Attempt), len(scripts)-1)])
		}
	}
	entrypoint, args := c.image.Entrypoint, c.image.Cmd
	if len(entrypoint)+len(args) == 0 {
		entrypoint = Script("sleep inf")
	}
	if len(c.spec.Command) > 0 {
		entrypoint, args = c.spec.Command, nil
	}
	if len(c.spec.Args) > 0 {
		args = c.spec.Args
	}
	return append(entrypoint[:len(entrypoint):len(entrypoint)], args...)
}

func environment(c *container) map[string]string {
	env := map[string]string{"PATH": "/bin:/usr/bin", "HOSTNAME": c.hostname()}
	for _, v := range c.spec.Env {
		env[v.Name] = v.Value
	}
	return env
}

// step takes a container's process as far as it goes now, and sees to its next step.
func (r *Runtime) step(c *container) {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	if r.closed || c.seen.State != podmill.StateRunning {
		return
	}
	p := c.process
	p.run(time.Now())
	switch {
	case p.exited:
		r.exited(c, p.code, p.reason, "")
	case !p.forever:
		// A timer that was stopped too late finds another process state, and does no harm: run looks at the time.
		c.timer = time.AfterFunc(time.Until(p.wakeAt), func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.step(c)
		})
	}
}

// signal sends a signal to a container's process.
func (r *Runtime) signal(c *container, name string, number int32) {
	if c.seen.State == podmill.StateRunning && c.process != nil {
		c.process.signal(name, number)
		r.step(c)
	}
}

// kill ends a container that runs, at once. Of one that the runtime lost track of nobody knows how it ended.
func (r *Runtime) kill(c *container) {
	switch c.seen.State {
	case podmill.StateRunning:
		r.exited(c, 128+int32(syscall.SIGKILL), "", "")
	case podmill.StateUnknown:
		r.exited(c, lostCode, lostReason, "")
	}
}

// lostCode and lostReason are containerd's for a container whose end nobody saw.
const (
	lostCode   = 255
	lostReason = "Unknown"
)

// exited makes a container one that has exited.
func (r *Runtime) exited(c *container, code int32, reason, message string) {
	if reason == "" {
		reason = "Error"
		if code == 0 {
			reason = "Completed"
		}
	}
	c.seen.State, c.seen.FinishedAt = podmill.StateExited, time.Now()
	c.seen.ExitCode, c.seen.Reason, c.seen.Message = code, reason, message
	c.halt()
	c.end()
	r.log.Note("%s exited code=%d %s", c, code, reason)
	r.changed(c.sandbox.pod)
}

// halt stops what a container would do later.
func (c *container) halt() {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	if c.log != nil {
		_ = c.log.Close() // what could not be written is lost, as in a real log
		c.log = nil
	}
}

// end lets go of those who wait for the container's end.
func (c *container) end() {
	select {
	case <-c.done:
	default:
		close(c.done)
	}
}

func (c *container) hostname() string {
	if h := c.sandbox.spec.Hostname; h != "" {
		return h
	}
	return "host"
}

func (c *container) workingDir() string {
	if c.spec.WorkingDir != "" {
		return c.spec.WorkingDir
	}
	return "/"
}

func (c *container) user() (uid, gid int64) {
	if c.image.seen.UID != nil {
		uid = *c.image.seen.UID
	}
	if u := c.spec.User; u != nil {
		if u.UID != nil {
			uid = *u.UID
		}
		if u.GID != nil {
			gid = *u.GID
		}
	}
	return uid, gid
}
