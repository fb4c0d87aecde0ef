package atomicdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// Ten readers see one version each time that they look, in 10,000 changes.
func TestReadersSeeOneVersion(t *testing.T) {
	dir, path := openInMemory(t)
	files := func(i int) map[string]File {
		all := map[string]string{}
		for key := range 5 {
			all[fmt.Sprintf("k%d", key)] = fmt.Sprintf("version %d", i)
		}
		return text(all)
	}
	_, err := Write(dir.Dir, files(0), 0o755)
	must(t, err)
	var readers sync.WaitGroup
	var whole atomic.Int64
	looks := make(chan struct{}, 10) // a few for each change: readers that never rest leave the writer no time
	for range 10 {
		readers.Go(func() {
			for range looks {
				switch versions, err := look(path); {
				case err != nil:
					t.Error(err)
				case len(versions) == 1:
					whole.Add(1)
				case len(versions) > 1:
					t.Errorf("a mix: %v", versions)
				}
			}
		})
	}
	for i := range 10_000 {
		for range 2 {
			select {
			case looks <- struct{}{}:
			default:
			}
		}
		if _, err := Write(dir.Dir, files(i+1), 0o755); err != nil {
			t.Error(err)
		}
	}
	close(looks)
	readers.Wait()
	if whole.Load() == 0 {
		t.Error("no reader ever saw a whole version")
	}
	t.Logf("%d looks at whole versions", whole.Load())
}

// look resolves ..data once and reads all keys there. It returns the versions that it saw, none if they were replaced under its hands.
func look(path string) (map[string]int, error) {
	version, err := os.OpenRoot(path + "/..data")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // between reading the link and following it
	}
	if err != nil {
		return nil, err
	}
	defer version.Close()
	versions := map[string]int{}
	for key := range 5 {
		data, err := version.ReadFile(fmt.Sprintf("k%d", key))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		versions[string(data)]++
	}
	return versions, nil
}
