package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/podmill/podmill/examples/internal/machine"
)

// rootDir is the agent's directory, locked: two agents on one directory would take each other's pods for their own.
type rootDir struct {
	unlock func()
	events io.WriteCloser
	log    io.WriteCloser
}

func openRoot(flags *machine.Flags) (*rootDir, error) {
	unlock, err := flags.Lock()
	if err != nil {
		return nil, err
	}
	path := flags.Root
	d := &rootDir{unlock: unlock, log: os.Stderr}
	if d.events, err = appendTo(filepath.Join(path, "events.jsonl")); err != nil {
		return nil, err
	}
	if isTerminal(os.Stderr) && isTerminal(os.Stdout) {
		// The table is drawn over and over; a log would tear it.
		name := filepath.Join(path, "agent.log")
		if d.log, err = appendTo(name); err != nil {
			return nil, err
		}
		_, _ = fmt.Fprintln(os.Stderr, "the log is", name)
	}
	return d, nil
}

func (d *rootDir) close() {
	_ = d.events.Close()
	d.unlock()
}

// maxFile is when a file that is only written to begins anew; the one before is kept.
const maxFile = 10 << 20

// journal is a file that lines are appended to, of no more than maxFile; what was before that is in <name>.1.
type journal struct {
	mu   sync.Mutex
	file *os.File
	size int64
}

func appendTo(name string) (*journal, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // the user says where
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &journal{file: file, size: info.Size()}, nil
}

func (j *journal) Write(lines []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.size > maxFile {
		j.turn()
	}
	n, err := j.file.Write(lines)
	j.size += int64(n)
	return n, err
}

// turn begins the file anew. Where that cannot be done, it goes on growing: what is said counts for more.
func (j *journal) turn() {
	name := j.file.Name()
	if err := os.Rename(name, name+".1"); err != nil {
		return
	}
	next, err := appendTo(name)
	if err != nil {
		return
	}
	_ = j.file.Close()
	j.file, j.size = next.file, next.size
}

func (j *journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file.Close()
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// width is how many characters a row of the terminal holds; 0 where nobody knows.
func width(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
