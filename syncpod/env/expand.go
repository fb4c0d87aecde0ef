package env

import "github.com/podmill/podmill/internal/expand"

// Expand replaces each $(NAME) in s by what lookup knows of it and leaves it as it is where lookup knows nothing. $$ is a plain $, so that
// $$(NAME) is $(NAME). What was put in is not expanded again.
func Expand(s string, lookup func(name string) (string, bool)) string {
	return expand.String(s, lookup)
}

func expandAll(list []string, lookup func(string) (string, bool)) []string {
	if len(list) == 0 {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = Expand(s, lookup)
	}
	return out
}
