package podmilltest

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// A kit that cannot fail proves nothing. What breaks a promise fails in a process of its own, and this one looks whether it did.

const breakEnv = "PODMILLTEST_BREAK"

func TestKitsOnBrokenThings(t *testing.T) {
	if os.Getenv(breakEnv) == "" {
		t.Skip("runs below TestKitsNoticeBrokenPromises")
	}
	t.Run("Runtime", func(t *testing.T) { each(t, promises(), brokenRuntime) })
	t.Run("StatusSink", func(t *testing.T) { each(t, sinkPromises(), brokenSink) })
	t.Run("PodSource", func(t *testing.T) { each(t, sourcePromises(), brokenSource) })
	t.Run("VolumeMounter", func(t *testing.T) { each(t, volumePromises(), brokenMounter) })
}

func each[P any](t *testing.T, promises map[string]P, run func(*testing.T, P)) {
	for name, p := range promises {
		t.Run(subtest(name), func(t *testing.T) { run(t, p) })
	}
}

func subtest(name string) string { return strings.ReplaceAll(name, " ", "_") }

func brokenRuntime(t *testing.T, p promise) {
	tests := runtimeTests()
	i := slices.IndexFunc(tests, func(test runtimeTest) bool { return test.name == p.test })
	synctest.Test(t, func(t *testing.T) {
		env := memoryEnv(t)
		b := &broken{Runtime: env.Runtime}
		p.breakIt(b, env.Runtime.(*Runtime))
		env.Runtime = b
		tests[i].run(newRuntimeKit(t, env))
	})
}

func TestKitsNoticeBrokenPromises(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKitsOnBrokenThings$", "-test.v")
	cmd.Env = append(os.Environ(), breakEnv+"=1")
	out, _ := cmd.CombinedOutput() // it exits with an error, as tests that fail do
	notices(t, out, "Runtime", promises())
	notices(t, out, "StatusSink", sinkPromises())
	notices(t, out, "PodSource", sourcePromises())
	notices(t, out, "VolumeMounter", volumePromises())
	if t.Failed() {
		t.Logf("%s", out)
	}
}

func notices[P any](t *testing.T, out []byte, kit string, promises map[string]P) {
	t.Helper()
	for name := range promises {
		if !bytes.Contains(out, []byte("--- FAIL: TestKitsOnBrokenThings/"+kit+"/"+subtest(name)+" ")) {
			t.Errorf("the kit for %s passes what breaks a promise: %s", kit, name)
		}
	}
}
