package staticpod

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// entry is what stands in a directory.
type entry struct {
	name string
	data []byte
	// problem is why it is no manifest, or none that can be read.
	problem *Problem
	// foreign says that it need not be one.
	foreign bool
}

// readAll reads the manifests at a path, which is a directory or a single file, in the order of their names. An error says that it is not
// known what there is.
func readAll(path string) ([]entry, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		e, gone := readEntry(path, filepath.Base(path))
		if gone {
			return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
		}
		return []entry{e}, nil
	}
	infos, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, info := range infos {
		name := info.Name()
		if isHidden(name) {
			continue
		}
		if !isManifest(name) {
			entries = append(entries, entry{name: name, foreign: true, problem: &Problem{
				Message: "is not read", Cure: "manifests end in .yaml, .yml or .json", Warning: true,
			}})
			continue
		}
		if e, gone := readEntry(filepath.Join(path, name), name); !gone {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// isHidden says whether nobody wants a file of this name to be looked at: it is hidden, or a copy that an editor or a person keeps.
func isHidden(name string) bool {
	switch filepath.Ext(name) {
	case ".bak", ".old", ".orig", ".rej", ".swp", ".swx", ".tmp":
		return true
	}
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#")
}

func isManifest(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// readEntry reads one manifest. It may be gone by now.
func readEntry(path, name string) (e entry, gone bool) {
	e.name = name
	var err error
	e.data, e.problem, err = readRegular(path)
	switch {
	case err == nil:
		e.foreign = e.problem != nil && e.problem.Warning
	case errors.Is(err, fs.ErrNotExist):
		_, err = os.Lstat(path)
		gone = err != nil
		e.problem = &Problem{Message: "is a link that leads nowhere"}
	default:
		e.problem = &Problem{Message: "cannot be read: " + cause(err)}
	}
	return e, gone
}

// readRegular reads a regular file, behind a link or not, and nothing else: a pipe has no end, and a device may do things when it is opened.
func readRegular(path string) ([]byte, *Problem, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil, notRegular(info), err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err = f.Stat()
	if err != nil || !info.Mode().IsRegular() { // exchanged since
		return nil, notRegular(info), err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if len(data) > maxBytes {
		return nil, &Problem{Message: fmt.Sprintf("is larger than %d MiB", maxBytes>>20), Cure: "no manifest is: is it another file?"}, nil
	}
	return data, nil, err
}

func notRegular(info fs.FileInfo) *Problem {
	switch {
	case info == nil:
		return nil
	case info.IsDir():
		return &Problem{Message: "is a directory, which is not read", Cure: "put manifests beside it", Warning: true}
	default:
		return &Problem{Message: "is no regular file", Cure: "remove it"}
	}
}

// cause leaves the operation and the path out of an error: they are said already.
func cause(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
