package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/examples/internal/machine"
	"github.com/podmill/podmill/server"
)

// client asks a running agent over the socket under its root directory.
type client struct {
	http   http.Client
	out    io.Writer
	errOut io.Writer
}

const clientUsage = `usage:
  minikubelet get  [--root-dir DIR] [-o json] [[NAMESPACE/]POD]
  minikubelet logs [--root-dir DIR] [-f] [-p] [--tail N] [-c CONTAINER] [NAMESPACE/]POD [CONTAINER]
  minikubelet exec [--root-dir DIR] [-c CONTAINER] [NAMESPACE/]POD -- COMMAND [ARG ...]
       (the command has no input and no terminal, and its output comes when it has ended)`

// runClient carries out get, logs or exec and returns the exit code.
func runClient(ctx context.Context, args []string, out, errOut io.Writer) int {
	flags := flag.NewFlagSet("minikubelet "+args[0], flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.Usage = func() { _, _ = fmt.Fprintln(errOut, clientUsage) }
	root := flags.String("root-dir", machine.DefaultRoot, "")
	format := flags.String("o", "", "")
	container := flags.String("c", "", "")
	follow := flags.Bool("f", false, "")
	previous := flags.Bool("p", false, "")
	tail := flags.Int("tail", -1, "")
	if err := flags.Parse(args[1:]); err != nil {
		return 2
	}
	c := &client{out: out, errOut: errOut}
	socket := filepath.Join(*root, socketName)
	c.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err != nil {
			return nil, fmt.Errorf("no agent answers at %s; is one running with --root-dir %s? (%w)", socket, *root, err)
		}
		return conn, nil
	}}
	var code int
	var err error
	switch rest := flags.Args(); {
	case args[0] == "get" && len(rest) <= 1:
		err = c.get(ctx, *format, strings.Join(rest, ""))
	case args[0] == "logs" && (len(rest) == 1 || len(rest) == 2 && *container == ""):
		query := url.Values{"follow": {strconv.FormatBool(*follow)}, "previous": {strconv.FormatBool(*previous)}}
		if *tail >= 0 {
			query.Set("tailLines", strconv.Itoa(*tail))
		}
		err = c.logs(ctx, rest[0], *container+strings.Join(rest[1:], ""), query)
	case args[0] == "exec" && len(rest) >= 2:
		if rest[1] == "--" {
			rest = append(rest[:1:1], rest[2:]...)
		}
		code, err = c.exec(ctx, rest[0], *container, rest[1:])
	default:
		flags.Usage()
		return 2
	}
	if err != nil {
		_, _ = fmt.Fprintln(errOut, "error:", err)
		return 1
	}
	return code
}

func (c *client) get(ctx context.Context, format, name string) error {
	pods, err := c.pods(ctx)
	if err != nil {
		return err
	}
	if name != "" {
		pod, err := find(pods, name)
		if err != nil {
			return err
		}
		pods = []*corev1.Pod{pod}
	}
	switch format {
	case "":
		lines := map[string]string{}
		for _, pod := range pods {
			lines[pod.Namespace+"/"+pod.Name] = row(pod)
		}
		write(c.out, lines)
		return nil
	case "json":
		enc := json.NewEncoder(c.out)
		enc.SetIndent("", "  ")
		return enc.Encode(pods)
	default:
		return fmt.Errorf("-o %s is not known; there is json", format)
	}
}

func (c *client) logs(ctx context.Context, name, container string, query url.Values) error {
	path, err := c.containerPath(ctx, name, container)
	if err != nil {
		return err
	}
	response, err := c.do(ctx, http.MethodGet, "/containerLogs/"+path+"?"+query.Encode())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(c.out, response.Body)
	return err
}

func (c *client) exec(ctx context.Context, name, container string, command []string) (int, error) {
	path, err := c.containerPath(ctx, name, container)
	if err != nil {
		return 0, err
	}
	response, err := c.do(ctx, http.MethodPost, "/run/"+path+"?"+url.Values{"cmd": command}.Encode())
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(c.out, response.Body); err != nil {
		return 0, err
	}
	return strconv.Atoi(response.Header.Get(server.ExitCodeHeader))
}

func (c *client) pods(ctx context.Context) ([]*corev1.Pod, error) {
	response, err := c.do(ctx, http.MethodGet, "/pods")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var list corev1.PodList
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return nil, fmt.Errorf("the agent's answer cannot be read: %w", err)
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return pods, nil
}

// containerPath returns the path of a container in a request; where no container is named it is the pod's first.
func (c *client) containerPath(ctx context.Context, name, container string) (string, error) {
	pods, err := c.pods(ctx)
	if err != nil {
		return "", err
	}
	pod, err := find(pods, name)
	if err != nil {
		return "", err
	}
	if container == "" {
		container = pod.Spec.Containers[0].Name
	}
	return url.PathEscape(pod.Namespace) + "/" + url.PathEscape(pod.Name) + "/" + url.PathEscape(container), nil
}

func (c *client) do(ctx context.Context, method, target string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://agent"+target, nil)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
		return nil, errors.Join(errors.New(strings.TrimSpace(string(text))), response.Body.Close())
	}
	return response, nil
}

// find returns the pod of that name: namespace/name, or name alone in the namespace default. The suffix that a static
// pod's name has, the node's name, may be left out.
func find(pods []*corev1.Pod, name string) (*corev1.Pod, error) {
	namespace, short, ok := strings.Cut(name, "/")
	if !ok {
		namespace, short = corev1.NamespaceDefault, name
	}
	for _, pod := range pods {
		if pod.Namespace == namespace && (pod.Name == short || pod.Name == short+"-"+pod.Spec.NodeName) {
			return pod, nil
		}
	}
	return nil, fmt.Errorf("there is no pod %s/%s; `%s get` lists them", namespace, short, filepath.Base(os.Args[0]))
}
