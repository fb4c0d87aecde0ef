package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podmill/podmill/userns"
)

const (
	defaultRoot = "/var/lib/podmill"
	socketName  = "agent.sock" // below the root directory
)

// config is what the flags say. Those that the kubelet has too have its names and mean the same.
type config struct {
	endpoint     string
	manifestPath string
	manifestURL  string
	root         string
	logRoot      string
	cgroupRoot   string
	cgroupDriver string
	nodeName     string
	nodeIPs      []string
	clusterDNS   []netip.Addr
	domain       string
	resolvConf   string
	throttling   float64   // 0 is off
	userIDs      [2]uint64 // the first and how many
	strict       bool
	stopPods     bool
	exitAfter    time.Duration
	verbosity    int
	features     bool
}

func parseFlags(args []string, errOut io.Writer) (*config, error) {
	c := &config{}
	flags := flag.NewFlagSet("minikubelet", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.StringVar(&c.endpoint, "container-runtime-endpoint", "unix:///run/containerd/containerd.sock", "the `endpoint` of the container runtime's CRI")
	flags.StringVar(&c.manifestPath, "pod-manifest-path", "", "the `directory` or file of manifests to run")
	flags.StringVar(&c.manifestURL, "manifest-url", "", "the `URL` of manifests to run")
	flags.StringVar(&c.root, "root-dir", defaultRoot, "the `directory` for volumes and the agent's own files")
	flags.StringVar(&c.logRoot, "log-dir", "", "the `directory` of pods/ and containers/ with their logs (default <root-dir>/log)")
	flags.StringVar(&c.cgroupRoot, "cgroup-root", "", "the `cgroup` below which pods get theirs; empty leaves them to the runtime")
	flags.StringVar(&c.cgroupDriver, "cgroup-driver", "", "cgroupfs or systemd; asked of the runtime where it tells")
	flags.StringVar(&c.nodeName, "hostname-override", "", "the `name` of the node (default the host's name)")
	nodeIPs := flags.String("node-ip", "", "the node's `addresses`, separated by commas")
	dns := flags.String("cluster-dns", "", "the `addresses` of DNS servers for pods, separated by commas")
	flags.StringVar(&c.domain, "cluster-domain", "", "the `domain` that pods search first")
	flags.StringVar(&c.resolvConf, "resolv-conf", "/etc/resolv.conf", "the `file` that pods' DNS configuration is made of")
	flags.Func("user-ids", "`FIRST:COUNT`, the IDs of this node for the user namespaces of pods, both multiples of 65536 (default all from 65536 on)", c.parseUserIDs)
	flags.Float64Var(&c.throttling, "memory-throttling-factor", 0, "how `far` from its request to its limit a container's memory may grow before it is slowed down, 0 to 1; 0 is off")
	flags.BoolVar(&c.strict, "strict-manifests", true, "refuse manifests with unknown fields instead of warning")
	flags.BoolVar(&c.stopPods, "stop-pods-on-exit", false, "stop and remove all pods before exiting")
	flags.DurationVar(&c.exitAfter, "exit-after", 0, "exit after that time, with 0 if all pods reached what they should")
	flags.BoolVar(&c.features, "features", false, "print which fields of a pod are served, and exit")
	flags.IntVar(&c.verbosity, "v", 0, "how much to log: 0 to 5")
	flags.Usage = func() {
		_, _ = fmt.Fprintln(errOut, "usage: minikubelet [flags]\n"+strings.TrimPrefix(clientUsage, "usage:\n")+"\nflags:")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	return c, c.complete(flags.Args(), *nodeIPs, *dns)
}

// complete fills in what depends on the machine, and refuses what cannot be.
func (c *config) complete(rest []string, nodeIPs, dns string) error {
	if len(rest) > 0 {
		return fmt.Errorf("argument %q is not understood; -h lists the flags", rest[0])
	}
	if c.manifestPath == "" && c.manifestURL == "" && !c.features {
		return errors.New("there is nothing to run: give --pod-manifest-path or --manifest-url")
	}
	if c.logRoot == "" {
		c.logRoot = c.root + "/log"
	}
	if c.nodeName == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("the host's name cannot be found, give --hostname-override: %w", err)
		}
		c.nodeName = strings.ToLower(host)
	}
	if msgs := validation.IsDNS1123Subdomain(c.nodeName); len(msgs) > 0 {
		return fmt.Errorf("the node cannot be called %q, give --hostname-override another name: %s", c.nodeName, strings.Join(msgs, "; "))
	}
	for _, text := range split(nodeIPs) {
		if _, err := netip.ParseAddr(text); err != nil {
			return fmt.Errorf("--node-ip: %w", err)
		}
		c.nodeIPs = append(c.nodeIPs, text)
	}
	if len(c.nodeIPs) == 0 {
		c.nodeIPs = hostIPs()
	}
	for _, text := range split(dns) {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return fmt.Errorf("--cluster-dns: %w", err)
		}
		c.clusterDNS = append(c.clusterDNS, addr)
	}
	return nil
}

func (c *config) parseUserIDs(text string) error {
	if n, err := fmt.Sscanf(text, "%d:%d", &c.userIDs[0], &c.userIDs[1]); n != 2 || err != nil {
		return errors.New("give FIRST:COUNT, such as 1048576:65536000")
	}
	_, err := userns.New("/", userns.WithIDs(c.userIDs[0], c.userIDs[1]))
	return err
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
