package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"

	"github.com/podmill/podmill/podmilltest"
)

// logs returns what the API server says is in a container's log. params are pairs of a name and a value.
func (c *cluster) logs(pod string, params ...string) (string, error) {
	query := map[string]string{}
	for pair := range slices.Chunk(params, 2) {
		query[pair[0]] = pair[1]
	}
	stream, err := c.OpenLog(pod, query)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	text, err := io.ReadAll(stream)
	return string(text), err
}

func (c *cluster) wantLog(want, pod string, params ...string) {
	c.t.Helper()
	if text, err := c.logs(pod, params...); err != nil || text != want {
		c.t.Errorf("the log of %s by %v is %q, %v; want %q", pod, params, text, err, want)
	}
}

// `kubectl logs`: a log is followed until its container ends, and what it said before a restart can be read after it.
func TestLogs(t *testing.T) {
	c := newCluster(t)
	c.start()
	const script = `n=$(cat /data/n 2>/dev/null || echo 0); echo $((n+1)) >/data/n; echo "begin $n"
while [ ! -e /data/end ]; do sleep 0.1; done; rm /data/end; echo "end $n" >&2; exit 1`
	pod := podmilltest.Pod("x/talker", podmilltest.Grace(0), podmilltest.Volume("data", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}),
		podmilltest.Container("main", busybox, podmilltest.Command("sh", "-c", script)))
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	c.CreatePod(pod)
	pod = c.reaches("talker", "is ready", ready)
	crash := func(restarts int32) {
		c.sh(pod, "main", "touch /data/end")
		c.reaches("talker", fmt.Sprint("was restarted ", restarts, " times"), func(pod *corev1.Pod) bool {
			return pod.Status.ContainerStatuses[0].RestartCount == restarts && ready(pod)
		})
	}

	_, err := c.logs("talker", "previous", "true")
	if err == nil || !strings.Contains(err.Error(), `previous terminated container "main" in pod "talker" not found`) {
		t.Errorf("the log of no instance: %v", err)
	}
	stream, err := c.OpenLog("talker", map[string]string{"follow": "true"})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	followed := bufio.NewReader(stream)
	if line, err := followed.ReadString('\n'); line != "begin 0\n" {
		t.Errorf("the first line is %q, %v", line, err)
	}
	crash(1)
	if rest, err := io.ReadAll(followed); err != nil || string(rest) != "end 0\n" {
		t.Errorf("the rest is %q, %v", rest, err)
	}
	c.Eventually("the next instance speaks", func() bool { text, _ := c.logs("talker"); return text != "" })
	c.wantLog("begin 1\n", "talker")
	c.wantLog("begin 0\nend 0\n", "talker", "previous", "true")
	c.wantLog("end 0\n", "talker", "previous", "true", "tailLines", "1")
	c.wantLog("beg", "talker", "limitBytes", "3")
	c.wantLog("", "talker", "sinceTime", time.Now().Add(time.Minute).UTC().Format(time.RFC3339))
	c.wantLog("begin 1\n", "talker", "sinceSeconds", "600")
	stamped, err := c.logs("talker", "timestamps", "true")
	stamp, text, _ := strings.Cut(stamped, " ")
	if at, wrong := time.Parse(time.RFC3339Nano, stamp); err != nil || wrong != nil || time.Since(at) > 5*time.Minute || text != "begin 1\n" {
		t.Errorf("with its time the log is %q, %v", stamped, err)
	}

	// While it waits to be started again, the last words of it are what people look for.
	c.sh(pod, "main", "touch /data/end")
	c.reaches("talker", "waits to be started again", func(pod *corev1.Pod) bool {
		w := pod.Status.ContainerStatuses[0].State.Waiting
		return w != nil && w.Reason == "CrashLoopBackOff"
	})
	c.wantLog("begin 1\nend 1\n", "talker", "previous", "true")
	c.wantLog("begin 1\nend 1\n", "talker")
}

// What cannot be asked for is answered in words that reach the asker.
func TestLogsThatAreNotThere(t *testing.T) {
	c := newCluster(t)
	c.start()
	c.CreatePod(podmilltest.Pod("x/waits", podmilltest.Grace(0), podmilltest.Container("main", "podmill.test/no-such-image:1")))
	c.reaches("waits", "waits for its image", func(pod *corev1.Pod) bool {
		return len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Waiting != nil && strings.Contains(pod.Status.ContainerStatuses[0].State.Waiting.Reason, "Image")
	})
	if _, err := c.logs("waits"); err == nil || !strings.Contains(err.Error(), `container "main" in pod "waits" is waiting to start`) {
		t.Errorf("the log of a container that waits: %v", err)
	}
	_, _, code, err := c.command(c.AdminConfig, c.execURL("waits", "true"), "", remotecommand.NewSPDYExecutor)
	if err == nil || !strings.Contains(err.Error(), "is not running") {
		t.Errorf("a command in a container that waits: %d, %v", code, err)
	}
}

// executor makes who carries out a command, in one of the two ways in which that is asked for.
type executor func(*rest.Config, string, *url.URL) (remotecommand.Executor, error)

func webSocket(config *rest.Config, _ string, to *url.URL) (remotecommand.Executor, error) {
	return remotecommand.NewWebSocketExecutor(config, http.MethodGet, to.String())
}

// oldWebSocket speaks what runtimes do, in which the end of an input cannot be told. An API server translates what is newer.
func oldWebSocket(config *rest.Config, _ string, to *url.URL) (remotecommand.Executor, error) {
	return remotecommand.NewWebSocketExecutorForProtocols(config, http.MethodGet, to.String(), "v4.channel.k8s.io")
}

// execURL is where the API server has a command run in the container main of a pod.
func (c *cluster) execURL(pod string, command ...string) *url.URL {
	c.t.Helper()
	to, err := url.Parse(c.AdminConfig.Host)
	if err != nil {
		c.t.Fatal(err)
	}
	to.Path = "/api/v1/namespaces/" + c.Namespace + "/pods/" + pod + "/exec"
	to.RawQuery = url.Values{"container": {"main"}, "command": command, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}}.Encode()
	return to
}

// command runs a command with an input, and returns its output and exit code.
func (c *cluster) command(config *rest.Config, to *url.URL, input string, by executor) (stdout, stderr string, code int, err error) {
	c.t.Helper()
	e, err := by(config, http.MethodPost, to)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
	defer cancel()
	var out, errOut bytes.Buffer
	err = e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: strings.NewReader(input), Stdout: &out, Stderr: &errOut})
	var exit exec.CodeExitError
	if errors.As(err, &exit) {
		code, err = exit.Code, nil
	}
	return out.String(), errOut.String(), code, err
}

// `kubectl exec -i`: a command has an input, two outputs and an exit code, over WebSockets and over SPDY, by the API server and at the node itself.
func TestCommands(t *testing.T) {
	c := newCluster(t)
	c.start()
	c.CreatePod(sleeper("plain"))
	c.reaches("plain", "is ready", ready)
	input := strings.Repeat("a line of input\n", 10_000)
	toTheEnd := []string{"sh", "-c", "cat; echo error >&2; exit 3"}
	soMuch := []string{"sh", "-c", fmt.Sprintf("head -c %d; echo error >&2; exit 3", len(input))}
	direct, config := c.direct("/exec/" + c.Namespace + "/plain/main")
	atTheNode := func(command []string) *url.URL {
		to := *direct
		to.RawQuery = url.Values{"command": command, "input": {"1"}, "output": {"1"}, "error": {"1"}}.Encode()
		return &to
	}
	for _, way := range []struct {
		name   string
		config *rest.Config
		to     *url.URL
		by     executor
	}{
		{"WebSocket", c.AdminConfig, c.execURL("plain", toTheEnd...), webSocket},
		{"SPDY", c.AdminConfig, c.execURL("plain", toTheEnd...), remotecommand.NewSPDYExecutor},
		{"WebSocket at the node", config, atTheNode(soMuch), oldWebSocket},
		{"SPDY at the node", config, atTheNode(toTheEnd), remotecommand.NewSPDYExecutor},
	} {
		t.Run(way.name, func(t *testing.T) {
			stdout, stderr, code, err := c.command(way.config, way.to, input, way.by)
			if err != nil || stdout != input || stderr != "error\n" || code != 3 {
				t.Errorf("%d bytes of output, want %d; %q; exit code %d; %v", len(stdout), len(input), stderr, code, err)
			}
		})
	}
}

// direct returns a path at the node itself, and the administrator's credentials for it. The node shows itself by a certificate of its own.
func (c *cluster) direct(path string) (*url.URL, *rest.Config) {
	c.t.Helper()
	node := &corev1.Node{}
	c.Eventually("the node says where it serves", func() bool {
		return c.Get("nodes", c.Node, node) && node.Status.DaemonEndpoints.KubeletEndpoint.Port != 0
	})
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(node.Status.DaemonEndpoints.KubeletEndpoint.Port)))
	config := &rest.Config{Host: "https://" + at, BearerToken: c.AdminConfig.BearerToken, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	return &url.URL{Scheme: "https", Host: at, Path: path}, config
}

// Who is not known, and who may not, gets nothing from a node: an API server says who may.
func TestWhoMayAskANode(t *testing.T) {
	c := newCluster(t)
	c.start()
	c.CreatePod(sleeper("plain"))
	c.reaches("plain", "is ready", ready)
	stranger, err := tls.LoadX509KeyPair(filepath.Join(c.root, "pki", "kubelet.crt"), filepath.Join(c.root, "pki", "kubelet.key"))
	if err != nil {
		t.Fatal(err)
	}
	cert, key, _ := c.Plane.ClientCertificate()
	apiServer, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []struct {
		name  string
		token string
		cert  *tls.Certificate
		code  int // 0: there is no connection
	}{
		{"nobody", "", nil, http.StatusUnauthorized},
		{"whoever", "token", nil, http.StatusUnauthorized},
		{"a service account", c.Token(), nil, http.StatusForbidden},
		{"the administrator", c.AdminConfig.BearerToken, nil, http.StatusOK},
		{"the API server", "", &apiServer, http.StatusOK},
		{"a stranger", "", &stranger, 0},
	} {
		t.Run(who.name, func(t *testing.T) {
			for _, path := range []string{"/pods", "/healthz", "/containerLogs/" + c.Namespace + "/plain/main"} {
				to, _ := c.direct(path)
				code, err := ask(t.Context(), to, who.token, who.cert)
				if code != who.code || (err != nil) != (who.code == 0) {
					t.Errorf("%s: %d, %v; want %d", path, code, err, who.code)
				}
			}
		})
	}
	_, config := c.direct("")
	config.BearerToken = c.Token()
	to, _ := c.direct("/exec/" + c.Namespace + "/plain/main")
	to.RawQuery = "command=true&output=1"
	if _, _, _, err := c.command(config, to, "", remotecommand.NewSPDYExecutor); err == nil || !strings.Contains(err.Error(), "Forbidden (user=system:serviceaccount:"+c.Namespace+":default, verb=create, resource=nodes, subresource=proxy)") {
		t.Errorf("a command of a service account: %v", err)
	}
}

// ask sends one request and returns the answer's code.
func ask(ctx context.Context, to *url.URL, token string, cert *tls.Certificate) (int, error) {
	config := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the node signs for itself
	if cert != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return 0, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}
