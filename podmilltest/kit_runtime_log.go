package podmilltest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/podmill/podmill"
)

// logged returns what a file holds of a container's output, without times and streams.
func logged(path string) string {
	data, _ := os.ReadFile(path) // not yet there is nothing yet
	var lines []string
	for line := range strings.Lines(string(data)) {
		if fields := strings.SplitN(line, " ", 4); len(fields) == 4 {
			lines = append(lines, fields[1]+" "+fields[2]+" "+fields[3])
		}
	}
	return strings.Join(lines, "")
}

func testLogs(k *runtimeKit) {
	k.given("Dir", k.Dir != "")
	spec := k.pod()
	c := k.container(spec, k.runSandbox(spec), k.Commands.Print("hello"))
	c.LogPath = filepath.Join("c", "0.log")
	path := filepath.Join(spec.LogDirectory, c.LogPath)
	k.ok("make the log's directory", os.MkdirAll(filepath.Dir(path), 0o755))
	id := k.start(c)
	if seen := k.see(spec.Pod, id); seen.LogPath != path {
		k.Errorf("the log is at %q, want %q", seen.LogPath, path)
	}
	k.exited(spec.Pod, id)
	k.eventually("the log holds what was printed", func() bool { return logged(path) == "stdout F hello\n" })
}

func testReopenLog(k *runtimeKit) {
	reopener, ok := podmill.As[podmill.LogReopener](k.Runtime)
	if !ok {
		k.Skip("the runtime is no LogReopener")
	}
	k.given("Dir", k.Dir != "")
	spec, _, container := k.launch(k.Commands.Sleep(time.Hour))
	path := k.see(spec.Pod, container).LogPath
	k.eventually("there is a log", func() bool { _, err := os.Stat(path); return err == nil })
	k.ok("rotate the log", os.Rename(path, path+".1"))
	if err := reopener.ReopenLog(k.ctx, container); errors.Is(err, errors.ErrUnsupported) {
		k.Skip("ReopenLog is not supported")
	} else {
		k.ok("ReopenLog", err)
	}
	k.eventually("there is a new log", func() bool { _, err := os.Stat(path); return err == nil })
	if err := reopener.ReopenLog(k.ctx, noID); !errors.Is(err, podmill.ErrNotFound) {
		k.Errorf("ReopenLog of a container that is not there: error %v, want ErrNotFound", err)
	}
}
