// Package podmilltest is what node agents are tested with: a container runtime in memory, the rest of an agent's surroundings, faults,
// and conformance kits for everyone who implements a contract of package podmill.
//
// # Usage
//
// [NewRuntime] makes a runtime with real state. A container is a small script; it is what the spec's command says, what its image
// says, or what a test says for its name:
//
//	rt := podmilltest.NewRuntime(
//		podmilltest.WithScript("web", "sleep 3; exit 1", "sleep inf"), // crashes once, then runs
//		podmilltest.WithLatency(podmilltest.OpRunSandbox, 300*time.Millisecond),
//	)
//	pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "nginx:1"), podmilltest.Grace(5*time.Second))
//
// Then the agent does what it does, the test does what the world does ([Runtime.KillProcess], [Runtime.OOM], [Runtime.KillSandbox],
// [Runtime.UseMemory], [Runtime.RemoveBehindBack], [Runtime.LoseTrack], [Runtime.Reboot], [Runtime.BreakStreams]), and [Runtime.Log] tells what
// happened as a story that can be read, or counted:
//
//	0.000s RunSandbox shop/cart attempt=0 took=300ms
//	0.300s CreateContainer shop/cart web#0
//	0.300s StartContainer shop/cart web#0
//	3.300s shop/cart web#0 exited code=1 Error
//
// [Faulty] makes any runtime fail, hang, lose replies and lie. [NewStatusSink], [NewPodSource], [NewObjects], [NewVolumeMounter]
// and [NewEventRecorder] are an agent's other surroundings.
//
// # Time
//
// All wait by package time alone. In a bubble of testing/synctest days pass at once, and every time in the log is exact.
//
// # Scripts
//
// A command line is "sh -c SCRIPT", or one of the shell's commands by itself; any other fails to start, as a file that is not there
// does. A script has commands joined by ; && || or line ends, "while LIST do LIST done", quotes, $NAME, $1, $@, $?, and output to
// a file (> and >>) or to standard error (>&2). The commands:
//
//	sleep N       waits: seconds, a number with s, m, h or d, or "inf"; "sleep N &" does so in the background
//	wait          waits for what sleeps in the background; a trapped signal ends it
//	exit N        true  false  :
//	trap A SIG    runs A at a signal, at once during "wait" and else when the command is done; with '' ignores it
//	echo  cat  printenv  hostname  pwd  id -u  id -g
//	oom           is killed for its memory
//
// Unlike the first process of a real container, one without a trap dies of the stop signal, as a program that knows how to stop
// does. Files come from the container's mounts, from what it wrote, and from [Image].Files. Output goes to the container's log, where
// the directory for it exists.
//
// # Conformance
//
// [RuntimeTest], [StatusSinkTest], [PodSourceTest] and [VolumeMounterTest] hold an implementation to its contract. What is here passes
// them itself. A runtime whose images have no shell gives [Commands] of its own.
//
// # Concurrency and shutdown
//
// Everything may be used by many goroutines. Nothing here has a goroutine of its own; [Runtime.Close] stops the timers of containers
// that still run, which matters outside of a bubble only.
package podmilltest
