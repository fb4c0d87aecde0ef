package sandbox

import (
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// Option changes a default of a [Manager].
type Option func(*options)

type options struct {
	owner      string
	events     podmill.EventRecorder
	observer   Observer
	resolvConf string
	dns        clusterDNS
	handlers   func(class string) (handler string, err error)
	neighbours func() []*corev1.Pod
	sysctls    []string
	ghostAge   time.Duration
}

func newOptions(opts []Option) options {
	o := options{resolvConf: "/etc/resolv.conf", ghostAge: 30 * time.Second, neighbours: func() []*corev1.Pod { return nil }}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// WithOwner is the name of the agent, by which its sandboxes are told from those of another agent on the same runtime
// ([podmill.LabelOwner]).
func WithOwner(owner string) Option { return func(o *options) { o.owner = owner } }

// WithEvents says who is told what people should know; without it nobody is.
func WithEvents(events podmill.EventRecorder) Option { return func(o *options) { o.events = events } }

// WithObserver says who is told of what happens.
func WithObserver(observer Observer) Option { return func(o *options) { o.observer = observer } }

// WithResolvConf is the file from which pods get the node's DNS configuration; the default is /etc/resolv.conf. It is read anew for each
// spec. On a node where that file names a resolver on loopback, such as systemd-resolved, name the one behind it, often
// /run/systemd/resolve/resolv.conf: a pod with a network of its own does not reach the node's loopback. An empty path gives the
// kubelet's substitute, 127.0.0.1 and no search domain.
func WithResolvConf(path string) Option { return func(o *options) { o.resolvConf = path } }

// WithClusterDNS are the name servers of the DNS policy ClusterFirst. Without any, the policy falls back to Default.
func WithClusterDNS(servers ...netip.Addr) Option {
	return func(o *options) { o.dns.servers = servers }
}

// WithClusterDomain is the domain of the cluster's DNS, such as cluster.local: it is searched under the policy ClusterFirst, and ends a
// fully qualified host name.
func WithClusterDomain(domain string) Option { return func(o *options) { o.dns.domain = domain } }

// WithRuntimeClasses says which runtime handler stands behind a runtime class; the error is [podmill.ErrNotFound] if there is no class of that name. The
// func returns soon: a start waits for it. Without it a pod that names a class is refused. The overhead of a class is what the pod's spec.overhead says.
func WithRuntimeClasses(handler func(class string) (handler string, err error)) Option {
	return func(o *options) { o.handlers = handler }
}

// WithNeighbours says which pods there are on the node, with their statuses: one that ran when an agent before this one ended has its ports of the node
// until it is gone. Without it only what this manager has seen or made counts.
func WithNeighbours(pods func() []*corev1.Pod) Option {
	return func(o *options) { o.neighbours = pods }
}

// WithAllowedSysctls are sysctls that pods may set beside the safe ones, by name or, with * at the end, by its beginning, as the kubelet's
// --allowed-unsafe-sysctls.
func WithAllowedSysctls(patterns ...string) Option {
	return func(o *options) { o.sysctls = patterns }
}

// WithGhostAge is how old a sandbox has to be for Collect to remove it; the default is 30 s, as the kubelet's.
func WithGhostAge(d time.Duration) Option { return func(o *options) { o.ghostAge = d } }

// Observer is told of what a manager does. A nil func is not called; each returns at once.
type Observer struct {
	// Ran follows each call that runs a sandbox.
	Ran func(pod podmill.PodRef, handler string, took time.Duration, err error)
	// Collected follows each sandbox that Collect removed, or failed to.
	Collected func(pod podmill.PodRef, id string, err error)
}

func (o Observer) ran(pod podmill.PodRef, handler string, took time.Duration, err error) {
	if o.Ran != nil {
		o.Ran(pod, handler, took, err)
	}
}

func (o Observer) collected(pod podmill.PodRef, id string, err error) {
	if o.Collected != nil {
		o.Collected(pod, id, err)
	}
}
