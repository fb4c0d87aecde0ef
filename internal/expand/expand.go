// Package expand puts the values of variables into commands and the environment, as Kubernetes writes them: $(NAME).
package expand

import "strings"

// String replaces each $(NAME) in s by what lookup knows of it and leaves it as it is where lookup knows nothing. $$ is a plain $, so that
// $$(NAME) is $(NAME). What was put in is not expanded again.
func String(s string, lookup func(name string) (string, bool)) string {
	if !strings.Contains(s, "$") {
		return s
	}
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(s, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		name, after, closed := strings.Cut(strings.TrimPrefix(rest, "("), ")")
		switch {
		case strings.HasPrefix(rest, "$"):
			out.WriteByte('$')
			s = rest[1:]
		case strings.HasPrefix(rest, "(") && closed:
			if value, ok := lookup(name); ok {
				out.WriteString(value)
			} else {
				out.WriteString("$(" + name + ")")
			}
			s = after
		default:
			out.WriteByte('$')
			s = rest
		}
	}
}
