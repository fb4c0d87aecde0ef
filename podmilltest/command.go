package podmilltest

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// call is one command that a process runs.
type call struct {
	*process
	now        time.Time
	args       []string
	background bool
	out        string
}

// builtin returns what the command of that name does, nil if there is none. It returns the command's exit status.
func builtin(name string) func(*call) int32 {
	switch name {
	case ":", "true":
		return func(*call) int32 { return 0 }
	case "false":
		return func(*call) int32 { return 1 }
	case "echo":
		return (*call).echo
	case "sleep":
		return (*call).sleep
	case "wait":
		return (*call).waitForJobs
	case "exit":
		return (*call).exitNow
	case "trap":
		return (*call).setTrap
	case "cat":
		return (*call).cat
	case "printenv":
		return (*call).printenv
	case "hostname":
		return func(c *call) int32 { c.out = c.sys.hostname() + "\n"; return 0 }
	case "pwd":
		return func(c *call) int32 { c.out = c.sys.workingDir() + "\n"; return 0 }
	case "id":
		return (*call).id
	case "oom":
		return func(c *call) int32 { c.reason = "OOMKilled"; c.exit(137); return 0 }
	}
	return nil
}

func (c *call) echo() int32 {
	if len(c.args) > 0 && c.args[0] == "-n" {
		c.out = strings.Join(c.args[1:], " ")
	} else {
		c.out = strings.Join(c.args, " ") + "\n"
	}
	return 0
}

func (c *call) sleep() int32 {
	if len(c.args) != 1 {
		return c.fail("sleep: one time interval is needed")
	}
	d, ok := interval(c.args[0])
	switch {
	case !ok:
		return c.fail("sleep: invalid time interval " + c.args[0])
	case !c.background:
		c.wait(c.now, d, false)
	case d == forever:
		c.jobsEver = true
	case c.now.Add(d).After(c.jobs):
		c.jobs = c.now.Add(d)
	}
	return 0
}

// interval reads what sleep is given: seconds, or a number with the unit s, m, h or d, or "inf".
func interval(s string) (time.Duration, bool) {
	if s == "inf" || s == "infinity" {
		return forever, true
	}
	unit := time.Second
	if n := len(s) - 1; n > 0 {
		units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
		if u, ok := units[s[n]]; ok {
			unit, s = u, s[:n]
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || n < 0 {
		return 0, false
	}
	if n *= float64(unit); n < float64(forever) {
		return time.Duration(n), true
	}
	return forever, true
}

func (c *call) waitForJobs() int32 {
	switch {
	case c.jobsEver:
		c.wait(c.now, forever, true)
	case c.jobs.After(c.now):
		c.wait(c.now, c.jobs.Sub(c.now), true)
	}
	return 0
}

func (c *call) exitNow() int32 {
	code := int64(c.status)
	if len(c.args) > 0 {
		var err error
		if code, err = strconv.ParseInt(c.args[0], 10, 32); err != nil {
			return c.fail("exit: bad number " + c.args[0])
		}
	}
	c.exit(int32(code))
	return c.code
}

func (c *call) setTrap() int32 {
	if len(c.args) < 2 {
		return c.fail("trap: an action and a signal are needed")
	}
	action, err := compile(c.args[0])
	if err != nil {
		return c.fail(err.Error())
	}
	for _, name := range c.args[1:] {
		name = strings.TrimPrefix(name, "SIG")
		if n, numeric := map[string]string{"15": "TERM", "2": "INT", "1": "HUP"}[name]; numeric {
			name = n
		}
		if c.traps[name] = action; c.args[0] == "-" {
			delete(c.traps, name)
		}
	}
	return 0
}

func (c *call) cat() int32 {
	status := int32(0)
	for _, name := range c.args {
		text, err := c.sys.readFile(name)
		if err != nil {
			status = c.fail("cat: can't open '" + name + "': " + err.Error())
		}
		c.out += text
	}
	return status
}

func (c *call) printenv() int32 {
	if len(c.args) == 0 {
		for name, value := range c.env {
			c.out += name + "=" + value + "\n"
		}
		lines := strings.SplitAfter(c.out, "\n")
		slices.Sort(lines)
		c.out = strings.Join(lines, "")
		return 0
	}
	value, ok := c.env[c.args[0]]
	if !ok {
		return 1
	}
	c.out = value + "\n"
	return 0
}

func (c *call) id() int32 {
	uid, gid := c.sys.user()
	switch strings.Join(c.args, " ") {
	case "-u":
		c.out = strconv.FormatInt(uid, 10) + "\n"
	case "-g":
		c.out = strconv.FormatInt(gid, 10) + "\n"
	default:
		return c.fail("id: -u or -g is needed")
	}
	return 0
}

// fail says why on standard error.
func (c *call) fail(why string) int32 {
	c.sys.write("stderr", why+"\n")
	return 1
}
