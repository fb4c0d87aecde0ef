package main

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// A real ELF reader accepts the program, and on this machine it runs and sleeps.
func TestPauseIsARunnableELF(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		data, err := pauseELF(arch)
		if err != nil {
			t.Fatal(err)
		}
		f, err := elf.NewFile(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", arch, err)
		}
		if f.Machine != machine || f.Progs[0].Filesz != uint64(len(data)) {
			t.Errorf("%s: machine %v, loads %d of %d bytes", arch, f.Machine, f.Progs[0].Filesz, len(data))
		}
		if arch != runtime.GOARCH || runtime.GOOS != "linux" {
			continue
		}
		path := filepath.Join(t.TempDir(), "pause")
		if err := os.WriteFile(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended:
			t.Errorf("pause ended by itself: %v", err)
		case <-time.After(100 * time.Millisecond): // a crash would show at once
		}
		_ = cmd.Process.Kill()
	}
}

// The same input gives the same bytes, so an import can be skipped.
func TestArchiveIsDeterministic(t *testing.T) {
	busybox := filepath.Join(t.TempDir(), "busybox")
	if err := os.WriteFile(busybox, []byte("#!/bin/sh\necho bin/sh\necho bin/busybox\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var got [2][]byte
	for i := range got {
		path := filepath.Join(t.TempDir(), "a.tar")
		if err := run(busybox, path, ""); err != nil {
			t.Fatal(err)
		}
		var err error
		if got[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got[0], got[1]) {
		t.Error("two runs differ")
	}
}
