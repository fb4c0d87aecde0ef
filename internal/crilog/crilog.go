// Package crilog reads container logs in the format that CRI prescribes: a line is a time, the stream, a tag that says
// whether the line is whole, and the text.
package crilog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Options says which part of a log is wanted. The zero value is all of it.
type Options struct {
	// Tail is how many of the last lines to begin with; nil is all.
	Tail *int64
	// Since leaves out what is older.
	Since time.Time
	// Timestamps puts each line's time before it.
	Timestamps bool
	// LimitBytes ends the output after that many bytes; nil does not.
	LimitBytes *int64
	// Follow goes on for as long as it returns true, through rotations; nil ends with what is there.
	Follow func() bool
}

// poll is how often a followed file is looked at.
const poll = 100 * time.Millisecond

// maxLine is more than a runtime writes in one line.
const maxLine = 64 << 10

// Copy writes the log at path to stdout and stderr. It returns when the wanted part is written, the writers fail, or ctx ends.
func Copy(ctx context.Context, path string, opts Options, stdout, stderr io.Writer) error {
	file, err := os.Open(path) //nolint:gosec // the caller's path
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if opts.Tail != nil {
		if err := seekTail(file, *opts.Tail); err != nil {
			return fmt.Errorf("find the last %d lines of %s: %w", *opts.Tail, path, err)
		}
	}
	out := &output{opts: opts, stdout: stdout, stderr: stderr}
	lines := &lineReader{r: bufio.NewReaderSize(file, maxLine)}
	for {
		// What is asked before the read holds after it: a container that was over before has written all that it will, and so
		// has a file whose successor is there.
		more := opts.Follow != nil && opts.Follow()
		next, err := rotated(file, path)
		if err == nil {
			err = out.drain(lines)
		}
		switch {
		case errors.Is(err, errLimit):
			return nil
		case err != nil:
			return err
		case next != nil:
			_ = file.Close()
			file, lines = next, &lineReader{r: bufio.NewReaderSize(next, maxLine)}
			continue
		case !more:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(poll):
		}
	}
}

// rotated returns the file that has taken the place of file at path, nil if none has.
func rotated(file *os.File, path string) (*os.File, error) {
	was, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if is, err := os.Stat(path); err != nil || os.SameFile(was, is) {
		return nil, nil //nolint:nilerr // between the two steps of a rotation nothing is there
	}
	return os.Open(path) //nolint:gosec // the caller's path
}

// lineReader returns whole lines from a file that grows.
type lineReader struct {
	r       *bufio.Reader
	partial []byte
}

// next returns the next line without its end, or io.EOF if there is none yet.
func (l *lineReader) next() ([]byte, error) {
	chunk, err := l.r.ReadSlice('\n')
	if err == nil && len(l.partial) == 0 {
		return chunk[:len(chunk)-1], nil
	}
	l.partial = append(l.partial, chunk...)
	if err != nil && !(errors.Is(err, bufio.ErrBufferFull) && len(l.partial) >= maxLine) {
		return nil, io.EOF
	}
	line := bytes.TrimSuffix(l.partial, []byte{'\n'})
	l.partial = nil
	return line, nil
}

var errLimit = errors.New("limit reached")

type output struct {
	opts           Options
	stdout, stderr io.Writer
	written        int64
	buf            []byte
}

func (o *output) drain(lines *lineReader) error {
	for {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err := o.write(line); err != nil {
			return err
		}
	}
}

// write writes what one line of the log says. A line that is not in the format is passed on as it is.
func (o *output) write(line []byte) error {
	stamp, stream, partial, text := split(line)
	if !o.opts.Since.IsZero() && stamp != nil {
		if t, err := time.Parse(time.RFC3339Nano, string(stamp)); err == nil && t.Before(o.opts.Since) {
			return nil
		}
	}
	o.buf = o.buf[:0]
	if o.opts.Timestamps && stamp != nil {
		o.buf = append(append(o.buf, stamp...), ' ')
	}
	o.buf = append(o.buf, text...)
	if !partial {
		o.buf = append(o.buf, '\n')
	}
	if limit := o.opts.LimitBytes; limit != nil && o.written+int64(len(o.buf)) >= *limit {
		o.buf = o.buf[:*limit-o.written]
	}
	to := o.stdout
	if string(stream) == "stderr" {
		to = o.stderr
	}
	n, err := to.Write(o.buf)
	o.written += int64(n)
	if limit := o.opts.LimitBytes; err == nil && limit != nil && o.written >= *limit {
		return errLimit
	}
	return err
}

// split takes a line apart; stamp is nil if the line is not in CRI's format.
func split(line []byte) (stamp, stream []byte, partial bool, text []byte) {
	stamp, rest, ok1 := bytes.Cut(line, []byte{' '})
	stream, rest, ok2 := bytes.Cut(rest, []byte{' '})
	tags, text, ok3 := bytes.Cut(rest, []byte{' '})
	if !ok1 || !ok2 || !ok3 || string(stream) != "stdout" && string(stream) != "stderr" {
		return nil, nil, false, line
	}
	tag, _, _ := bytes.Cut(tags, []byte{':'})
	return stamp, stream, string(tag) == "P", text
}

// seekTail moves to the begin of the last n lines.
func seekTail(file *os.File, n int64) error {
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil || n <= 0 {
		return err
	}
	buf := make([]byte, 32<<10)
	seen := int64(-1) // the end of the last line begins no line
	for at := end; at > 0; {
		size := min(at, int64(len(buf)))
		at -= size
		if _, err := file.ReadAt(buf[:size], at); err != nil {
			return err
		}
		for i := size - 1; i >= 0; i-- {
			if buf[i] != '\n' {
				continue
			}
			if seen++; seen == n {
				_, err := file.Seek(at+i+1, io.SeekStart)
				return err
			}
		}
	}
	_, err = file.Seek(0, io.SeekStart)
	return err
}

// Last returns the text of the last lines in the raw end of a log: at most so many lines, and so many bytes. What comes before the first line's end in raw
// may be a part of a line; where raw is longer than a line can be, it is not told.
func Last(raw string, lines, limit int) string {
	all := strings.SplitAfter(raw, "\n")
	if len(raw) >= maxLine {
		all = all[1:]
	}
	if n := len(all); n > 0 && all[n-1] == "" {
		all = all[:n-1]
	}
	var b strings.Builder
	for _, line := range all[max(0, len(all)-lines):] {
		_, _, partial, text := split([]byte(strings.TrimSuffix(line, "\n")))
		b.Write(text)
		if !partial {
			b.WriteByte('\n')
		}
	}
	text := b.String()
	return text[max(0, len(text)-limit):]
}
