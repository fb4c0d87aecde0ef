package staticpod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
)

// fetcher gets what is at a URL, if it is not what it got before.
type fetcher struct {
	address  string
	headers  http.Header
	client   http.Client
	etag     string
	modified string
}

// fetch returns nil if nothing is new.
func (f *fetcher) fetch(ctx context.Context) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.address, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot be asked for: %w", bare(err))
	}
	maps.Copy(request.Header, f.headers.Clone())
	if f.etag != "" {
		request.Header.Set("If-None-Match", f.etag)
	}
	if f.modified != "" {
		request.Header.Set("If-Modified-Since", f.modified)
	}
	response, err := f.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", bare(err))
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotModified:
		return nil, nil
	default:
		return nil, fmt.Errorf("cannot be read: the server answers %s", response.Status)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot be read to its end: %w", bare(err))
	case len(data) > maxBytes:
		return nil, fmt.Errorf("is larger than %d MiB", maxBytes>>20)
	case len(data) == 0: // as of a server that is broken: who wants no pods sends an empty List
		return nil, errors.New("is empty")
	}
	f.etag, f.modified = response.Header.Get("ETag"), response.Header.Get("Last-Modified")
	return data, nil
}

// stay follows an answer that sends elsewhere on the same host only: neither the headers that were given for it nor the pods are anybody else's.
func stay(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case len(via) > maxRedirects:
		return errors.New("the server sends elsewhere too often")
	case next.URL.Host != first.Host || next.URL.Scheme != first.Scheme:
		return fmt.Errorf("the server sends to another host, %s://%s, which is not followed", next.URL.Scheme, next.URL.Host)
	}
	return nil
}

// bare leaves the operation and the URL, which may hold a password, out of an error.
func bare(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
