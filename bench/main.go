// Bench measures an agent against the raw calls of its runtime, in one run, on a real containerd. docs/performance.md explains what it prints.
//
// Every call, the raw ones too, passes one proxy that takes the times. The raw calls are the very messages that minikubelet sent in a first
// round, which nobody counts. In the rounds that follow each subject has its turn, in an order that rotates. No two are up at a time: each
// would take the others' pods for orphans.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

type config struct {
	endpoint, minikubelet, kubelet, out string
	short                               bool
	turns                               int
	only                                string
	rounds                              int
	patience                            time.Duration
}

func main() {
	var c config
	flag.StringVar(&c.endpoint, "endpoint", os.Getenv("PODMILL_TEST_CONTAINERD"), "the `endpoint` of the runtime")
	flag.StringVar(&c.minikubelet, "minikubelet", "", "the `binary` of minikubelet")
	flag.StringVar(&c.kubelet, "kubelet", "", "the `binary` of a kubelet to compare with; it takes all pods of the runtime for its own")
	flag.StringVar(&c.out, "out", "", "the `directory` for results.json and plots")
	flag.BoolVar(&c.short, "short", false, "few rounds and few pods, in less than five minutes")
	flag.IntVar(&c.turns, "turns", 0, "compare also with raw calls for so `many` pods at a time")
	flag.StringVar(&c.only, "run", "", "only what this `regular expression` matches of: start of 1, burst of 30, ..., rest")
	flag.IntVar(&c.rounds, "rounds", 0, "how many `rounds`, in place of each work's own number")
	flag.DurationVar(&c.patience, "quiet", 0, "how `long` to wait for a quiet window before each turn (default 30s, with -short 2s)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, &c)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, c *config) error {
	works, rests, err := c.works()
	if err != nil {
		return err
	}
	if c.endpoint == "" || c.minikubelet == "" {
		return errors.New("give -endpoint and -minikubelet, or use make bench")
	}
	dir, err := os.MkdirTemp("", "podmill-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	conn, err := grpc.NewClient(c.endpoint, grpc.WithAuthority("localhost"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	t, err := newTap(dir, c.endpoint)
	if err != nil {
		return err
	}
	defer t.close()
	b := &bench{tap: t, runtime: runtimeapi.NewRuntimeServiceClient(conn), idle: 2 * time.Minute}
	patience := 30 * time.Second
	if c.short {
		b.idle, patience = 10*time.Second, 2*time.Second
	}
	b.quiet = quietWindow(cmp.Or(c.patience, patience))
	version, err := b.runtime.Version(ctx, &runtimeapi.VersionRequest{})
	if err != nil {
		return fmt.Errorf("runtime at %s: %w", c.endpoint, err)
	}
	b.results.Environment = environment(version, strings.Join(os.Args[1:], " "))
	if err := b.exits.follow(ctx, b.runtime); err != nil {
		return err
	}
	subjects, err := c.subjects(ctx, b, dir)
	if err != nil {
		return err
	}
	if err := b.all(ctx, subjects, works, rests); err != nil {
		err = errors.Join(err, b.sweep())
		for _, log := range []string{"minikubelet/output", "minikubelet/root/agent.log", "kubelet/output"} {
			text, _ := os.ReadFile(filepath.Join(dir, log))
			_, _ = os.Stderr.Write(text[max(0, len(text)-4000):])
		}
		return err
	}
	b.results.compare()
	b.results.table(os.Stdout)
	err = b.results.regressions(works, rests)
	if c.out == "" {
		return err
	}
	return errors.Join(err, b.results.write(c.out))
}

// works are what is timed, and the numbers of pods with which an agent is at rest.
func (c *config) works() (works []work, rests []int, err error) {
	works, rests = []work{
		{pods: 1, restart: true, rounds: 20},
		{pods: 1, configMap: true, rounds: 10},
		{pods: 30, rounds: 5},
		{pods: 100, rounds: 3},
	}, []int{0, 30, 60, 100}
	if c.short {
		works, rests = []work{{pods: 1, restart: true, rounds: 3}, {pods: 1, configMap: true, rounds: 1}, {pods: 30, rounds: 1}}, []int{0, 30}
	}
	only, err := regexp.Compile(c.only)
	if err != nil {
		return nil, nil, fmt.Errorf("-run: %w", err)
	}
	works = slices.DeleteFunc(works, func(w work) bool { return !only.MatchString(w.title()) })
	if !only.MatchString("rest") {
		rests = nil
	}
	if len(works)+len(rests) == 0 {
		return nil, nil, fmt.Errorf("-run %q matches nothing", c.only)
	}
	for i := range works {
		works[i].rounds = cmp.Or(c.rounds, works[i].rounds)
	}
	return works, rests, nil
}

// subjects are whom the flags name, minikubelet first: it shows the raw calls what to send.
func (c *config) subjects(ctx context.Context, b *bench, dir string) ([]subject, error) {
	// With the process ID, make down knows whose test was killed.
	cgroupRoot := fmt.Sprintf("/podmill-test-%d-bench", os.Getpid())
	mini := newMinikubelet(filepath.Join(dir, "minikubelet"), c.minikubelet, b.tap.endpoint, cgroupRoot)
	r, err := newRaw(b.tap.endpoint, filepath.Join(mini.dir, "root"), cgroupRoot)
	if err != nil {
		return nil, err
	}
	all := []subject{mini, r}
	if c.turns > 0 {
		all = append(all, r.slowly(c.turns))
	}
	if c.kubelet == "" {
		return all, nil
	}
	sandboxes, err := b.runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return nil, err
	}
	if n := len(sandboxes.Items); n > 0 {
		return nil, fmt.Errorf("a kubelet would kill the %d pods that the runtime has: give it a runtime of its own", n)
	}
	if err := os.MkdirAll(filepath.Join(dir, "kubelet"), 0o700); err != nil {
		return nil, err
	}
	k, err := newKubelet(filepath.Join(dir, "kubelet"), c.kubelet, b.tap.endpoint)
	return append(all, k), err
}

// all does the timed work and then looks at who is idle.
func (b *bench) all(ctx context.Context, subjects []subject, works []work, rests []int) error {
	b.record = subjects[1].(*raw) //nolint:forcetypeassert // the second, as subjects has it
	for i := range works {
		w := &works[i]
		for round := range w.rounds + 1 {
			for j := range subjects {
				s := subjects[(j+round)%len(subjects)]
				if err := b.turn(ctx, s, w, round > 0); err != nil {
					return fmt.Errorf("%s, %s, round %d: %w", w.title(), s.name(), round, err)
				}
			}
		}
	}
	for _, s := range subjects {
		if p, ok := s.(*process); ok && len(rests) > 0 {
			if err := b.atRest(ctx, p, rests); err != nil {
				return fmt.Errorf("%s at rest: %w", s.name(), err)
			}
		}
	}
	return b.sweep()
}

// sweep removes the pods and cgroups that a failed run leaves behind.
func (b *bench) sweep() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	list, err := b.runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	for _, s := range list.GetItems() {
		if strings.HasSuffix(s.Metadata.Name, "-bench") {
			_, stop := b.runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: s.Id})
			_, remove := b.runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: s.Id})
			err = errors.Join(err, stop, remove)
		}
	}
	for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		roots, _ := filepath.Glob(fmt.Sprintf("%s/podmill-test-%d-bench", pattern, os.Getpid()))
		for _, root := range roots {
			var dirs []string
			_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					dirs = append(dirs, path)
				}
				return nil
			})
			for i := len(dirs) - 1; i >= 0; i-- {
				_ = os.Remove(dirs[i])
			}
		}
	}
	return err
}
