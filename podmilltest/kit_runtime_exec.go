package podmilltest

import (
	"context"
	"time"
)

func testExec(k *runtimeKit) {
	spec, sandbox, container := k.launch(k.Commands.Sleep(time.Hour))
	check := func(line []string, code int32, stdout, stderr string) {
		k.Helper()
		result, err := k.Runtime.Exec(k.ctx, container, line)
		k.ok("Exec", err)
		if result.ExitCode != code || string(result.Stdout) != stdout || string(result.Stderr) != stderr {
			k.Errorf("Exec %q: code %d, output %q and %q, want %d, %q and %q",
				line, result.ExitCode, result.Stdout, result.Stderr, code, stdout, stderr)
		}
	}
	check(k.Commands.Print("hello  world"), 0, "hello  world\n", "")
	if k.Commands.Complain != nil {
		check(k.Commands.Complain("oh no"), 0, "", "oh no\n")
	}
	check(k.Commands.Exit(3), 3, "", "")

	c := k.container(spec, sandbox, k.Commands.Exit(0))
	c.Attempt = 1
	exited := k.start(c)
	k.exited(spec.Pod, exited)
	_, err := k.Runtime.Exec(k.ctx, exited, k.Commands.Exit(0))
	k.fails("Exec in a container that has exited", err)
}

func testExecEndsWithItsContext(k *runtimeKit) {
	_, _, container := k.launch(k.Commands.Sleep(time.Hour))
	ctx, cancel := context.WithTimeout(k.ctx, time.Second)
	defer cancel()
	k.promptly("Exec", func() {
		_, err := k.Runtime.Exec(ctx, container, k.Commands.Sleep(time.Hour))
		k.fails("an Exec whose context ends", err)
	})
}
