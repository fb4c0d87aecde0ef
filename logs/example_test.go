package logs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/logs"
)

// reopener is a runtime's part in a rotation.
type reopener struct{ path string }

func (r reopener) ReopenLog(context.Context, string) error { return os.WriteFile(r.path, nil, 0o600) }

func Example() {
	dir, _ := os.MkdirTemp("", "logs")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "0.log")
	_ = os.WriteFile(path, make([]byte, 2048), 0o600)

	pods := func() ([]*podmill.RuntimePod, bool) {
		web := podmill.Container{ID: "1", Name: "web", State: podmill.StateRunning, LogPath: path}
		return []*podmill.RuntimePod{{Containers: []podmill.Container{web}}}, true
	}
	ctx, cancel := context.WithCancel(context.Background())
	rotator := logs.New(dir, pods, reopener{path}, logs.WithMaxSize(1024), logs.WithInterval(time.Millisecond),
		logs.WithObserver(func(podmill.PodRef, string, string, error) { cancel() }))
	_ = rotator.Run(ctx)
	files, _ := filepath.Glob(filepath.Join(dir, "0.log*"))
	fmt.Println(len(files), "files")
	// Output: 2 files
}
