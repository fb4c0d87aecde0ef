package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// subject is what is measured: an agent, or the raw calls.
type subject interface {
	name() string
	up(ctx context.Context) error // begins its turn
	down()                        // ends it
	start(ctx context.Context, pods []string, configMap bool) error
	remove(ctx context.Context, pods []string) error
	killed(ctx context.Context, pod string) error // a container of the pod was killed
	used() time.Duration                          // the CPU time of an agent so far; zero of what is none
}

// The names of the agents.
const (
	minikubelet = "minikubelet"
	kubelet     = "kubelet"
)

// process is an agent that runs the manifests of a directory: minikubelet, or a kubelet.
type process struct {
	as      string
	binary  string
	dir     string // of all that is its
	node    string
	args    []string
	pods    *http.Client // where it tells of its pods
	podsURL string
	command *exec.Cmd
}

const manifest = `apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default}
spec:
  terminationGracePeriodSeconds: 5
  containers:
  - name: main
    image: podmill.test/busybox:1
    command: [sh, -c, "trap 'exit 0' TERM; sleep 1000000 & wait"]
%s`

const mounted = `    volumeMounts: [{name: config, mountPath: /config}]
  volumes: [{name: config, configMap: {name: bench}}]
`

const configMap = `apiVersion: v1
kind: ConfigMap
metadata: {name: bench, namespace: default}
data: {one: "1", two: "2", three: "3"}
`

func newMinikubelet(dir, binary, endpoint, cgroupRoot string) *process {
	socket := filepath.Join(dir, "root", "agent.sock")
	return &process{
		as: minikubelet, binary: binary, dir: dir, node: "bench",
		args: []string{
			"--container-runtime-endpoint", endpoint, "--pod-manifest-path", filepath.Join(dir, "manifests"), "--root-dir", filepath.Join(dir, "root"),
			"--cgroup-root", cgroupRoot, "--hostname-override", "bench",
		},
		pods: &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}},
		podsURL: "http://agent/pods",
	}
}

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: %s/manifests
podLogsDir: %s/log
containerRuntimeEndpoint: %s
cgroupRoot: /
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
failCgroupV1: false
address: 127.0.0.1
port: 20250
readOnlyPort: 20255
healthzPort: 0
enableServer: true
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
`

// newKubelet runs alone: it has no API server.
func newKubelet(dir, binary, endpoint string) (*process, error) {
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, kubeletConfig, dir, dir, endpoint), 0o600); err != nil {
		return nil, err
	}
	return &process{
		as: kubelet, binary: binary, dir: dir, node: "bench",
		args: []string{"--config", config, "--root-dir", filepath.Join(dir, "root"), "--cert-dir", filepath.Join(dir, "pki"), "--hostname-override", "bench"},
		pods: http.DefaultClient, podsURL: "http://127.0.0.1:20255/pods",
	}, nil
}

func (p *process) name() string { return p.as }

func (p *process) used() time.Duration { return cpuOf(p.command.Process.Pid) }

func (p *process) manifests() string { return filepath.Join(p.dir, "manifests") }

// up starts the agent and waits until it answers.
func (p *process) up(ctx context.Context) error {
	if err := os.MkdirAll(p.manifests(), 0o700); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(p.dir, "output"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p.command = exec.Command(p.binary, p.args...)
	p.command.Stdout, p.command.Stderr = log, log
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.command.Start(); err != nil {
		return err
	}
	_, err = p.ready(ctx, 0)
	return err
}

func (p *process) down() { p.signal(syscall.SIGTERM) }

func (p *process) signal(s syscall.Signal) {
	if p.command != nil {
		_ = p.command.Process.Signal(s)
		_ = p.command.Wait()
		p.command = nil
	}
}

// ready waits until the agent says of n pods that they are ready, and returns when.
func (p *process) ready(ctx context.Context, n int) (time.Time, error) {
	for {
		pods, err := p.ask(ctx)
		ready := 0
		for i := range pods {
			for _, c := range pods[i].Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		if err == nil && ready >= n {
			return time.Now(), nil
		}
		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("%s: %d of %d pods are ready: %w", p.as, ready, n, errors.Join(err, ctx.Err()))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (p *process) ask(ctx context.Context) ([]corev1.Pod, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.podsURL, nil)
	if err != nil {
		return nil, err
	}
	response, err := p.pods.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, errors.Join(err, errors.New(response.Status))
	}
	var list corev1.PodList
	return list.Items, json.Unmarshal(data, &list)
}

// start puts the manifests in place, each all at once.
func (p *process) start(_ context.Context, pods []string, withConfigMap bool) error {
	extra := ""
	if withConfigMap {
		extra = mounted
		if err := p.put("configmap", configMap); err != nil {
			return err
		}
	}
	for _, pod := range pods {
		if err := p.put(pod, fmt.Sprintf(manifest, strings.TrimSuffix(pod, "-"+p.node), extra)); err != nil {
			return err
		}
	}
	return nil
}

func (p *process) put(name, text string) error {
	hidden := filepath.Join(p.manifests(), "."+name)
	if err := os.WriteFile(hidden, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(hidden, filepath.Join(p.manifests(), name+".yaml"))
}

func (p *process) remove(_ context.Context, pods []string) error {
	var errs []error
	for _, pod := range pods {
		errs = append(errs, os.Remove(filepath.Join(p.manifests(), pod+".yaml")))
	}
	return errors.Join(errs...)
}

func (p *process) killed(context.Context, string) error { return nil }
