package podmilltest

import (
	"errors"
	"strings"
)

const blank = " \t\n;&|>"

// scanWord reads the word that s begins with, and its length in s. Quotes work as in the shell; what a variable holds is
// never split.
func scanWord(s string) (w word, n int, err error) {
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			w = append(w, piece{text: literal.String()})
			literal.Reset()
		}
	}
	quoted := byte(0)
	for n < len(s) {
		ch := s[n]
		switch {
		case quoted == 0 && strings.IndexByte(blank, ch) >= 0:
			flush()
			return whole(w), n, nil
		case ch == quoted:
			quoted = 0
			n++
		case quoted == 0 && (ch == '\'' || ch == '"'):
			quoted = ch
			n++
		case quoted != '\'' && ch == '\\' && n+1 < len(s):
			literal.WriteByte(s[n+1])
			n += 2
		case quoted != '\'' && ch == '$':
			name, size := variable(s[n:])
			if size == 0 {
				return nil, 0, errors.New("this $ is not understood: " + s[n:])
			}
			flush()
			w = append(w, piece{text: name, variable: true})
			n += size
		default:
			literal.WriteByte(ch)
			n++
		}
	}
	if quoted != 0 {
		return nil, 0, errors.New("unterminated quoted string")
	}
	flush()
	return whole(w), n, nil
}

// whole makes an empty word, such as ”, one that is there.
func whole(w word) word {
	if w == nil {
		return word{{}}
	}
	return w
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
