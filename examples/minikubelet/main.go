// Minikubelet is a node agent that runs the pods of manifest files on a container runtime, without a cluster: the blocks of podmill
// in their default wiring, with the kubelet's flags. main.go is all of it; the other files are what a person sees.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	"github.com/podmill/podmill/cri"
	"github.com/podmill/podmill/event"
	"github.com/podmill/podmill/examples/internal/machine"
	"github.com/podmill/podmill/podworkers"
	"github.com/podmill/podmill/server"
	"github.com/podmill/podmill/staticpod"
	"github.com/podmill/podmill/status"
	"github.com/podmill/podmill/syncpod"
	"github.com/podmill/podmill/userns"
	"github.com/podmill/podmill/volume"
	"github.com/podmill/podmill/volume/csi"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	args := os.Args[1:]
	if len(args) > 0 && slices.Contains([]string{"get", "logs", "exec"}, args[0]) {
		os.Exit(runClient(ctx, args, os.Stdout, os.Stderr))
	}
	switch err := run(ctx, args); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		_, _ = fmt.Fprintln(os.Stderr, "minikubelet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	c, err := parseFlags(args, os.Stderr)
	if err != nil {
		return err
	}
	if c.features {
		return showFeatures(c, os.Stdout)
	}
	dir, err := openRoot(&c.Flags)
	if err != nil {
		return err
	}
	defer dir.close()
	ctx = logr.NewContext(ctx, c.Logger(dir.log))

	resources, err := c.Resources()
	if err != nil {
		return err
	}
	runtime, err := cri.Dial(ctx, c.Endpoint, c.memory.ofContainers(resources)...)
	if err != nil {
		return err
	}
	defer runtime.Close()
	cgroups, err := c.Cgroups(ctx, c.cgroupDriver, runtime, c.cgroups()...)
	if err != nil {
		return err
	}
	var a *agent.Agent // who makes no pod of a manifest before it runs
	p, err := c.parts(c.Root, resources, func(pod *corev1.Pod) field.ErrorList { return a.Refused(pod) })
	if err != nil {
		return err
	}
	news := make(chan struct{}, 1)
	opts := append(append(p.opts, cgroups...), agent.WithEvents(event.JSONLines(dir.events)), agent.WithObservers(telling(news)))
	a, err = agent.New(runtime, c.Root, p.sources, opts...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answering, err := answer(filepath.Join(c.Root, socketName), a)
	if err != nil {
		return err
	}
	defer answering.Close()
	watched := func(ctx context.Context) error {
		shown := make(chan error, 1)
		go func() { shown <- watch(ctx, a, news, c.exitAfter, cancel) }()
		return errors.Join(a.Run(ctx), <-shown)
	}
	return machine.Together(ctx, watched, p.drivers.Run, machine.GiveBack) // drivers are needed until the last volume is unmounted
}

// parts are what an agent is made of beside its runtime and the cgroups.
type parts struct {
	sources []podmill.PodSource
	drivers *csi.Drivers
	opts    []agent.Option
}

// parts makes them, for an agent with that root directory on a machine that has these resources. check says what of a pod is not served here.
func (c *config) parts(root string, resources corev1.ResourceList, check func(*corev1.Pod) field.ErrorList) (parts, error) {
	var p parts
	var drivers []csi.Option
	how := []staticpod.Option{staticpod.WithStrict(c.strict), staticpod.WithCheck(check)}
	if c.manifestPath != "" { // it is also where ConfigMaps and Secrets are
		directory := staticpod.NewDirectory(c.manifestPath, c.NodeName, how...)
		p.sources = append(p.sources, directory)
		p.opts = append(p.opts, agent.WithObjects(directory))
		drivers = append(drivers, csi.WithSecrets(directory))
	}
	if c.manifestURL != "" {
		p.sources = append(p.sources, staticpod.NewURL(c.manifestURL, c.NodeName, how...))
	}
	var err error
	if p.drivers, err = csi.New(root, c.NodeName, drivers...); err != nil {
		return p, err
	}
	p.opts = append(append(p.opts, c.blocks(resources)...), agent.WithVolumeOptions(volume.WithPlugins(p.drivers)))
	return p, nil
}

// blocks are the options that flags set, on a machine that has these resources.
func (c *config) blocks(resources corev1.ResourceList) []agent.Option {
	opts := append(c.Options(), agent.WithNode(syncpod.Node{IPs: c.NodeIPs, MemoryBytes: resources.Memory().Value(), Allocatable: resources}))
	if c.userIDs[1] != 0 {
		opts = append(opts, agent.WithUserNamespaceOptions(userns.WithIDs(c.userIDs[0], c.userIDs[1])))
	}
	if c.stopPods {
		opts = append(opts, agent.WithStopPodsOnExit())
	}
	return opts
}

// answer serves get, logs and exec on a socket that only this user can open.
func answer(socket string, a *agent.Agent) (*http.Server, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return nil, err
	}
	s := &http.Server{Handler: server.New(a), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(listener) }()
	return s, nil
}

// telling are observers that leave word when what watch shows may have changed.
func telling(news chan<- struct{}) agent.Observers {
	poke := func() {
		select {
		case news <- struct{}{}:
		default:
		}
	}
	return agent.Observers{
		Workers: podworkers.Observer{StateChanged: func(podmill.PodRef, podworkers.State, podworkers.State) { poke() }},
		Status:  status.Observer{Sent: func(podmill.PodRef, time.Duration, error) { poke() }},
	}
}

// watch shows the pods until ctx ends: a moment after there was news, and now and then in any case. After a time that is not zero it ends the
// agent, and says whether all is as it should be.
func watch(ctx context.Context, a *agent.Agent, news <-chan struct{}, exitAfter time.Duration, exit func()) error {
	t := &table{out: os.Stdout, terminal: isTerminal(os.Stdout), width: func() int { return width(os.Stdout) }}
	const moment, rest = 100 * time.Millisecond, 2 * time.Second
	var over <-chan time.Time
	if exitAfter > 0 {
		over = time.After(exitAfter)
	}
	for {
		pods, _ := a.Pods()
		t.show(pods)
		select {
		case <-news:
		case <-time.After(rest):
		case <-ctx.Done():
			return nil
		case <-over:
			pods, synced := a.Pods()
			t.final(pods)
			exit()
			switch {
			case synced && len(pods) == 0:
				return fmt.Errorf("after %v there is no pod in the manifests", exitAfter)
			case !synced || !reached(pods):
				return fmt.Errorf("after %v not every pod has reached what it should", exitAfter)
			}
			return nil
		}
		select { // what comes together is shown together
		case <-time.After(moment):
		case <-ctx.Done():
		}
	}
}
