package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// config is what the flags say. They have the kubelet's names and mean the same.
type config struct {
	kubeconfig   string
	endpoint     string
	manifestPath string
	root         string
	logRoot      string
	cgroupRoot   string
	nodeName     string
	nodeIPs      []string
	nodeLabels   map[string]string
	taints       []corev1.Taint
	maxPods      resource.Quantity
	clusterDNS   []netip.Addr
	domain       string
	resolvConf   string
	verbosity    int
}

func parseFlags(args []string, errOut io.Writer) (*config, error) {
	c := &config{}
	flags := flag.NewFlagSet("clusterkubelet", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "the `file` that says where the API server is and who this node is there")
	flags.StringVar(&c.endpoint, "container-runtime-endpoint", "unix:///run/containerd/containerd.sock", "the `endpoint` of the container runtime's CRI")
	flags.StringVar(&c.manifestPath, "pod-manifest-path", "", "the `directory` or file of static pods")
	flags.StringVar(&c.root, "root-dir", "/var/lib/podmill", "the `directory` for volumes and the agent's own files")
	flags.StringVar(&c.logRoot, "log-dir", "", "the `directory` of pods/ and containers/ with their logs (default <root-dir>/log)")
	flags.StringVar(&c.cgroupRoot, "cgroup-root", "", "the `cgroup` below which pods get theirs; empty leaves them to the runtime")
	flags.StringVar(&c.nodeName, "hostname-override", "", "the `name` of the node (default the host's name)")
	nodeIPs := flags.String("node-ip", "", "the node's `addresses`, separated by commas")
	labels := flags.String("node-labels", "", "`labels` that the node has, as a=b,c=d")
	taints := flags.String("register-with-taints", "", "`taints` that the node is created with, as a=b:NoSchedule,c:NoExecute")
	maxPods := flags.Int64("max-pods", 110, "how many pods the node says it can run")
	dns := flags.String("cluster-dns", "", "the `addresses` of DNS servers for pods, separated by commas")
	flags.StringVar(&c.domain, "cluster-domain", "", "the `domain` that pods search first")
	flags.StringVar(&c.resolvConf, "resolv-conf", "/etc/resolv.conf", "the `file` that pods' DNS configuration is made of")
	flags.IntVar(&c.verbosity, "v", 0, "how much to log: 0 to 5")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("argument %q is not understood; -h lists the flags", flags.Arg(0))
	}
	c.maxPods = *resource.NewQuantity(*maxPods, resource.DecimalSI)
	return c, errors.Join(c.complete(), c.parse(*nodeIPs, *labels, *taints, *dns))
}

// complete fills in what depends on the machine, and refuses what cannot be.
func (c *config) complete() error {
	if c.kubeconfig == "" {
		return errors.New("there is no API server to ask: give --kubeconfig")
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
	return nil
}

// parse reads the lists.
func (c *config) parse(nodeIPs, labels, taints, dns string) error {
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
	c.nodeLabels = map[string]string{}
	for _, text := range split(labels) {
		key, value, _ := strings.Cut(text, "=")
		if msgs := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(msgs) > 0 {
			return fmt.Errorf("--node-labels: %q: %s", text, strings.Join(msgs, "; "))
		}
		c.nodeLabels[key] = value
	}
	for _, text := range split(taints) {
		taint, err := parseTaint(text)
		if err != nil {
			return fmt.Errorf("--register-with-taints: %w", err)
		}
		c.taints = append(c.taints, taint)
	}
	return nil
}

func parseTaint(text string) (corev1.Taint, error) {
	rest, effect, _ := strings.Cut(text, ":")
	key, value, _ := strings.Cut(rest, "=")
	taint := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	if msgs := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(msgs) > 0 {
		return taint, fmt.Errorf("%q: %s", text, strings.Join(msgs, "; "))
	}
	switch taint.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		return taint, nil
	}
	return taint, fmt.Errorf("%q has no effect: end it in :NoSchedule, :PreferNoSchedule or :NoExecute", text)
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
