package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/podmill/podmill/examples/internal/machine"
	"github.com/podmill/podmill/userns"
)

const socketName = "agent.sock" // below the root directory

// config is what the flags say. Those that the kubelet has too have its names and mean the same.
type config struct {
	machine.Flags

	manifestPath string
	manifestURL  string
	cgroupDriver string
	memory       memory
	maxPIDs      int64
	userIDs      [2]uint64 // the first and how many
	strict       bool
	stopPods     bool
	exitAfter    time.Duration
	features     bool
}

func parseFlags(args []string, errOut io.Writer) (*config, error) {
	c := &config{}
	flags := flag.NewFlagSet("minikubelet", flag.ContinueOnError)
	flags.SetOutput(errOut)
	c.Define(flags)
	flags.StringVar(&c.manifestPath, "pod-manifest-path", "", "the `directory` or file of manifests to run")
	flags.StringVar(&c.manifestURL, "manifest-url", "", "the `URL` of manifests to run")
	flags.StringVar(&c.cgroupDriver, "cgroup-driver", "", "cgroupfs or systemd; asked of the runtime where it tells")
	flags.Func("user-ids", "`FIRST:COUNT`, the IDs of this node for the user namespaces of pods, both multiples of 65536 (default all from 65536 on)", c.parseUserIDs)
	c.memory.define(flags)
	flags.Int64Var(&c.maxPIDs, "pod-max-pids", -1, "how `many` processes and threads a pod may have; -1 is as many as it likes")
	flags.BoolVar(&c.strict, "strict-manifests", true, "refuse manifests with unknown fields instead of warning")
	flags.BoolVar(&c.stopPods, "stop-pods-on-exit", false, "stop and remove all pods before exiting")
	flags.DurationVar(&c.exitAfter, "exit-after", 0, "exit after that time, with 0 if all pods reached what they should")
	flags.BoolVar(&c.features, "features", false, "print which fields of a pod are served, and exit")
	flags.Usage = func() {
		_, _ = fmt.Fprintln(errOut, "usage: minikubelet [flags]\n"+strings.TrimPrefix(clientUsage, "usage:\n")+"\nflags:")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if c.manifestPath == "" && c.manifestURL == "" && !c.features {
		return nil, errors.New("there is nothing to run: give --pod-manifest-path or --manifest-url")
	}
	if err := c.memory.check(); err != nil {
		return nil, err
	}
	if c.maxPIDs == 0 || c.maxPIDs < -1 {
		return nil, fmt.Errorf("--pod-max-pids %d is no number of processes: give -1 for as many as pods like", c.maxPIDs)
	}
	if (c.maxPIDs > 0 || c.memory.reserved()) && c.CgroupRoot == "" {
		return nil, errors.New("--pod-max-pids and --memory-reservation-policy are about pods' cgroups: give --cgroup-root")
	}
	return c, c.Complete(flags)
}

func (c *config) parseUserIDs(text string) error {
	if n, err := fmt.Sscanf(text, "%d:%d", &c.userIDs[0], &c.userIDs[1]); n != 2 || err != nil {
		return errors.New("give FIRST:COUNT, such as 1048576:65536000")
	}
	_, err := userns.New("/", userns.WithIDs(c.userIDs[0], c.userIDs[1]))
	return err
}
