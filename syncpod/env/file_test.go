package env_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/syncpod/env"
)

func TestVariablesFromFiles(t *testing.T) {
	for name, tc := range map[string]struct{ file, want, wrong string }{
		"plain":                             {file: "KEY='value'", want: "value"},
		"nothing is expanded":               {file: `KEY='$(A) $HOME \n "x"'`, want: `$(A) $HOME \n "x"`},
		"several lines":                     {file: "KEY='a\n# b\nc'\n", want: "a\n# b\nc"},
		"comments, blanks, others":          {file: "# KEY='no'\n\n \t\n  OTHER='x' # y\n\tKEY='yes'  # z", want: "yes"},
		"Windows":                           {file: "OTHER='x'\r\nKEY='y'\r\n", want: "y"},
		"the first counts":                  {file: "KEY='1'\nKEY='2'", want: "1"},
		"what comes after is not looked at": {file: "KEY='1'\nbroken", want: "1"},
		"a name within another":             {file: "MY_KEY='1'\nKEY='2'", want: "2"},
		"a line in a value":                 {file: "OTHER='\nKEY='\nKEY='2'", want: "2"},

		"missing":                {file: "OTHER='x'", wrong: `there is no KEY in file "app.env" of volume "data"`},
		"empty":                  {file: "KEY=''", wrong: "there is no KEY"},
		"blank before the value": {file: "KEY= 'x'", wrong: "there is no KEY"},
		"no value":               {file: "KEY=", wrong: "line 1: the value has to be in single quotes"},
		"no quotes":              {file: "\nKEY=value", wrong: "line 2: the value has to be in single quotes"},
		"double quotes":          {file: `KEY="value"`, wrong: "line 1: the value has to be in single quotes"},
		"no =":                   {file: "OTHER='a\nb'\nexport", wrong: "line 3 has no ="},
		"no name":                {file: "='x'", wrong: "line 1 has no name"},
		"blank before =":         {file: "KEY ='x'", wrong: "line 1 has no name right before its ="},
		"not closed":             {file: "OTHER='1'\nKEY='secret\nsecret", wrong: "line 2: the quote is not closed"},
		"more behind":            {file: "KEY='secret'secret", wrong: "line 1: there is something behind the quote"},
		"a line without end":     {file: "KEY='" + strings.Repeat("x", 64<<10) + "'", wrong: "a line is longer than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, `{env: [{name: A, value: a}, {name: X, valueFrom: {fileKeyRef: {volumeName: data, path: app.env, key: KEY}}}]}`)
			in.File = func(volume, path string) ([]byte, error) {
				if volume != "data" || path != "app.env" {
					t.Errorf("asked for %s of %s", path, volume)
				}
				return []byte(tc.file), nil
			}
			vars, err := env.Resolve(in)
			if tc.wrong == "" {
				if err != nil || lines(vars) != "A=a\nX="+tc.want {
					t.Errorf("%q, %v", lines(vars), err)
				}
				return
			}
			var reason *podmill.ReasonError
			if !errors.As(err, &reason) || reason.Reason != "CreateContainerConfigError" || !strings.HasPrefix(reason.Message, "env X: fileKeyRef: ") || !strings.Contains(reason.Message, tc.wrong) {
				t.Errorf("%v, want %q", err, tc.wrong)
			} else if strings.Contains(reason.Message, "secret") {
				t.Errorf("the value is told: %v", err)
			}
		})
	}
}

// What is optional and missing is left out. What cannot be told is an error all the same.
func TestOptionalVariablesFromFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		err  error
		want string
	}{
		"no file": {err: podmill.ErrNotFound}, "no key": {file: "OTHER='x'"}, "empty": {file: "KEY=''"},
		"broken": {file: "KEY", want: "line 1 has no ="}, "unreadable": {err: errors.New("input/output error"), want: "input/output error"},
	} {
		calls := 0
		in := input(t, `{env: [{name: X, valueFrom: {fileKeyRef: {volumeName: data, path: a/b, key: KEY, optional: true}}},
			{name: Y, valueFrom: {fileKeyRef: {volumeName: data, path: a/b, key: OTHER2, optional: true}}}]}`)
		in.File = func(string, string) ([]byte, error) { calls++; return []byte(tc.file), tc.err }
		vars, err := env.Resolve(in)
		if got := fmt.Sprint(err); tc.want == "" && (err != nil || len(vars) > 0) || tc.want != "" && !strings.Contains(got, tc.want) {
			t.Errorf("%s: %v, %v", name, vars, err)
		}
		if calls != 1 {
			t.Errorf("%s: the file was read %d times", name, calls)
		}
	}
	in := input(t, `{env: [{name: X, valueFrom: {fileKeyRef: {volumeName: data, path: a, key: KEY, optional: true}}}]}`)
	if _, err := env.Resolve(in); err == nil {
		t.Error("nobody has files, and it is no error")
	}
}
