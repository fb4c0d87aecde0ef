package syncpod

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/podmill/podmill"
)

// maxEnvFile is how large a file may be that variables are read from.
const maxEnvFile = 1 << 20

// readEnvFile reads a file of a volume, [podmill.ErrNotFound] if there is none. Containers write it, so it may be anything, and change under the reader's eyes:
// nothing but a regular file is read, no link is followed, and what is read lies in the volume in any case.
func readEnvFile(volumes map[string]podmill.Volume, volume, path string) ([]byte, error) {
	v, ok := volumes[volume]
	if !ok || v.HostPath == "" || v.Block {
		return nil, fmt.Errorf("there is no volume %q with files", volume)
	}
	if !filepath.IsLocal(path) {
		return nil, errors.New("the path leads out of the volume")
	}
	root, err := os.OpenRoot(v.HostPath)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := lstatAll(root, filepath.Clean(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, podmill.ErrNotFound
	case err != nil:
		return nil, err
	}
	f, err := root.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch now, err := f.Stat(); {
	case err != nil:
		return nil, err
	case !os.SameFile(info, now):
		return nil, errors.New("it is being replaced")
	case now.Size() > maxEnvFile:
		return nil, fmt.Errorf("it is larger than %d bytes", maxEnvFile)
	}
	return io.ReadAll(io.LimitReader(f, maxEnvFile))
}

// lstatAll looks at each step of a path, and returns the last one: directories, and then a regular file.
func lstatAll(root *os.Root, path string) (info fs.FileInfo, err error) {
	steps := strings.Split(path, string(filepath.Separator))
	for i := range steps {
		at := filepath.Join(steps[:i+1]...)
		if info, err = root.Lstat(at); err != nil {
			return nil, err
		}
		if last := i == len(steps)-1; last && !info.Mode().IsRegular() || !last && !info.IsDir() {
			return nil, fmt.Errorf("%s is not what it should be, a link or something else", at)
		}
	}
	return info, nil
}
