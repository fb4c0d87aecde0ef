package staticpod

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/yaml"
)

// document is one document of a file: its value and its layout.
type document struct {
	value map[string]any // numbers are json.Number
	place *place
}

// syntaxError is what keeps a document from being read.
type syntaxError struct {
	line    int
	message string
	cure    string
}

// chunk is the text of one document, and the line at which it begins.
type chunk struct {
	text []byte
	line int
}

// split cuts a file at the lines that begin a document, which stay with it, or end one.
func split(data []byte) (chunks []chunk) {
	begin, line, first, directives := 0, 1, 1, false
	cut := func(at, nextLine int) {
		if at > begin {
			chunks = append(chunks, chunk{data[begin:at], first})
		}
		begin, first = at, nextLine
	}
	for at := 0; at < len(data); line++ {
		next := len(data)
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			next = at + i + 1
		}
		switch text := data[at:next]; {
		case isMarker(text, "---"):
			if !directives { // those belong to the document that follows
				cut(at, line)
			}
			directives = false
		case isMarker(text, "..."):
			cut(at, line)
			begin, first = next, line+1
		case at == begin:
			directives = text[0] == '%'
		}
		at = next
	}
	cut(len(data), line)
	return chunks
}

func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n"))
}

// parse reads a document. It returns nil if there is nothing in it.
func (c chunk) parse() (*document, *syntaxError) {
	if isJSON := bytes.HasPrefix(bytes.TrimSpace(c.text), []byte("{")) && json.Valid(c.text); isJSON {
		place, err := layoutOfJSON(c.text, c.line)
		if err != nil {
			return nil, &syntaxError{line: c.line, message: err.Error()}
		}
		return c.document(c.text, place)
	}
	var root yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(c.text))
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, c.syntax(err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, &syntaxError{line: c.line, message: "there is something behind the document", cure: "put --- between documents"}
	}
	node := root.Content[0]
	layout := layout{first: c.line, known: map[*yaml.Node]*place{}}
	place, err := layout.of(node, c.line+node.Line-1)
	if err != nil {
		return nil, c.syntax(err)
	}
	if place.size > maxBytes {
		return nil, &syntaxError{line: c.line, message: fmt.Sprintf("its aliases make it larger than %d MiB", maxBytes>>20)}
	}
	// The nodes are of YAML 1.2, whereas Kubernetes reads 1.1, in which yes is true and 0644 octal: the values come from its own reader.
	data, err := kyaml.YAMLToJSON(c.text)
	if err != nil {
		return nil, c.syntax(err)
	}
	return c.document(data, place)
}

func (c chunk) document(data []byte, place *place) (*document, *syntaxError) {
	d := &document{place: place}
	if bytes.Equal(data, []byte("null")) {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&d.value); err != nil {
		return nil, &syntaxError{line: place.line, message: "is no object", cure: "begin with apiVersion: v1 and kind: Pod"}
	}
	return d, nil
}

// syntax takes the line out of what a YAML reader says.
func (c chunk) syntax(err error) *syntaxError {
	e := &syntaxError{line: c.line, message: err.Error()}
	for _, prefix := range []string{"error converting YAML to JSON: ", "yaml: "} {
		e.message = strings.TrimPrefix(e.message, prefix)
	}
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(e.message); m != nil {
		n, _ := strconv.Atoi(m[1])
		e.line, e.message = c.line+n-1, strings.TrimPrefix(e.message, m[0])
	}
	switch {
	case strings.Contains(e.message, "tab character"):
		e.cure = "indent with spaces"
	case strings.Contains(e.message, "cannot start any token"):
		e.cure = "put texts that begin with @, ` or % in quotes, and indent with spaces"
	case strings.Contains(e.message, "mapping values are not allowed"):
		e.cure = "look at the indentation, and put texts with a colon in quotes"
	case strings.Contains(e.message, "control characters"), strings.Contains(e.message, "invalid UTF-8"), strings.Contains(e.message, "incomplete UTF"):
		e.cure = "a manifest is text in UTF-8"
	}
	return e
}
