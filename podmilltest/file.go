package podmilltest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// openLog opens the container's log where the directory for it exists.
func (c *container) openLog() {
	if c.seen.LogPath == "" {
		return
	}
	f, err := os.OpenFile(c.seen.LogPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err == nil {
		c.log = f
	}
}

// write writes to the container's log, in the format of CRI.
func (c *container) write(stream, text string) {
	if c.log == nil {
		return
	}
	now := time.Now().Format(time.RFC3339Nano)
	for line := range strings.Lines(text) {
		tag := "P"
		if rest, full := strings.CutSuffix(line, "\n"); full {
			line, tag = rest, "F"
		}
		fmt.Fprintf(c.log, "%s %s %s %s\n", now, stream, tag, line)
	}
}

// readFile reads a file of the container: of what is mounted into it, of what it wrote or its sandbox gave it, else of its image.
func (c *container) readFile(name string) (string, error) {
	if host, _, ok := c.hostPath(name); ok {
		data, err := os.ReadFile(host)
		return string(data), cause(err)
	}
	for _, files := range []map[string]string{c.files, c.sandbox.files(), c.image.Files} {
		if text, ok := files[name]; ok {
			return text, nil
		}
	}
	return "", fs.ErrNotExist
}

// files are what a runtime makes for the containers of a sandbox.
func (s *sandbox) files() map[string]string {
	files := map[string]string{"/etc/hostname": s.spec.Hostname + "\n"}
	if dns := s.spec.DNS; dns != nil {
		var b strings.Builder
		if len(dns.Searches) > 0 {
			fmt.Fprintf(&b, "search %s\n", strings.Join(dns.Searches, " "))
		}
		for _, server := range dns.Servers {
			fmt.Fprintf(&b, "nameserver %s\n", server)
		}
		if len(dns.Options) > 0 {
			fmt.Fprintf(&b, "options %s\n", strings.Join(dns.Options, " "))
		}
		files["/etc/resolv.conf"] = b.String()
	}
	return files
}

// writeFile writes a file: on the host below a mount, else in the container's own memory.
func (c *container) writeFile(name, text string, add bool) error {
	host, readOnly, ok := c.hostPath(name)
	if readOnly {
		return errors.New("read-only file system")
	}
	if !ok {
		if add {
			text = c.files[name] + text
		}
		c.files[name] = text
		return nil
	}
	flag := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if add {
		flag = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	}
	f, err := os.OpenFile(host, flag, 0o644)
	if err != nil {
		return cause(err)
	}
	defer func() { _ = f.Close() }()
	_, err = f.WriteString(text)
	return cause(err)
}

// hostPath finds the path on the host of a file below one of the container's mounts. The longest mount wins.
func (c *container) hostPath(name string) (host string, readOnly, ok bool) {
	longest := ""
	for _, m := range c.spec.Mounts {
		rel, err := filepath.Rel(m.ContainerPath, name)
		if err == nil && filepath.IsLocal(rel) && m.HostPath != "" && len(m.ContainerPath) > len(longest) {
			longest, host, readOnly, ok = m.ContainerPath, filepath.Join(m.HostPath, rel), m.ReadOnly, true
		}
	}
	return host, readOnly, ok
}

// cause is an error without the path on the host, which a container does not see.
func cause(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
