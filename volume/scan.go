package volume

import (
	"errors"
	"io/fs"
	"os"

	"github.com/podmill/podmill/volume/internal/hostdir"
)

// scan lists what may be of a pod's volumes in its directory: everything down to the volumes and subPaths, each after what is in it. It
// follows no link and enters no mount.
func scan(pod *os.Root) ([]found, error) {
	var all []found
	for _, top := range []struct {
		name   string
		levels int // below it
	}{{volumesDir, 2}, {subPathsDir, 3}} {
		var err error
		if all, err = visit(all, pod, top.name, top.name, top.levels); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func visit(all []found, parent *os.Root, name, path string, levels int) ([]found, error) {
	info, err := parent.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	f := found{path: path}
	switch {
	case info.Mode().Type() == fs.ModeSymlink:
		f.kind = aLink
		return append(all, f), nil
	case !info.IsDir():
		f.kind = aFile
	}
	if f.mounted, err = hostdir.IsMount(parent, name); err != nil {
		return nil, err
	}
	if f.kind == aDirectory && !f.mounted && levels > 0 {
		if all, err = visitAll(all, parent, name, path, levels-1); err != nil {
			return nil, err
		}
	}
	return append(all, f), nil
}

func visitAll(all []found, parent *os.Root, name, path string, levels int) ([]found, error) {
	dir, err := hostdir.Enter(parent, name)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if all, err = visit(all, dir, entry.Name(), path+"/"+entry.Name(), levels); err != nil {
			return nil, err
		}
	}
	return all, nil
}
