package podmilltest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Commands make the command lines that [RuntimeTest] runs in containers. Each line has at least two words, so that a spec can give
// some as command and some as arguments. A nil function skips the tests that need it.
type Commands struct {
	// Sleep runs for d and exits with 0. Told to stop, it exits with 143 at once.
	Sleep func(d time.Duration) []string
	// Stubborn runs for d and exits with 0, whatever it is told.
	Stubborn func(d time.Duration) []string
	// Heeds runs until it is sent a signal, such as SIGUSR1, and then exits with code at once, whatever else it is told.
	Heeds func(signal corev1.Signal, code int) []string
	// Ready, run in a container that runs one of these, exits with 0 once it is ready to be told to stop, and with something else
	// before. Nil is for a runtime that starts them ready.
	Ready func() []string
	// Exit exits with a code, at once.
	Exit func(code int) []string
	// Print prints a line on standard output, and Complain one on standard error; both exit with 0.
	Print, Complain func(text string) []string
	// PrintEnv prints the value of an environment variable and a line's end.
	PrintEnv func(name string) []string
	// PrintHostname, PrintWorkingDir and PrintUser print a line: the host's name, the working directory, the user's number.
	PrintHostname, PrintWorkingDir, PrintUser func() []string
	// Read prints a file; it fails where there is none. Write writes a line to one, and fails where it cannot.
	Read  func(path string) []string
	Write func(path, text string) []string
}

// ShellCommands are commands for images with a shell such as busybox's, and for the in-memory runtime.
func ShellCommands() Commands {
	const ready = "/podmilltest-ready"
	quiet := func(script string) func() []string { return func() []string { return Script(script) } }
	return Commands{
		// The first process of a container has no default action for signals: it needs the trap, and a shell acts on a trap during
		// "wait" but not during a command.
		Sleep: func(d time.Duration) []string {
			return Script("trap 'exit 143' TERM; echo > " + ready + "; sleep " + seconds(d) + " & wait")
		},
		Stubborn: func(d time.Duration) []string {
			return Script("trap '' TERM; echo > " + ready + "; sleep " + seconds(d))
		},
		Heeds: func(signal corev1.Signal, code int) []string {
			return Script(fmt.Sprintf("trap '' TERM; trap 'exit %d' %s; echo > %s; sleep 3600 & wait", code, strings.TrimPrefix(string(signal), "SIG"), ready))
		},
		Ready:           quiet("cat " + ready),
		Exit:            func(code int) []string { return Script(fmt.Sprintf("exit %d", code)) },
		Print:           func(text string) []string { return []string{"echo", text} },
		Complain:        func(text string) []string { return []string{"sh", "-c", `echo "$1" >&2`, "sh", text} },
		PrintEnv:        func(name string) []string { return Script("echo \"$" + name + "\"") },
		PrintHostname:   quiet("hostname"),
		PrintWorkingDir: quiet("pwd"),
		PrintUser:       quiet("id -u"),
		Read:            func(path string) []string { return []string{"cat", path} },
		Write:           func(path, text string) []string { return []string{"sh", "-c", `echo "$2" > "$1"`, "sh", path, text} },
	}
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
