package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path"
	"sort"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// file is one entry of a layer: a directory where the name ends in a slash, a
// symbolic link where link is set, else a regular file.
type file struct {
	name, link string
	data       []byte
	mode       int64
	uid        int
}

// layer makes an uncompressed layer whose bytes depend on nothing but files.
func layer(files []file) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{
			Name: f.name, Linkname: f.link, Mode: f.mode, Uid: f.uid, Gid: f.uid,
			Size: int64(len(f.data)), Typeflag: tar.TypeReg,
		}
		switch {
		case f.link != "":
			h.Typeflag = tar.TypeSymlink
		case strings.HasSuffix(f.name, "/"):
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("layer entry %s: %w", f.name, err)
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, fmt.Errorf("layer entry %s: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	return static.NewLayer(b.Bytes(), types.OCIUncompressedLayer), nil
}

// busyboxFiles lays out a small system around a static busybox: a link per
// applet, and users to test with: root, toor (another name of user 0), nobody, app.
func busyboxFiles(binary string) ([]file, error) {
	data, err := os.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("read busybox: %w", err)
	}
	list, err := exec.Command(binary, "--list-full").Output()
	if err != nil {
		return nil, fmt.Errorf("list the applets of %s: %w", binary, err)
	}
	files := []file{
		{name: "bin/", mode: 0o755}, {name: "sbin/", mode: 0o755},
		{name: "usr/", mode: 0o755}, {name: "usr/bin/", mode: 0o755}, {name: "usr/sbin/", mode: 0o755},
		{name: "etc/", mode: 0o755}, {name: "dev/", mode: 0o755}, {name: "proc/", mode: 0o555}, {name: "sys/", mode: 0o555},
		{name: "var/", mode: 0o755}, {name: "tmp/", mode: 0o1777}, {name: "root/", mode: 0o700},
		{name: "home/", mode: 0o755}, {name: "home/app/", mode: 0o755, uid: 1000},
		{name: "etc/passwd", mode: 0o644, data: []byte("root:x:0:0:root:/root:/bin/sh\n" +
			"toor:x:0:0:root:/root:/bin/sh\n" +
			"nobody:x:65534:65534:nobody:/:/bin/false\n" +
			"app:x:1000:1000:app:/home/app:/bin/sh\n")},
		{name: "etc/group", mode: 0o644, data: []byte("root:x:0:\nnogroup:x:65534:\napp:x:1000:\n")},
		{name: "bin/busybox", mode: 0o755, data: data},
	}
	applets := strings.Fields(string(list))
	sort.Strings(applets)
	for _, a := range applets {
		if path.Base(a) != "busybox" && strings.Contains(a, "bin/") {
			files = append(files, file{name: a, link: "/bin/busybox", mode: 0o777})
		}
	}
	return files, nil
}
