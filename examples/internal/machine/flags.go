package machine

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podmill/podmill/agent"
	"github.com/podmill/podmill/probe"
	"github.com/podmill/podmill/probe/grpcprobe"
	"github.com/podmill/podmill/sandbox"
)

// DefaultRoot is the default of --root-dir.
const DefaultRoot = "/var/lib/podmill"

// Flags are what the flags say that every example agent has. They have the kubelet's names and mean the same.
type Flags struct {
	Endpoint   string
	Root       string
	LogRoot    string
	CgroupRoot string
	NodeName   string
	NodeIPs    []string
	ClusterDNS []netip.Addr
	Domain     string
	ResolvConf string
	Verbosity  int
}

// Define has flags parsed.
func (f *Flags) Define(flags *flag.FlagSet) {
	flags.StringVar(&f.Endpoint, "container-runtime-endpoint", "unix:///run/containerd/containerd.sock", "the `endpoint` of the container runtime's CRI")
	flags.StringVar(&f.Root, "root-dir", DefaultRoot, "the `directory` for volumes and the agent's own files")
	flags.StringVar(&f.LogRoot, "log-dir", "", "the `directory` of pods/ and containers/ with their logs (default <root-dir>/log)")
	flags.StringVar(&f.CgroupRoot, "cgroup-root", "", "the `cgroup` below which pods get theirs; empty leaves them to the runtime")
	flags.StringVar(&f.NodeName, "hostname-override", "", "the `name` of the node (default the host's name)")
	flags.Func("node-ip", "the node's `addresses`, separated by commas", func(text string) error {
		addrs, err := addresses(text)
		f.NodeIPs = nil
		for _, addr := range addrs {
			f.NodeIPs = append(f.NodeIPs, addr.String())
		}
		return err
	})
	flags.Func("cluster-dns", "the `addresses` of DNS servers for pods, separated by commas", func(text string) (err error) {
		f.ClusterDNS, err = addresses(text)
		return err
	})
	flags.StringVar(&f.Domain, "cluster-domain", "", "the `domain` that pods search first")
	flags.StringVar(&f.ResolvConf, "resolv-conf", "/etc/resolv.conf", "the `file` that pods' DNS configuration is made of")
	flags.IntVar(&f.Verbosity, "v", 0, "how much to log: 0 to 5")
}

// Complete fills in what depends on the machine, and refuses what cannot be. It follows the parsing of the flags.
func (f *Flags) Complete(flags *flag.FlagSet) error {
	if flags.NArg() > 0 {
		return fmt.Errorf("argument %q is not understood; -h lists the flags", flags.Arg(0))
	}
	if f.LogRoot == "" {
		f.LogRoot = f.Root + "/log"
	}
	if f.NodeName == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("the host's name cannot be found, give --hostname-override: %w", err)
		}
		f.NodeName = strings.ToLower(host)
	}
	if msgs := validation.IsDNS1123Subdomain(f.NodeName); len(msgs) > 0 {
		return fmt.Errorf("the node cannot be called %q, give --hostname-override another name: %s", f.NodeName, strings.Join(msgs, "; "))
	}
	if len(f.NodeIPs) == 0 {
		f.NodeIPs = hostIPs()
	}
	return nil
}

// Options are the agent's options that the flags set.
func (f *Flags) Options() []agent.Option {
	return []agent.Option{
		agent.WithLogRoot(f.LogRoot),
		agent.WithProbeOptions(probe.WithGRPC(grpcprobe.Check)),
		agent.WithSandboxOptions(sandbox.WithResolvConf(f.ResolvConf), sandbox.WithClusterDNS(f.ClusterDNS...), sandbox.WithClusterDomain(f.Domain)),
	}
}

// Logger logs as much as --v says.
func (f *Flags) Logger(to io.Writer) logr.Logger {
	return logr.FromSlogHandler(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.Level(-f.Verbosity)}))
}

// Split takes a list apart as flags have it.
func Split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

func addresses(list string) (addrs []netip.Addr, err error) {
	for _, text := range Split(list) {
		addr, wrong := netip.ParseAddr(text)
		addrs, err = append(addrs, addr), errors.Join(err, wrong)
	}
	return addrs, err
}
