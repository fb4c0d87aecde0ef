package staticpod

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// place is where in a file something stands, and what is in it: the file's layout beside its values.
type place struct {
	line  int
	keys  map[string]*place
	items []*place
	twice []givenTwice
	size  int // of it and all in it, with aliases written out
}

// givenTwice is a key that a map has once more.
type givenTwice struct {
	key  string
	line int
}

// find returns the place of a field such as spec.containers[0].env[1] or data[a.b/c], or of the nearest thing around it that is there.
func (p *place) find(field string) *place {
	for field != "" {
		var step string
		if rest, ok := strings.CutPrefix(field, "["); ok {
			step, field, _ = strings.Cut(rest, "]")
		} else {
			end := strings.IndexAny(field, ".[")
			if end < 0 {
				end = len(field)
			}
			step, field = field[:end], field[end:]
		}
		field = strings.TrimPrefix(field, ".")
		next := p.keys[step]
		if i, err := strconv.Atoi(step); err == nil && next == nil && i >= 0 && i < len(p.items) {
			next = p.items[i]
		}
		if next == nil {
			return p
		}
		p = next
	}
	return p
}

// duplicates calls found for each key that is given twice. What aliases share is looked at once.
func (p *place) duplicates(found func(field string, line int)) {
	seen := map[*place]bool{}
	var walk func(p *place, field string)
	walk = func(p *place, field string) {
		if seen[p] {
			return
		}
		seen[p] = true
		for _, t := range p.twice {
			found(join(field, t.key), t.line)
		}
		for key, child := range p.keys {
			walk(child, join(field, key))
		}
		for i, child := range p.items {
			walk(child, fmt.Sprintf("%s[%d]", field, i))
		}
	}
	walk(p, "")
}

// join adds the name of a field to the path of what it is in, as the API does.
func join(path, name string) string {
	switch {
	case path == "":
		return name
	case strings.ContainsAny(name, "./"):
		return path + "[" + name + "]"
	default:
		return path + "." + name
	}
}

func (p *place) put(key string, value *place) {
	if p.keys == nil {
		p.keys = map[string]*place{}
	}
	if p.keys[key] != nil {
		p.twice = append(p.twice, givenTwice{key, value.line})
	}
	p.keys[key] = value
	p.size = grow(p.size, len(key)+value.size)
}

func (p *place) add(item *place) {
	p.items = append(p.items, item)
	p.size = grow(p.size, item.size)
}

// grow adds sizes, which need not be exact beyond the bound.
func grow(a, b int) int { return min(a+b+1, 2*maxBytes) }

// layout makes places of YAML's nodes. What an alias stands for is shared, so that many aliases of aliases cost nothing here.
type layout struct {
	first int // line of the file at which the document begins
	known map[*yaml.Node]*place
}

func (l *layout) of(n *yaml.Node, line int) (*place, error) {
	switch n.Kind {
	case yaml.AliasNode:
		target, ok := l.known[n.Alias]
		if !ok {
			return nil, fmt.Errorf("line %d: the alias *%s is part of what it stands for", n.Line, n.Value)
		}
		alias := *target
		alias.line, alias.twice = line, nil
		return &alias, nil
	case yaml.MappingNode:
		p := &place{line: line}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			value, err := l.of(n.Content[i+1], l.first+key.Line-1)
			if err != nil {
				return nil, err
			}
			if key.Tag == "!!merge" { // its fields have the line of what is around
				p.size = grow(p.size, value.size)
				continue
			}
			p.put(key.Value, value)
		}
		l.known[n] = p
		return p, nil
	case yaml.SequenceNode:
		p := &place{line: line}
		for _, item := range n.Content {
			child, err := l.of(item, l.first+item.Line-1)
			if err != nil {
				return nil, err
			}
			p.add(child)
		}
		l.known[n] = p
		return p, nil
	default:
		p := &place{line: line, size: len(n.Value)}
		l.known[n] = p
		return p, nil
	}
}

// jsonLayout makes places of JSON. The text is valid.
type jsonLayout struct {
	text []byte
	dec  *json.Decoder
	line int // at which the decoder is
	at   int // and how far lines are counted
}

func layoutOfJSON(text []byte, first int) (*place, error) {
	l := &jsonLayout{text: text, dec: json.NewDecoder(bytes.NewReader(text)), line: first}
	l.dec.UseNumber()
	return l.value(0)
}

// next returns the next token and its line.
func (l *jsonLayout) next() (json.Token, int, error) {
	token, err := l.dec.Token()
	if err != nil {
		return nil, 0, err
	}
	to := int(l.dec.InputOffset())
	l.line += bytes.Count(l.text[l.at:to], []byte{'\n'})
	l.at = to
	return token, l.line, nil
}

// value reads one value. A value in a map has the line of its key, which is not 0.
func (l *jsonLayout) value(line int) (*place, error) {
	token, at, err := l.next()
	if err != nil {
		return nil, err
	}
	p := &place{line: line}
	if line == 0 {
		p.line = at
	}
	switch token {
	case json.Delim('{'):
		for l.dec.More() {
			key, at, err := l.next()
			if err != nil {
				return nil, err
			}
			value, err := l.value(at)
			if err != nil {
				return nil, err
			}
			name, ok := key.(string)
			if !ok {
				return nil, errors.New("a key is no text")
			}
			p.put(name, value)
		}
		_, _, err = l.next()
	case json.Delim('['):
		for l.dec.More() {
			item, err := l.value(0)
			if err != nil {
				return nil, err
			}
			p.add(item)
		}
		_, _, err = l.next()
	}
	return p, err
}
