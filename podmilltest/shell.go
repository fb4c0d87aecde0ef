package podmilltest

import (
	"fmt"
	"strings"
)

// The in-memory runtime runs a small piece of the shell, so that one pod behaves alike here and on a real runtime with a busybox
// image. This file turns a script into instructions; process.go runs them.

// instruction is one step of a script: a command or, where words is nil, a jump.
type instruction struct {
	words      []word
	redirect   *redirect
	background bool
	jump       jump
	to         int
}

type jump uint8

const (
	always jump = iota + 1
	ifFailed
	ifOK
)

// redirect is a command's output that goes elsewhere: to a file or, where to is nil, to standard error.
type redirect struct {
	to     word
	append bool
}

// word is a sequence of literal pieces and variables.
type word []piece

type piece struct {
	text     string
	variable bool
}

// token is a word, or an operator where op is set.
type token struct {
	word word
	op   string
}

// is reports that the token is the unquoted keyword or operator s.
func (t token) is(s string) bool {
	if t.op != "" {
		return t.op == s
	}
	return len(t.word) == 1 && !t.word[0].variable && t.word[0].text == s
}

// compile turns a script into instructions.
func compile(script string) ([]instruction, error) {
	tokens, err := scan(script)
	if err != nil {
		return nil, fmt.Errorf("sh: %w", err)
	}
	c := &compiler{tokens: tokens}
	if err := c.list(""); err != nil {
		return nil, fmt.Errorf("sh: %w", err)
	}
	return c.code, nil
}

type compiler struct {
	tokens []token
	code   []instruction
}

func (c *compiler) emit(i instruction) int {
	c.code = append(c.code, i)
	return len(c.code) - 1
}

// take removes the next token if it is s.
func (c *compiler) take(s string) bool {
	if len(c.tokens) == 0 || !c.tokens[0].is(s) {
		return false
	}
	c.tokens = c.tokens[1:]
	return true
}

// list compiles commands up to the keyword end, or up to the end of the script where end is empty.
func (c *compiler) list(end string) error {
	for {
		for c.take(";") || c.take("\n") {
		}
		if len(c.tokens) == 0 && end == "" || end != "" && c.take(end) {
			return nil
		}
		if len(c.tokens) == 0 {
			return fmt.Errorf("missing %q", end)
		}
		if err := c.andOr(); err != nil {
			return err
		}
	}
}

// andOr compiles commands that are joined by && and ||.
func (c *compiler) andOr() error {
	if err := c.command(); err != nil {
		return err
	}
	for {
		skip := ifFailed
		if !c.take("&&") {
			if !c.take("||") {
				return nil
			}
			skip = ifOK
		}
		at := c.emit(instruction{jump: skip})
		if err := c.command(); err != nil {
			return err
		}
		c.code[at].to = len(c.code)
	}
}

func (c *compiler) command() error {
	if !c.take("while") {
		return c.simple()
	}
	top := len(c.code)
	if err := c.list("do"); err != nil {
		return err
	}
	out := c.emit(instruction{jump: ifFailed})
	if err := c.list("done"); err != nil {
		return err
	}
	c.emit(instruction{jump: always, to: top})
	c.code[out].to = len(c.code)
	return nil
}

func (c *compiler) simple() error {
	var i instruction
	for len(c.tokens) > 0 {
		t := c.tokens[0]
		if t.op == "&" {
			c.tokens, i.background = c.tokens[1:], true
			break
		}
		if t.op == ">&2" {
			c.tokens, i.redirect = c.tokens[1:], &redirect{}
			continue
		}
		if t.op == ">" || t.op == ">>" {
			if len(c.tokens) < 2 || c.tokens[1].op != "" {
				return fmt.Errorf("%s without a file", t.op)
			}
			i.redirect = &redirect{to: c.tokens[1].word, append: t.op == ">>"}
			c.tokens = c.tokens[2:]
			continue
		}
		if t.op != "" {
			break
		}
		c.tokens, i.words = c.tokens[1:], append(i.words, t.word)
	}
	if len(i.words) == 0 {
		return fmt.Errorf("syntax error")
	}
	c.emit(i)
	return nil
}

// scan cuts a script into tokens.
func scan(script string) ([]token, error) {
	var tokens []token
	for rest := script; rest != ""; {
		switch rest[0] {
		case ' ', '\t':
			rest = rest[1:]
		case '#':
			if end := strings.IndexByte(rest, '\n'); end >= 0 {
				rest = rest[end:]
			} else {
				rest = ""
			}
		default:
			if op := operator(rest); op != "" {
				tokens, rest = append(tokens, token{op: op}), rest[len(op):]
				continue
			}
			w, n, err := scanWord(rest)
			if err != nil {
				return nil, err
			}
			if n == 0 {
				return nil, fmt.Errorf("this is not understood: %s", rest)
			}
			tokens, rest = append(tokens, token{word: w}), rest[n:]
		}
	}
	return tokens, nil
}

func operator(s string) string {
	for _, op := range []string{">&2", "&&", "||", ">>", ";", "\n", "&", ">"} {
		if strings.HasPrefix(s, op) {
			return op
		}
	}
	return ""
}
