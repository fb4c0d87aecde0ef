package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Program is a program that is built once for all tests of a process, as a user does. Its methods may be called concurrently.
type Program struct {
	pkg string

	mu   sync.Mutex
	path string
	err  error
}

// NewProgram returns the program of a package, "." for the one whose tests run. It is built when a test first asks for it.
func NewProgram(pkg string) *Program { return &Program{pkg: pkg} }

// Path returns where the program is. It fails the test if it cannot be built.
func (p *Program) Path(t testing.TB) string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.path == "" && p.err == nil {
		p.path, p.err = build(p.pkg)
	}
	if p.err != nil {
		t.Fatal(p.err)
	}
	return p.path
}

// Remove removes what was built. It is for TestMain, when all tests have ended.
func (p *Program) Remove() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.path != "" {
		_ = os.RemoveAll(filepath.Dir(p.path))
	}
}

func build(pkg string) (path string, err error) {
	name, err := filepath.Abs(pkg) // also of an import path the last part is the program's name
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "program")
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, filepath.Base(name))
	if out, err := exec.Command("go", "build", "-o", path, pkg).CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir)
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return path, nil
}
