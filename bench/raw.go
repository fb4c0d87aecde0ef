package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill/cgroup"
)

// raw makes the calls that have to be, and nothing else: for each pod the very messages that minikubelet has sent for it, with the IDs of now. It looks
// at nothing, prepares nothing and keeps nothing; no agent can be faster, but by asking the runtime for less at a time.
type raw struct {
	as      string
	turns   chan struct{} // holds one token for each pod whose calls are under way; nil if all are at once
	conn    *grpc.ClientConn
	runtime runtimeapi.RuntimeServiceClient
	root    string // of the agent that was recorded
	cgroups *cgroup.Manager
	scripts map[string]*script

	mu  sync.Mutex
	now map[string]*ids
}

// script is what was sent for a pod.
type script struct {
	run    *runtimeapi.RunPodSandboxRequest
	create []*runtimeapi.CreateContainerRequest // by attempt
	stop   *runtimeapi.StopContainerRequest
}

func (s *script) uid() types.UID { return types.UID(s.run.GetConfig().GetMetadata().GetUid()) }

type ids struct{ sandbox, container string }

func newRaw(endpoint, root, cgroupRoot string) (*raw, error) {
	cgroups, err := cgroup.New(cgroupRoot)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(endpoint, grpc.WithAuthority("localhost"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	return &raw{as: "raw", conn: conn, runtime: runtimeapi.NewRuntimeServiceClient(conn), root: root, cgroups: cgroups, scripts: map[string]*script{}, now: map[string]*ids{}}, err
}

// record learns what was sent for each pod, and forgets what was learned before.
func (r *raw) record(calls []call) {
	clear(r.scripts)
	for i := range calls {
		c := &calls[i]
		if c.pod == "" || c.err != nil {
			continue
		}
		s := r.scripts[c.pod]
		if s == nil {
			s = &script{}
			r.scripts[c.pod] = s
		}
		switch m := c.read().(type) {
		case *runtimeapi.RunPodSandboxRequest:
			s.run = m
		case *runtimeapi.CreateContainerRequest:
			if int(m.GetConfig().GetMetadata().GetAttempt()) == len(s.create) {
				s.create = append(s.create, m)
			}
		case *runtimeapi.StopContainerRequest:
			s.stop = m
		}
	}
}

// slowly is another that sends the same, for no more than n pods at a time.
func (r *raw) slowly(n int) *raw {
	return &raw{
		as: fmt.Sprintf("raw, %d at a time", n), turns: make(chan struct{}, n),
		conn: r.conn, runtime: r.runtime, root: r.root, cgroups: r.cgroups, scripts: r.scripts, now: map[string]*ids{},
	}
}

func (r *raw) name() string { return r.as }

func (r *raw) used() time.Duration { return 0 }

// up puts in place what the recorded agent made on disk, and the pods' cgroups, whose weights decide who gets a scarce core: that is no call of the
// runtime.
func (r *raw) up(ctx context.Context) error {
	for pod, s := range r.scripts {
		if _, err := r.cgroups.EnsureCgroup(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: s.uid()}}); err != nil {
			return fmt.Errorf("prepare pod %s: %w", pod, err)
		}
		for _, create := range s.create {
			if err := r.prepare(s.run.GetConfig(), create.GetConfig()); err != nil {
				return fmt.Errorf("prepare pod %s: %w", pod, err)
			}
		}
	}
	return nil
}

func (r *raw) prepare(sandbox *runtimeapi.PodSandboxConfig, container *runtimeapi.ContainerConfig) error {
	if err := os.MkdirAll(filepath.Dir(filepath.Join(sandbox.GetLogDirectory(), container.GetLogPath())), 0o755); err != nil {
		return err
	}
	for _, m := range container.GetMounts() {
		if in, err := filepath.Rel(r.root, m.HostPath); err != nil || !filepath.IsLocal(in) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(m.HostPath), 0o755); err != nil {
			return err
		}
		var err error
		if m.ContainerPath == "/etc/hosts" || m.ContainerPath == "/dev/termination-log" {
			err = os.WriteFile(m.HostPath, nil, 0o644)
		} else {
			err = os.MkdirAll(m.HostPath, 0o755)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *raw) down() {}

// all does something for each pod, side by side as an agent does.
func (r *raw) all(pods []string, do func(pod string, s *script, now *ids) error) error {
	errs := make(chan error, len(pods))
	for _, pod := range pods {
		r.mu.Lock()
		s, now := r.scripts[pod], r.now[pod]
		if now == nil {
			now = &ids{}
			r.now[pod] = now
		}
		r.mu.Unlock()
		go func() {
			if r.turns != nil {
				r.turns <- struct{}{}
				defer func() { <-r.turns }()
			}
			errs <- do(pod, s, now)
		}()
	}
	var first error
	for range pods {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (r *raw) start(ctx context.Context, pods []string, _ bool) error {
	return r.all(pods, func(_ string, s *script, now *ids) error {
		answer, err := r.runtime.RunPodSandbox(ctx, s.run)
		if err != nil {
			return err
		}
		now.sandbox = answer.PodSandboxId
		return r.create(ctx, s.create[0], now)
	})
}

func (r *raw) create(ctx context.Context, recorded *runtimeapi.CreateContainerRequest, now *ids) error {
	m := proto.CloneOf(recorded)
	m.PodSandboxId = now.sandbox
	answer, err := r.runtime.CreateContainer(ctx, m)
	if err != nil {
		return err
	}
	now.container = answer.ContainerId
	_, err = r.runtime.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: now.container})
	return err
}

func (r *raw) killed(ctx context.Context, pod string) error {
	return r.all([]string{pod}, func(_ string, s *script, now *ids) error { return r.create(ctx, s.create[1], now) })
}

func (r *raw) remove(ctx context.Context, pods []string) error {
	return r.all(pods, func(pod string, s *script, now *ids) error {
		defer os.RemoveAll(filepath.Join(r.root, "pods", string(s.uid())))
		m := proto.CloneOf(s.stop)
		m.ContainerId = now.container
		if _, err := r.runtime.StopContainer(ctx, m); err != nil {
			return err
		}
		if _, err := r.runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: now.sandbox}); err != nil {
			return err
		}
		if _, err := r.runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: now.sandbox}); err != nil {
			return err
		}
		return r.cgroups.RemoveCgroup(ctx, s.uid())
	})
}
