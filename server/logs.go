package server

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/crilog"
)

func (s *server) logs(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	opts, err := logOptions(query, time.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	path, running, err := s.backend.Log(r.Context(), r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"), isTrue(query.Get("previous")))
	switch {
	case errors.Is(err, podmill.ErrNotFound):
		fail(w, err)
		return
	case err != nil: // an API server passes on what a bad request is about, and of other answers only the code
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if isTrue(query.Get("follow")) {
		opts.Follow = running
	}
	w.Header().Set("Content-Type", "text/plain")
	out := flushed{w, http.NewResponseController(w)}
	if err := crilog.Copy(r.Context(), path, opts, out, out); err != nil && r.Context().Err() == nil {
		fail(w, fmt.Errorf("read the log of container %s: %w", r.PathValue("container"), err))
	}
}

// logOptions reads the kubelet's parameters.
func logOptions(query url.Values, now time.Time) (crilog.Options, error) {
	opts := crilog.Options{Timestamps: isTrue(query.Get("timestamps"))}
	var since *int64
	for name, to := range map[string]**int64{"tailLines": &opts.Tail, "limitBytes": &opts.LimitBytes, "sinceSeconds": &since} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return opts, fmt.Errorf("%s=%q is not a number of 0 or more", name, text)
		}
		*to = &n
	}
	if since != nil {
		opts.Since = now.Add(-time.Duration(*since) * time.Second)
	}
	if text := query.Get("sinceTime"); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil || since != nil {
			return opts, fmt.Errorf("sinceTime=%q is not a time as in RFC 3339, or stands beside sinceSeconds", text)
		}
		opts.Since = at
	}
	return opts, nil
}

func isTrue(text string) bool {
	ok, _ := strconv.ParseBool(text)
	return ok
}

// flushed hands on each write at once, so that who follows a log sees it grow.
type flushed struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (f flushed) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	if err == nil {
		err = f.control.Flush()
	}
	return n, err
}
