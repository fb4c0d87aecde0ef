package testenv

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A Registry serves images on loopback over plain http. User and Password are
// empty where anyone may pull.
type Registry struct {
	Addr, User, Password string // Addr is host:port, the first part of a reference
}

// PlainRegistry returns the registry from which anyone may pull.
func PlainRegistry(t testing.TB) Registry {
	t.Helper()
	return Registry{Addr: need(t, "a registry", "PODMILL_TEST_REGISTRY")}
}

// AuthRegistry returns the registry that wants basic auth.
func AuthRegistry(t testing.TB) Registry {
	t.Helper()
	return Registry{
		Addr:     need(t, "a registry with basic auth", "PODMILL_TEST_REGISTRY_AUTH"),
		User:     need(t, "the registry's user", "PODMILL_TEST_REGISTRY_USER"),
		Password: need(t, "the registry's password", "PODMILL_TEST_REGISTRY_PASSWORD"),
	}
}

const manifestType = "application/vnd.oci.image.manifest.v1+json"

type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int    `json:"size"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

// Push stores busybox:1 with one more layer under name (repository:tag) and
// returns the reference to pull it by. The layer holds size random bytes in
// /fresh, so that a pull has something to download whatever was pulled before.
func (r Registry) Push(t testing.TB, name string, size int) string {
	t.Helper()
	ref, err := r.push(name, size)
	if err != nil {
		t.Fatalf("push %s to %s: %v", name, r.Addr, err)
	}
	return ref
}

func (r Registry) push(name string, size int) (string, error) {
	repository, tag, ok := strings.Cut(name, ":")
	if !ok {
		return "", fmt.Errorf("no tag in %q", name)
	}
	var m manifest
	if err := r.get("/v2/busybox/manifests/1", &m); err != nil {
		return "", err
	}
	var config map[string]any
	if err := r.get("/v2/busybox/blobs/"+m.Config.Digest, &config); err != nil {
		return "", err
	}
	for _, base := range m.Layers {
		mount := "/v2/" + repository + "/blobs/uploads/?mount=" + base.Digest + "&from=busybox"
		if _, _, err := r.do(http.MethodPost, mount, "", nil, http.StatusCreated); err != nil {
			return "", err
		}
	}
	layer, err := r.upload(repository, "application/vnd.oci.image.layer.v1.tar", freshLayer(size))
	if err != nil {
		return "", err
	}
	m.Layers = append(m.Layers, layer)
	rootfs, _ := config["rootfs"].(map[string]any)
	ids, _ := rootfs["diff_ids"].([]any)
	config["rootfs"] = map[string]any{"type": "layers", "diff_ids": append(ids, layer.Digest)}
	data, err := json.Marshal(config)
	if err != nil {
		return "", err
	}
	if m.Config, err = r.upload(repository, m.Config.MediaType, data); err != nil {
		return "", err
	}
	if data, err = json.Marshal(m); err != nil {
		return "", err
	}
	if _, _, err := r.do(http.MethodPut, "/v2/"+repository+"/manifests/"+tag, manifestType, data, http.StatusCreated); err != nil {
		return "", err
	}
	return r.Addr + "/" + name, nil
}

func freshLayer(size int) []byte {
	data := make([]byte, size)
	_, _ = rand.Read(data) // never fails
	var b bytes.Buffer
	w := tar.NewWriter(&b) // nor does writing to memory
	_ = w.WriteHeader(&tar.Header{Name: "fresh", Mode: 0o644, Size: int64(size)})
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}

// upload stores a blob in one request, as the distribution API's POST then PUT.
func (r Registry) upload(repository, mediaType string, data []byte) (descriptor, error) {
	d := descriptor{MediaType: mediaType, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(data)), Size: len(data)}
	header, _, err := r.do(http.MethodPost, "/v2/"+repository+"/blobs/uploads/", "", nil, http.StatusAccepted)
	if err != nil {
		return d, err
	}
	to := strings.TrimPrefix(header.Get("Location"), "http://"+r.Addr)
	_, _, err = r.do(http.MethodPut, to+"&digest="+d.Digest, "application/octet-stream", data, http.StatusCreated)
	return d, err
}

func (r Registry) get(path string, into any) error {
	_, body, err := r.do(http.MethodGet, path, "", nil, http.StatusOK)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// do sends one request and returns the answer's header and body.
func (r Registry) do(method, path, contentType string, body []byte, want int) (http.Header, []byte, error) {
	req, err := http.NewRequest(method, "http://"+r.Addr+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Accept", manifestType)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if r.User != "" {
		req.SetBasicAuth(r.User, r.Password)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, nil, err
	}
	if resp.StatusCode != want {
		return nil, nil, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, data)
	}
	return resp.Header, data, nil
}
