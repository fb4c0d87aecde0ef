package podmilltest

import (
	"errors"
	"strings"
)

const blank = " \t\n;&|>"

// scanWord reads the word that s begins with, and its length in s. Quotes work as in the shell; what a variable holds is
// never split.
func scanWord(s string) (w word, n int, err error) {
	var b builder
	quoted := byte(0)
	for n < len(s) {
		switch ch := s[n]; {
		case quoted == 0 && strings.IndexByte(blank, ch) >= 0:
			return b.done(), n, nil
		case ch == quoted:
			quoted = 0
			n++
		case quoted == 0 && (ch == '\'' || ch == '"'):
			quoted = ch
			n++
		case quoted == '\'':
			b.literal.WriteByte(ch)
			n++
		default:
			size := b.unquoted(s[n:])
			if size == 0 {
				return nil, 0, errors.New("this $ is not understood: " + s[n:])
			}
			n += size
		}
	}
	if quoted != 0 {
		return nil, 0, errors.New("unterminated quoted string")
	}
	return b.done(), n, nil
}

// builder makes a word, piece by piece.
type builder struct {
	word    word
	literal strings.Builder
}

// unquoted adds what s begins with outside of single quotes, and returns its length in s, 0 if it is not understood.
func (b *builder) unquoted(s string) int {
	if s[0] == '\\' && len(s) > 1 {
		b.literal.WriteByte(s[1])
		return 2
	}
	if s[0] != '$' {
		b.literal.WriteByte(s[0])
		return 1
	}
	name, size := variable(s)
	if size > 0 {
		b.flush()
		b.word = append(b.word, piece{text: name, variable: true})
	}
	return size
}

func (b *builder) flush() {
	if b.literal.Len() > 0 {
		b.word = append(b.word, piece{text: b.literal.String()})
		b.literal.Reset()
	}
}

// done returns the word. An empty one, between two quotes, is there all the same.
func (b *builder) done() word {
	if b.flush(); b.word == nil {
		return word{{}}
	}
	return b.word
}

// variable reads $NAME, ${NAME}, $1, $? or $@, and returns the name and its length in s.
func variable(s string) (name string, size int) {
	if strings.HasPrefix(s, "${") {
		end := strings.IndexByte(s, '}')
		if end < 3 {
			return "", 0
		}
		return s[2:end], end + 1
	}
	if len(s) > 1 && strings.IndexByte("?@!0123456789", s[1]) >= 0 {
		return s[1:2], 2
	}
	n := 1
	for n < len(s) && (s[n] == '_' || s[n] >= 'A' && s[n] <= 'Z' || s[n] >= 'a' && s[n] <= 'z' || n > 1 && s[n] >= '0' && s[n] <= '9') {
		n++
	}
	if n == 1 {
		return "", 0
	}
	return s[1:n], n
}
