package podmilltest

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
)

// forever is how long a process waits that waits for nothing but a signal.
const forever = time.Duration(1<<63 - 1)

// process is a script that runs. It has neither clock nor goroutine: run takes it as far as it goes without waiting.
type process struct {
	sys    system
	frames []frame // the script and, above it, a trap's action
	params []string
	env    map[string]string
	traps  map[string][]instruction
	status int32

	waiting   bool
	wakeAt    time.Time // when the wait is over, by itself
	forever   bool      // it never is
	interrupt bool      // a trapped signal ends the wait, as it ends the shell's "wait" and not a "sleep"
	jobs      time.Time // when the last background job is done
	jobsEver  bool      // it never is
	pending   []instruction
	exited    bool
	code      int32
	reason    string
}

type frame struct {
	code []instruction
	pc   int
}

// system is what a script sees of its container.
type system interface {
	write(stream, text string)
	readFile(name string) (string, error)
	writeFile(name, text string, add bool) error
	hostname() string
	workingDir() string
	user() (uid, gid int64)
}

// newProcess returns a process that has not run yet. argv is "sh -c SCRIPT [NAME ARG...]" or one of the shell's commands by itself.
func newProcess(argv []string, env map[string]string, sys system) (*process, error) {
	p := &process{sys: sys, env: env, traps: map[string][]instruction{}}
	if len(argv) == 0 {
		return nil, fmt.Errorf("no command specified")
	}
	switch name := path.Base(argv[0]); name {
	case "sh", "ash", "bash":
		if len(argv) < 3 || !strings.HasPrefix(argv[1], "-") || !strings.HasSuffix(argv[1], "c") {
			return nil, fmt.Errorf("exec: %q: this runtime runs sh -c SCRIPT only", argv)
		}
		code, err := compile(argv[2])
		if err != nil {
			return nil, err
		}
		p.frames, p.params = []frame{{code: code}}, argv[3:]
	default:
		if builtin(name) == nil {
			return nil, fmt.Errorf("exec: %q: executable file not found in $PATH", argv[0])
		}
		line := instruction{words: []word{{{text: name}}}}
		for _, arg := range argv[1:] {
			line.words = append(line.words, word{{text: arg}})
		}
		p.frames = []frame{{code: []instruction{line}}}
	}
	return p, nil
}

// busy is how many instructions a process runs before it gives way: a loop without a wait must not hold the runtime.
const busy = 1000

// run runs the process until it waits or has exited.
func (p *process) run(now time.Time) {
	if p.waiting && (p.forever || now.Before(p.wakeAt)) {
		return
	}
	p.waiting = false
	for range busy {
		p.trap()
		if p.exited || p.waiting {
			return
		}
		top := &p.frames[len(p.frames)-1]
		if top.pc == len(top.code) {
			if len(p.frames) == 1 {
				p.exit(p.status)
				return
			}
			p.frames = p.frames[:len(p.frames)-1]
			continue
		}
		i := top.code[top.pc]
		top.pc++
		if i.words == nil {
			if i.jump == always || (i.jump == ifOK) == (p.status == 0) {
				top.pc = i.to
			}
			continue
		}
		p.command(now, i)
	}
	p.wait(now, time.Millisecond, false)
}

// trap begins the action of a signal that came while it could not be acted on.
func (p *process) trap() {
	if p.pending != nil && !p.exited {
		p.frames = append(p.frames, frame{code: p.pending})
		p.pending = nil
	}
}

// command runs one command.
func (p *process) command(now time.Time, i instruction) {
	var args []string
	for _, w := range i.words {
		args = append(args, p.expand(w)...)
	}
	run := builtin(args[0])
	if run == nil {
		p.sys.write("stderr", "sh: "+args[0]+": not found\n")
		p.status = 127
		return
	}
	c := &call{process: p, now: now, args: args[1:], background: i.background}
	p.status = run(c)
	p.print(c.out, i.redirect)
}

// print puts a command's output where it goes.
func (p *process) print(out string, r *redirect) {
	switch {
	case r == nil:
		p.sys.write("stdout", out)
	case r.to == nil:
		p.sys.write("stderr", out)
	default:
		to := strings.Join(p.expand(r.to), "")
		if err := p.sys.writeFile(to, out, r.append); err != nil {
			p.sys.write("stderr", fmt.Sprintf("sh: can't create %s: %v\n", to, err))
			p.status = 1
		}
	}
}

func (p *process) expand(w word) []string {
	if len(w) == 1 && w[0].variable && w[0].text == "@" {
		return p.params[min(1, len(p.params)):]
	}
	var b strings.Builder
	for _, part := range w {
		if part.variable {
			b.WriteString(p.lookup(part.text))
		} else {
			b.WriteString(part.text)
		}
	}
	return []string{b.String()}
}

func (p *process) lookup(name string) string {
	if name == "?" {
		return strconv.Itoa(int(p.status))
	}
	if n, err := strconv.Atoi(name); err == nil {
		if n < len(p.params) {
			return p.params[n]
		}
		return ""
	}
	return p.env[name]
}

// wait makes the process wait for d.
func (p *process) wait(now time.Time, d time.Duration, interrupt bool) {
	p.waiting, p.forever, p.wakeAt, p.interrupt = true, d == forever, now.Add(d), interrupt
}

// exit ends the process.
func (p *process) exit(code int32) {
	if !p.exited {
		p.exited, p.code = true, code&255
	}
}

// signal gives the process a signal that it may trap. A process without a trap for it dies: unlike the first process of a real
// container, and like every program that knows how to end.
func (p *process) signal(name string, number int32) {
	action, trapped := p.traps[name]
	if !trapped {
		p.exit(128 + number)
		return
	}
	if len(action) == 0 {
		return
	}
	p.pending = action
	if p.waiting && p.interrupt {
		p.waiting = false
	}
}
