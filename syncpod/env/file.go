package env

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// maxLine is how long a line of an env file may be, in bytes. It is the kubelet's.
const maxLine = 64 << 10

// addFileKey adds a variable that stands in a file of a volume (KEP-3721). As in the kubelet, one that is empty there counts as missing.
func (r *resolver) addFileKey(variable string, ref *corev1.FileKeySelector) error {
	file, err := r.object("file", ref.VolumeName+"/"+ref.Path)
	if err != nil {
		return fmt.Errorf("fileKeyRef: %w", err)
	}
	if !file.found {
		return missing(ref.Optional, "fileKeyRef: file %q of volume %q not found", ref.Path, ref.VolumeName)
	}
	value, err := lookUp(file.text, ref.Key)
	if err != nil {
		return fmt.Errorf("fileKeyRef: file %q of volume %q: %w", ref.Path, ref.VolumeName, err)
	}
	if value == "" {
		return missing(ref.Optional, "fileKeyRef: there is no %s in file %q of volume %q", ref.Key, ref.Path, ref.VolumeName)
	}
	r.set(variable, value)
	return nil
}

// lookUp returns a variable of an env file, empty if there is none. The syntax is the part of a shell's that needs no shell:
//
//	# a comment
//	NAME='a value, as it stands: $HOME is no variable and \n no new line' # a comment
//	MORE='it may go on
//	in the next line'
//	NONE= 'to a shell this is an empty value'
//
// The first of a name counts, and what comes after it is not looked at. An error says in which line it is, and nothing of what is there.
func lookUp(file []byte, key string) (string, error) {
	lines := bufio.NewScanner(bytes.NewReader(file))
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimLeft(lines.Text(), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		name, rest, assigned := strings.Cut(line, "=")
		switch {
		case !assigned:
			return "", fmt.Errorf("line %d has no =", n)
		case name == "" || strings.TrimRight(name, " \t") != name:
			return "", fmt.Errorf("line %d has no name right before its =", n)
		}
		value := ""
		if rest == "" || rest[0] != ' ' && rest[0] != '\t' {
			more, err := unquote(lines, rest, &value)
			if err != nil {
				return "", fmt.Errorf("line %d: %w", n, err)
			}
			n += more
		}
		if name == key {
			return value, nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("a line is longer than %d bytes", maxLine)
	}
	return "", nil
}

// unquote reads a value in single quotes, which begins in rest and may go on in more lines, and returns how many.
func unquote(lines *bufio.Scanner, rest string, value *string) (more int, err error) {
	rest, quoted := strings.CutPrefix(rest, "'")
	if !quoted {
		return 0, errors.New("the value has to be in single quotes")
	}
	var text strings.Builder
	for {
		part, after, closed := strings.Cut(rest, "'")
		text.WriteString(part)
		if closed {
			*value = text.String()
			if after = strings.TrimLeft(after, " \t"); after != "" && after[0] != '#' {
				return more, errors.New("there is something behind the quote that ends the value")
			}
			return more, nil
		}
		text.WriteByte('\n')
		if !lines.Scan() {
			return more, errors.New("the quote is not closed")
		}
		more++
		rest = lines.Text()
	}
}
