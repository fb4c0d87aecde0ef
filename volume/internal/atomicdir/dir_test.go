package atomicdir

import (
	"errors"
	"io/fs"
	"os"
)

var errKilled = errors.New("the agent was killed")

// counting writes down what is done to a directory. With killed set, the process dies in the middle of the operation of that number, at
// the moment that when says, and does nothing any more.
type counting struct {
	Dir
	done   []string
	killed int // counted from 1; 0 is never
	when   moment
	dead   bool
}

type moment int

const (
	before moment = iota
	halfway
	after
)

// do is one operation. half, where it can be half done, does so.
func (c *counting) do(name string, whole, half func() error) error {
	if c.dead {
		return errKilled
	}
	c.done = append(c.done, name)
	if c.killed != len(c.done) {
		return whole()
	}
	c.dead = true
	switch {
	case c.when == after:
		_ = whole()
	case c.when == halfway && half != nil:
		_ = half()
	}
	return errKilled
}

func (c *counting) Mkdir(name string, mode fs.FileMode) error {
	return c.do("mkdir "+name, func() error { return c.Dir.Mkdir(name, mode) }, func() error {
		return c.Dir.Mkdir(name, 0o700) // the mode is set in a second step
	})
}

func (c *counting) WriteFile(name string, file File) error {
	return c.do("write "+name, func() error { return c.Dir.WriteFile(name, file) }, func() error {
		file.Data, file.Mode = file.Data[:len(file.Data)/2], 0o600
		return c.Dir.WriteFile(name, file)
	})
}

func (c *counting) Symlink(target, name string) error {
	return c.do("symlink "+name, func() error { return c.Dir.Symlink(target, name) }, nil)
}

func (c *counting) Rename(from, to string) error {
	return c.do("rename "+from, func() error { return c.Dir.Rename(from, to) }, nil)
}

func (c *counting) Remove(name string) error {
	return c.do("remove "+name, func() error { return c.Dir.Remove(name) }, nil)
}

func (c *counting) RemoveTree(name string) error {
	return c.do("remove tree "+name, func() error { return c.Dir.RemoveTree(name) }, func() error {
		entries, err := fs.ReadDir(c.FS(), name)
		for i := range entries[:(len(entries)+1)/2] {
			_ = c.Dir.RemoveTree(name + "/" + entries[i].Name())
		}
		return err
	})
}

// fullDisk fails to write files after the first few.
type fullDisk struct {
	Dir
	room int
}

func (d *fullDisk) WriteFile(name string, file File) error {
	if d.room == 0 {
		file.Data = nil
		_ = d.Dir.WriteFile(name, file)
		return &fs.PathError{Op: "write", Path: name, Err: os.ErrDeadlineExceeded}
	}
	d.room--
	return d.Dir.WriteFile(name, file)
}
