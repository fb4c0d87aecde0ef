package podmilltest

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podmill/podmill"
)

func TestScripts(t *testing.T) {
	for script, want := range map[string]struct {
		out  string // standard output, then standard error
		code int32
		took time.Duration
	}{
		"":                                    {},
		"exit 3":                              {code: 3},
		"exit 300":                            {code: 44},
		"false":                               {code: 1},
		"false; true":                         {},
		"false; exit":                         {code: 1},
		"echo a b; echo 'c  d'":               {out: "a b\nc  d\n"},
		"echo -n x; echo y # z; exit 9":       {out: "xy\n"},
		"# first\necho a\necho b":             {out: "a\nb\n"},
		"true && echo yes || echo no":         {out: "yes\n"},
		"false && echo yes || echo no":        {out: "no\n"},
		"echo $A-${A}s \"$A b\" '$A' \\$A":    {out: "va-vas va b $A $A\n"},
		"echo \"a\\\"b\" ''; echo end":        {out: "a\"b \nend\n"},
		"false; echo $?":                      {out: "1\n"},
		"echo $NOTHING.":                      {out: ".\n"},
		"sleep 2; sleep 0.5; sleep 1m":        {took: 62*time.Second + 500*time.Millisecond},
		"sleep 5 & sleep 3 & wait; echo done": {out: "done\n", took: 5 * time.Second},
		"sleep 5 & echo early":                {out: "early\n"},
		"while sleep 1 && cat /a; do echo > /b; cat /b || true; done; exit 6": {out: "cat: can't open '/a': file does not exist\n", code: 6, took: time.Second},
		"echo 1 > /f; echo 2 >> /f; cat /f":                                   {out: "1\n2\n"},
		"echo bad >&2; echo good":                                             {out: "good\nbad\n"},
		"nginx -g x; echo $?":                                                 {out: "127\nsh: nginx: not found\n"},
		"sleep x || echo no":                                                  {out: "no\nsleep: invalid time interval x\n"},
		"printenv A; printenv NOTHING":                                        {out: "va\n", code: 1},
		"oom; echo never":                                                     {code: 137},
	} {
		t.Run(script, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := NewRuntime()
				pod := Pod("a", Container("c", "i", Runs("sleep inf"), Env("A", "va")))
				id := launched(t, rt, pod)
				start := time.Now()
				result, err := rt.Exec(t.Context(), id, Script(script))
				if err != nil {
					t.Fatal(err)
				}
				if out := string(result.Stdout) + string(result.Stderr); out != want.out || result.ExitCode != want.code {
					t.Errorf("code %d, output %q, want %d and %q", result.ExitCode, out, want.code, want.out)
				}
				if took := time.Since(start); took != want.took {
					t.Errorf("took %v, want %v", took, want.took)
				}
			})
		})
	}
}

func TestScriptsThatAreNotUnderstood(t *testing.T) {
	for _, script := range []string{
		"echo 'open", "echo \"open", "while true; do sleep 1", "&& true", "true &&", "echo $(date)", "echo ${x", "; ; &", "echo >", "a | b",
	} {
		if code, err := compile(script); err == nil {
			t.Errorf("%q compiles to %+v, want an error", script, code)
		}
	}
}

func TestBusyLoopGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := NewRuntime()
		pod := Pod("a", Container("c", "i", Runs("while true; do :; done")))
		id := launched(t, rt, pod)
		time.Sleep(time.Second)
		if err := rt.StopContainer(t.Context(), id, time.Second); err != nil {
			t.Fatal(err)
		}
		rt.Close()
	})
}

func TestCommandThatIsNotThereFailsToStart(t *testing.T) {
	rt := NewRuntime(WithImages(Image{Ref: "i"}))
	pod := Pod("a", Container("c", "i"))
	spec := &podmill.SandboxSpec{Pod: pod}
	sandbox, err := rt.RunSandbox(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	id, err := rt.CreateContainer(t.Context(), &podmill.ContainerSpec{
		Sandbox: spec, SandboxID: sandbox, Container: &pod.Spec.Containers[0], Image: "i", Command: []string{"/bin/server"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.StartContainer(t.Context(), id); err == nil || !strings.Contains(err.Error(), "executable file not found") {
		t.Errorf("error %v, want that the file is not there", err)
	}
	seen, err := rt.InspectPod(t.Context(), pod.UID)
	if err != nil {
		t.Fatal(err)
	}
	if c := seen.Containers[0]; c.State != podmill.StateExited || c.ExitCode != 128 || c.Reason != "StartError" {
		t.Errorf("what is left: %+v", c)
	}
}

func FuzzCompile(f *testing.F) {
	for _, script := range []string{"trap 'exit 1' TERM; sleep 5 & wait", "while a; do b; done && c > d", "echo \"${A}\" '$B' $@"} {
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script string) {
		code, err := compile(script)
		if err != nil {
			return
		}
		for _, i := range code {
			if i.words == nil && (i.to < 0 || i.to > len(code)) {
				t.Errorf("a jump to %d of %d", i.to, len(code))
			}
		}
	})
}
