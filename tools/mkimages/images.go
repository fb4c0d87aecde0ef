package main

import (
	"fmt"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// image is one image of the set, named name:tag.
type image struct {
	name string
	v1.Image
}

// images makes the whole set that demos and tests run:
//
//	pause:1                      the sandbox
//	busybox:1, busybox:2         say which they are in /version, differ in their layers
//	entrypoint:1                 ENTRYPOINT [echo entrypoint], CMD [cmd]
//	user:app, :1000, :toor, :overflow    USER by name, by number, by another name of root, 2^32
func images(busybox string) ([]image, error) {
	arch := runtime.GOARCH
	pause, err := pauseELF(arch)
	if err != nil {
		return nil, err
	}
	base, err := busyboxFiles(busybox)
	if err != nil {
		return nil, err
	}
	version := func(v string) []file {
		return []file{{name: "version", data: []byte(v + "\n"), mode: 0o644}}
	}
	shell := v1.Config{Env: []string{"PATH=/bin:/sbin:/usr/bin:/usr/sbin"}, Cmd: []string{"sh"}}
	as := func(user string) v1.Config {
		c := shell
		c.User = user
		return c
	}
	entry := shell
	entry.Entrypoint, entry.Cmd = []string{"echo", "entrypoint"}, []string{"cmd"}

	var set []image
	for _, i := range []struct {
		name   string
		config v1.Config
		layers [][]file
	}{
		{"pause:1", v1.Config{Entrypoint: []string{"/pause"}}, [][]file{{{name: "pause", data: pause, mode: 0o755}}}},
		{"busybox:1", shell, [][]file{base, version("1")}},
		{"busybox:2", shell, [][]file{base, version("2")}},
		{"entrypoint:1", entry, [][]file{base}},
		{"user:app", as("app"), [][]file{base}},
		{"user:1000", as("1000"), [][]file{base}},
		{"user:toor", as("toor"), [][]file{base}},
		{"user:overflow", as("4294967296"), [][]file{base}},
	} {
		img, err := build(arch, i.config, i.layers)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", i.name, err)
		}
		set = append(set, image{i.name, img})
	}
	return set, nil
}

func build(arch string, config v1.Config, layers [][]file) (v1.Image, error) {
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.ConfigFile(img, &v1.ConfigFile{
		Architecture: arch, OS: "linux", Config: config,
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	for _, files := range layers {
		l, err := layer(files)
		if err != nil {
			return nil, err
		}
		if img, err = mutate.AppendLayers(img, l); err != nil {
			return nil, err
		}
	}
	return img, nil
}
