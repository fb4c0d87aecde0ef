// Command mkimages makes the container images that demos and tests run, from
// nothing but a static busybox: the same bytes each time, and no network.
//
//	mkimages -busybox FILE -archive FILE     an OCI archive for ctr images import
//	mkimages -busybox FILE -push HOST:PORT   into a registry over plain http
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// prefix makes the archive's names ones that no registry answers to.
const prefix = "podmill.test/"

func main() {
	busybox := flag.String("busybox", "", "the static busybox `file`")
	archive := flag.String("archive", "", "write an OCI archive to `file`")
	registry := flag.String("push", "", "push to the registry at `host:port`")
	flag.Parse()
	if err := run(*busybox, *archive, *registry); err != nil {
		fmt.Fprintln(os.Stderr, "mkimages:", err)
		os.Exit(1)
	}
}

func run(busybox, archive, registry string) error {
	set, err := images(busybox)
	if err != nil {
		return err
	}
	if archive != "" {
		if err := writeArchive(archive, set); err != nil {
			return fmt.Errorf("archive: %w", err)
		}
	}
	if registry != "" {
		return push(registry, set)
	}
	return nil
}

func push(registry string, set []image) error {
	for _, i := range set {
		tag, err := name.NewTag(registry+"/"+i.name, name.Insecure)
		if err != nil {
			return err
		}
		if err := remote.Write(tag, i); err != nil {
			return fmt.Errorf("push %s: %w", tag, err)
		}
	}
	return nil
}

// writeArchive replaces the file at path with an archive of the set.
func writeArchive(path string, set []image) error {
	dir, err := os.MkdirTemp("", "mkimages-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	for _, i := range set {
		ref := map[string]string{"io.containerd.image.name": prefix + i.name}
		if err := l.AppendImage(i, layout.WithAnnotations(ref)); err != nil {
			return fmt.Errorf("%s: %w", i.name, err)
		}
	}
	var b bytes.Buffer
	if err := tarDir(&b, dir); err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", b.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// tarDir writes the regular files below dir, in order of name and without dates.
func tarDir(w io.Writer, dir string) error {
	t := tar.NewWriter(w)
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		if err := t.WriteHeader(&tar.Header{Name: rel, Mode: 0o644, Size: int64(len(data))}); err != nil {
			return err
		}
		_, err = t.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	return t.Close()
}
