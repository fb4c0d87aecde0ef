package machine

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	"github.com/podmill/podmill/cgroup"
)

// Main runs the program of that name until it is told to end, and exits with 1 if it fails. A second signal ends it at once.
func Main(name string, run func(ctx context.Context, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Part is something that runs for as long as an agent does.
type Part func(ctx context.Context) error

// Together runs parts until ctx ends or one of them fails. Then they end one after another, each when those before it have.
func Together(ctx context.Context, parts ...Part) error {
	group, ctx := errgroup.WithContext(ctx)
	before := ctx // ends when all parts before have
	for _, run := range parts {
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		earlier := before
		context.AfterFunc(earlier, cancel)
		ended, end := context.WithCancel(context.WithoutCancel(ctx))
		group.Go(func() error {
			defer func() { context.AfterFunc(earlier, end) }()
			return run(own)
		})
		before = ended
	}
	return group.Wait()
}

// Cgroups gives the pods cgroups of their own below --cgroup-root, by that driver; where it is empty, by the one that the runtime uses.
func (f *Flags) Cgroups(ctx context.Context, driver string, runtime podmill.StatusReporter, opts ...cgroup.Option) ([]agent.Option, error) {
	if f.CgroupRoot == "" {
		return nil, nil
	}
	status, err := runtime.RuntimeStatus(ctx)
	if err != nil {
		return nil, err
	}
	use := cgroup.Cgroupfs
	switch {
	case driver != "":
		use = cgroup.Driver(driver)
	case status.CgroupDriver != "":
		use = cgroup.Driver(status.CgroupDriver)
	}
	if err := cgroup.CheckDriver(use, status.CgroupDriver); err != nil {
		return nil, err
	}
	cgroups, err := cgroup.New(f.CgroupRoot, append(opts, cgroup.WithDriver(use))...)
	if err != nil {
		return nil, err
	}
	return []agent.Option{agent.WithCgroups(cgroups)}, nil
}
