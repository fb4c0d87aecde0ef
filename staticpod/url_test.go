package staticpod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

// server is a transport that answers as a test says, in virtual time. The lock is also that of what the test and the answer share.
type server struct {
	sync.Mutex
	silent   bool // it never answers
	answer   func(*http.Request) (*http.Response, error)
	requests []*http.Request
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.silent {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	s.Lock()
	defer s.Unlock()
	s.requests = append(s.requests, r)
	return s.answer(r)
}

func says(status int, body string, headers ...string) (*http.Response, error) {
	r := &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r, nil
}

// follow runs a URL in virtual time. A step changes what the server has, lets time pass, and returns what was delivered and told meanwhile.
func follow(t *testing.T, s *server, opts ...Option) (step func(change func(), d time.Duration) (images []string, told []string)) {
	t.Helper()
	var mu sync.Mutex
	var images, told []string
	u := NewURL("https://user:secret@example.com/pods?token=hunter2", "node1", append([]Option{WithTransport(s), WithObserver(Observer{
		Problem: func(p Problem) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, p.String())
		},
	})}, opts...)...)
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := u.Run(ctx, func(update podmill.PodUpdate) {
			image := []string{}
			for _, pod := range update.Pods {
				image = append(image, pod.Spec.Containers[0].Image)
			}
			mu.Lock()
			defer mu.Unlock()
			images = append(images, update.Op.String()+" "+strings.Join(image, ","))
		}); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); ended.Wait() })
	return func(change func(), d time.Duration) ([]string, []string) {
		s.Lock()
		change()
		s.Unlock()
		time.Sleep(d)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		gotImages, gotTold := images, told
		images, told = nil, nil
		return gotImages, gotTold
	}
}

// TestURL goes through a server's life: what is usable is delivered, once; errors and what is not usable leave it; they are told of once.
func TestURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status, body, failure := http.StatusServiceUnavailable, "", error(nil)
		s := &server{answer: func(*http.Request) (*http.Response, error) {
			if failure != nil {
				return nil, failure
			}
			return says(status, body)
		}}
		step := follow(t, s)
		gives := func(text string) func() { return func() { status, body, failure = http.StatusOK, text, nil } }
		const url, cure = "https://example.com/pods", " (what it held goes on until it can be read)"
		for _, c := range []struct {
			name   string
			change func()
			wait   time.Duration
			images []string
			told   []string
		}{
			{"an error at first is no empty set", func() {}, 0, nil, []string{url + ": cannot be read: the server answers 503 Service Unavailable" + cure}},
			{"the same error again", func() {}, 10 * time.Minute, nil, nil},
			{"nor is what is not usable", gives("x"), 2 * time.Minute, nil, []string{url + ":1: is no object (begin with apiVersion: v1 and kind: Pod)"}},
			{"the first manifest", gives(manifest("web", "v1")), time.Minute, []string{"SET v1"}, nil},
			{"the same again", func() {}, time.Hour, nil, nil},
			{"another", gives(manifest("web", "v2")), time.Minute, []string{"SET v2"}, nil},
			{"a mistake", gives(manifest("web", "v2") + "x"), time.Minute, nil, []string{url + ":9: could not find expected ':'"}},
			{"nothing at all", gives(""), 5 * time.Minute, nil, []string{url + ": is empty" + cure}},
			{"no network", func() { failure = errors.New("no route to host") }, time.Hour, nil, []string{url + ": cannot be read: no route to host" + cure}},
			{"the same after all", gives(manifest("web", "v2")), 2 * time.Minute, nil, nil},
			{"an empty list", gives("apiVersion: v1\nkind: List\n"), time.Minute, []string{"SET "}, nil},
		} {
			images, told := step(c.change, c.wait)
			if diff := cmp.Diff([][]string{c.images, c.told}, [][]string{images, told}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.name, diff)
			}
		}
	})
}

// TestPace shows how often a server is asked: with the period, and after errors after a second, then ever more rarely.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failure error
		s := &server{answer: func(*http.Request) (*http.Response, error) {
			if failure != nil {
				return nil, failure
			}
			return says(http.StatusOK, web)
		}}
		step := follow(t, s)
		asked := func(change func(), d time.Duration) int {
			before := 0
			step(func() { before = len(s.requests); change() }, d)
			s.Lock()
			defer s.Unlock()
			return len(s.requests) - before
		}
		if n := asked(func() {}, 10*time.Minute); n < 27 || n > 34 {
			t.Errorf("%d requests in 10 minutes", n)
		}
		if n := asked(func() { failure = errors.New("down") }, 30*time.Second); n < 4 || n > 6 {
			t.Errorf("%d requests in the first half minute without a server", n)
		}
		if n := asked(func() {}, time.Hour); n < 54 || n > 70 {
			t.Errorf("%d requests in the next hour", n)
		}
		asked(func() { failure = nil }, time.Minute+6*time.Second)
		if n := asked(func() {}, time.Minute); n < 2 || n > 4 {
			t.Errorf("%d requests in a minute after it has come back", n)
		}
	})
}

// TestConditions shows that a server is told what is known, also after errors and what was not usable, and is given the headers that it needs.
func TestConditions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		headers := http.Header{"Metadata-Flavor": {"a", "b"}}
		answers := []func(*http.Request) (*http.Response, error){
			func(*http.Request) (*http.Response, error) {
				return says(200, web, "ETag", `"1"`, "Last-Modified", "yesterday")
			},
			func(*http.Request) (*http.Response, error) { return says(500, "") },
			func(*http.Request) (*http.Response, error) { return says(304, "") },
			func(*http.Request) (*http.Response, error) { return says(200, "x", "ETag", `"2"`) },
			func(*http.Request) (*http.Response, error) { return says(304, "") },
		}
		s := &server{}
		s.answer = func(r *http.Request) (*http.Response, error) {
			return answers[min(len(s.requests), len(answers))-1](r)
		}
		step := follow(t, s, WithHeaders(headers))
		headers.Set("Metadata-Flavor", "changed later")
		images, told := step(func() {}, 5*time.Minute)
		if diff := cmp.Diff([]string{"SET web:1"}, images); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		if len(told) != 2 || !strings.Contains(told[0], "500") || !strings.Contains(told[1], "is no object") {
			t.Errorf("told %q", told)
		}
		s.Lock()
		defer s.Unlock()
		for i, want := range [][2]string{{"", ""}, {`"1"`, "yesterday"}, {`"1"`, "yesterday"}, {`"1"`, "yesterday"}, {`"2"`, ""}} {
			h := s.requests[i].Header
			if got := [2]string{h.Get("If-None-Match"), h.Get("If-Modified-Since")}; got != want {
				t.Errorf("request %d says %q, want %q", i, got, want)
			}
			if diff := cmp.Diff([]string{"a", "b"}, h.Values("Metadata-Flavor")); diff != "" {
				t.Errorf("request %d (-want +got):\n%s", i, diff)
			}
		}
	})
}

// TestURLIdentity shows that another password or token makes no other pods.
func TestURLIdentity(t *testing.T) {
	uid := func(address string) string {
		u := NewURL(address, "node1")
		return string(uidOf(t, u.origin, "x", web))
	}
	if a, b := uid("https://a:b@example.com/pods?token=1"), uid("https://c@example.com/pods?token=2"); a != b {
		t.Errorf("%s and %s", a, b)
	}
	if a, b := uid("https://example.com/pods"), uid("https://example.com/others"); a == b {
		t.Errorf("two URLs have the pod %s", a)
	}
}

// TestFetch shows, with a server that is real, what is not followed, not read to its end and not told to anybody.
func TestFetch(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other host was asked") }))
	defer other.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("/good", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, web) })
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/good", http.StatusFound) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) })
	mux.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/round", http.StatusFound) })
	mux.HandleFunc("/huge", func(w http.ResponseWriter, _ *http.Request) {
		for range maxBytes>>20 + 1 {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/torn", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, web)
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for path, want := range map[string]string{
		"/good": "", "/moved": "",
		"/away":  "cannot be read: the server sends to another host, " + other.URL + ", which is not followed",
		"/round": "cannot be read: the server sends elsewhere too often",
		"/huge":  "is larger than 10 MiB",
		"/torn":  "cannot be read to its end: unexpected EOF",
		"/none":  "cannot be read: the server answers 404 Not Found",
	} {
		f := NewURL(strings.Replace(s.URL, "http://", "http://user:hunter2@", 1)+path, "node1", WithTransport(transport)).fetcher
		data, err := f.fetch(t.Context())
		got := ""
		if err != nil {
			got = err.Error()
		} else if string(data) != web {
			t.Errorf("%s: got %q", path, data)
		}
		if got != want {
			t.Errorf("%s: got error %q, want %q", path, got, want)
		}
	}
	for _, address := range []string{"http://user:hunter2@127.0.0.1:1/", "hunter2://x", "http://a b\x7f:hunter2@x"} {
		f := NewURL(address, "node1", WithTransport(transport)).fetcher
		if _, err := f.fetch(t.Context()); err == nil || strings.Contains(err.Error(), ":hunter2@") {
			t.Errorf("%s: got %v", address, err)
		}
	}
}

// TestSilentServer shows that a server that never answers is given up, and that the end does not wait for it.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := follow(t, &server{silent: true})
		if _, told := step(func() {}, requestTimeout+time.Second); len(told) != 1 || !strings.Contains(told[0], "deadline exceeded") {
			t.Errorf("told %q", told)
		}
	})
}

// TestURLIsASource runs the conformance kit, with a server on loopback.
func TestURLIsASource(t *testing.T) {
	podmilltest.PodSourceTest(t, func(t *testing.T) podmilltest.PodSourceEnv {
		var mu sync.Mutex
		list := &corev1.PodList{}
		list.APIVersion, list.Kind = "v1", "PodList"
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			text, err := yaml.Marshal(list)
			if err != nil {
				t.Error(err)
			}
			_, _ = w.Write(text)
		}))
		transport := &http.Transport{}
		t.Cleanup(func() { s.Close(); transport.CloseIdleConnections() })
		change := func(pod *corev1.Pod, add bool) {
			mu.Lock()
			defer mu.Unlock()
			var items []corev1.Pod
			for _, item := range list.Items {
				if item.Name != pod.Name {
					items = append(items, item)
				}
			}
			if add {
				pod = pod.DeepCopy()
				pod.UID = ""
				items = append(items, *pod)
			}
			list.Items = items
		}
		return podmilltest.PodSourceEnv{
			Source: NewURL(s.URL, "node1", WithTransport(transport), WithPeriod(10*time.Millisecond)),
			Put:    func(_ *testing.T, pod *corev1.Pod) { change(pod, true) },
			Remove: func(_ *testing.T, pod *corev1.Pod) { change(pod, false) },
		}
	})
}
