package apiserver

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// A token in a file is used anew when it is replaced, as one is whose life is short: no later than a minute after.
func TestATokenFileIsReplaced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var token string
		s.fault = func(r *http.Request) (*http.Response, error) {
			token = r.Header.Get("Authorization")
			return respond(http.StatusNotFound, map[string]string{"kind": "Status", "apiVersion": "v1", "reason": "NotFound"}), nil
		}
		client, err := NewClient(&rest.Config{Host: "http://server", Transport: s, BearerTokenFile: file, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, "n")
		if err != nil {
			t.Fatal(err)
		}
		nodes := NewNodes(client)
		ask := func(want string) {
			t.Helper()
			_, _ = nodes.Node(t.Context())
			if token != "Bearer "+want {
				t.Errorf("the server is told %q, want %s", token, want)
			}
		}
		ask("first")
		write("second")
		time.Sleep(time.Minute)
		ask("second")
	})
}
