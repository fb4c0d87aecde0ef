package logs

import (
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	// timeFormat is the kubelet's, in names of logs that were rotated. It sorts by time.
	timeFormat = "20060102-150405"
	compressed = ".gz"
	unfinished = ".tmp"
)

// makeRoom brings the rotated logs of a container into order: at most keep of them stay, and all are compressed.
func makeRoom(dir *os.Root, log string, keep int) error {
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	remove, compress := tidy(names, log, keep)
	for _, name := range remove {
		if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, name := range compress {
		if err := zip(dir, name); err != nil {
			return err
		}
	}
	return nil
}

// tidy decides about the files that stand beside a log: which to remove and which to compress, so that the newest keep of the rotated ones
// stay. What is not a rotated log of this one is left alone.
func tidy(names []string, log string, keep int) (remove, compress []string) {
	var rotated []string // without .gz
	for _, name := range names {
		stamp, ok := strings.CutPrefix(name, log+".")
		stamp, half := strings.CutSuffix(stamp, unfinished)
		stamp, zipped := strings.CutSuffix(stamp, compressed)
		if _, err := time.Parse(timeFormat, stamp); !ok || err != nil {
			continue
		}
		switch plain := log + "." + stamp; {
		case half:
			remove = append(remove, name)
		case !zipped && slices.Contains(names, plain+compressed):
			remove = append(remove, name) // it was compressed, and not removed any more
		default:
			rotated = append(rotated, name)
		}
	}
	slices.Sort(rotated)
	excess := max(0, len(rotated)-keep)
	remove = append(remove, rotated[:excess]...)
	for _, name := range rotated[excess:] {
		if !strings.HasSuffix(name, compressed) {
			compress = append(compress, name)
		}
	}
	return remove, compress
}

// zip compresses a file and removes it. Its compressed form gets its name only when it is complete.
func zip(dir *os.Root, name string) error {
	in, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	half := name + compressed + unfinished
	out, err := dir.OpenFile(half, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	w := gzip.NewWriter(out)
	_, err = io.Copy(w, in)
	if err = errors.Join(err, w.Close(), out.Close()); err != nil {
		return errors.Join(err, dir.Remove(half))
	}
	if err := dir.Rename(half, name+compressed); err != nil {
		return err
	}
	return dir.Remove(name)
}
