// Package atomicdir keeps a set of files in a directory so that a reader sees one version of all of them. The layout is the kubelet's:
//
//	..2006_01_02_15_04_05.4711/   a version: key, dir/key
//	..data -> ..2006_01_02_15_04_05.4711
//	key -> ..data/key
//	dir -> ..data/dir
//
// A new version is written beside the old one, and a rename of the link ..data is the moment of change. Readers who want several files of one
// version resolve ..data once. All else in the directory is let be.
package atomicdir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"strings"
	"time"
)

// File is the content of a file. Mode are its permissions. UID is its owner, -1 for the writing process's.
type File struct {
	Data []byte
	Mode fs.FileMode
	UID  int
}

const (
	dataLink    = "..data"
	newDataLink = "..data_tmp"
	// versionPrefix is what all versions have in common, and no user's file: paths do not start with two dots.
	versionPrefix = "..2"
)

// Write makes dir hold exactly the files, by their slash-separated relative paths, whatever state an earlier Write was interrupted in. Directories
// in it get dirMode. It reports whether there is a new version: unchanged files are not written again, and nothing is renamed.
func Write(dir Dir, files map[string]File, dirMode fs.FileMode) (changed bool, err error) {
	if err := validate(files); err != nil {
		return false, err
	}
	version := current(dir)
	if version == "" || !holds(dir, version, files) {
		if version, err = add(dir, files, dirMode); err != nil {
			return false, err
		}
		changed = true
	}
	links := map[string]bool{}
	for name := range files {
		first, _, _ := strings.Cut(name, "/")
		links[first] = true
	}
	return changed, tidy(dir, version, links)
}

// current returns the version that readers are led to, empty if that is none. It need not be there.
func current(dir Dir) string {
	version, err := dir.Readlink(dataLink)
	if err != nil || !isVersion(version) {
		return ""
	}
	return version
}

func isVersion(name string) bool {
	return strings.HasPrefix(name, versionPrefix) && !strings.ContainsAny(name, `/\`)
}

// holds reports whether a version is the files and nothing else. What cannot be read is not what it should be.
func holds(dir Dir, version string, files map[string]File) bool {
	root, err := dir.Enter(version)
	if err != nil {
		return false
	}
	defer root.Close()
	found := 0
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		found++
		want, ok := files[name]
		// Asked before it is opened: to open a pipe is to wait.
		info, err := entry.Info()
		if err != nil || !ok || !info.Mode().IsRegular() || info.Size() != int64(len(want.Data)) {
			return errDiffers
		}
		if data, err := root.ReadFile(name); err != nil || !bytes.Equal(data, want.Data) {
			return errDiffers
		}
		return nil
	})
	return err == nil && found == len(files)
}

// errDiffers ends a comparison.
var errDiffers = errors.New("differs")

// add writes a version and makes it the current one.
func add(dir Dir, files map[string]File, dirMode fs.FileMode) (version string, err error) {
	if version, err = writeVersion(dir, files, dirMode); err != nil {
		if version != "" {
			err = errors.Join(err, dir.RemoveTree(version)) // it may be what fills the disk
		}
		return "", err
	}
	if err := remove(dir, newDataLink); err != nil {
		return "", err
	}
	if info, err := dir.Lstat(dataLink); err == nil && info.IsDir() { // not ours, and nothing that a rename replaces
		if err := dir.RemoveTree(dataLink); err != nil {
			return "", err
		}
	}
	if err := dir.Symlink(version, newDataLink); err != nil {
		return "", err
	}
	return version, dir.Rename(newDataLink, dataLink)
}

// writeVersion writes a version that nobody sees yet. With an error it returns the version that has to be removed, if any.
func writeVersion(dir Dir, files map[string]File, dirMode fs.FileMode) (version string, err error) {
	for {
		version = fmt.Sprintf("..%s.%d", time.Now().UTC().Format("2006_01_02_15_04_05"), rand.Uint32())
		err := dir.Mkdir(version, dirMode)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	made := map[string]bool{".": true}
	for name, file := range files {
		for _, parent := range parents(name) {
			if made[parent] {
				continue
			}
			if err := dir.Mkdir(version+"/"+parent, dirMode); err != nil {
				return version, err
			}
			made[parent] = true
		}
		if err := dir.WriteFile(version+"/"+name, file); err != nil {
			return version, err
		}
	}
	return version, nil
}

// parents returns the directories that a path leads through, the topmost first.
func parents(name string) []string {
	var all []string
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		all = append([]string{dir}, all...)
	}
	return all
}

// tidy makes the links by which users find the files, and removes what is no longer needed: links, versions, what a crash left behind.
func tidy(dir Dir, version string, links map[string]bool) error {
	for name := range links {
		if err := link(dir, name); err != nil {
			return err
		}
	}
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case name == version || name == dataLink || links[name]:
		case name == newDataLink || isVersion(name):
			err = remove(dir, name)
		case entry.Type() == fs.ModeSymlink:
			if target, linkErr := dir.Readlink(name); linkErr == nil && target == dataLink+"/"+name {
				err = remove(dir, name)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// link makes the link by which users find a file or a directory of the current version.
func link(dir Dir, name string) error {
	target := dataLink + "/" + name
	if now, err := dir.Readlink(name); err == nil && now == target {
		return nil
	}
	if err := remove(dir, name); err != nil {
		return err
	}
	return dir.Symlink(target, name)
}

// remove removes what is there of that name, if anything. A link is only a link.
func remove(dir Dir, name string) error {
	info, err := dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return dir.RemoveTree(name)
	}
	return dir.Remove(name)
}
