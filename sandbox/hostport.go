package sandbox

import (
	"fmt"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// hostPort is a port of the node at which a pod is reached. Runtimes map a port that another pod has without a word, and then one of the two is not
// reached any more.
type hostPort struct {
	ip       netip.Addr // the zero value is every address
	protocol corev1.Protocol
	port     int32
	field    string
}

func (p hostPort) String() string { return fmt.Sprintf("%d/%s", p.port, p.protocol) }

// clashes reports that two pods cannot have these ports at the same time.
func (p hostPort) clashes(other hostPort) bool {
	everywhere := !p.ip.IsValid() || !other.ip.IsValid()
	return p.port == other.port && p.protocol == other.protocol && (everywhere || p.ip == other.ip)
}

// hostPorts returns the ports of the node that a pod wants. Init containers have ended by the time it is reached.
func hostPorts(pod *corev1.Pod) (ports []hostPort) {
	n := map[lifecycle.Kind]int{}
	for c, kind := range lifecycle.Containers(pod) {
		list := "containers"
		if kind != lifecycle.App {
			list, kind = "initContainers", lifecycle.Init
		}
		at := n[kind]
		n[kind]++
		if kind != lifecycle.App && lifecycle.InitKind(c) == lifecycle.Init {
			continue
		}
		for i, p := range c.Ports {
			if p.HostPort <= 0 {
				continue
			}
			port := hostPort{protocol: p.Protocol, port: p.HostPort, field: fmt.Sprintf("spec.%s[%d].ports[%d].hostPort", list, at, i)}
			if port.protocol == "" {
				port.protocol = corev1.ProtocolTCP
			}
			if ip, err := netip.ParseAddr(p.HostIP); err == nil && !ip.IsUnspecified() {
				port.ip = ip.Unmap()
			}
			ports = append(ports, port)
		}
	}
	return ports
}

// claims are the ports of the node that pods have.
type claims struct {
	mu   sync.Mutex
	pods map[types.UID]claim
}

type claim struct {
	pod   podmill.PodRef
	ports []hostPort
}

// take gives a pod its ports for as long as it is there. The first has them: neighbours are those that may have had theirs before this process began.
func (c *claims) take(pod *corev1.Pod, neighbours func() []*corev1.Pod) error {
	ports := hostPorts(pod)
	if len(ports) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, has := c.pods[pod.UID]; has {
		return nil
	}
	for _, other := range c.pods {
		if err := conflict(ports, other); err != nil {
			return err
		}
	}
	for _, other := range neighbours() {
		if other.UID != pod.UID && ranBefore(other, pod) {
			if err := conflict(ports, claim{podmill.RefOf(other), hostPorts(other)}); err != nil {
				return err
			}
		}
	}
	c.pods[pod.UID] = claim{podmill.RefOf(pod), ports}
	return nil
}

// ranBefore reports that a pod has run, as its status says, and longer than another one.
func ranBefore(a, b *corev1.Pod) bool {
	s, t := &a.Status, &b.Status
	if s.PodIP == "" || s.StartTime == nil || s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed {
		return false
	}
	if t.PodIP == "" || t.StartTime == nil || s.StartTime.Before(t.StartTime) {
		return true
	}
	return s.StartTime.Equal(t.StartTime) && a.UID < b.UID
}

func conflict(ports []hostPort, other claim) error {
	for _, p := range ports {
		for _, q := range other.ports {
			if p.clashes(q) {
				return &podmill.ReasonError{Reason: "NodePorts", Message: fmt.Sprintf("%s: %s of the node is taken by pod %s", p.field, p, other.pod)}
			}
		}
	}
	return nil
}

// drop gives back the ports of a pod that is gone.
func (c *claims) drop(pod types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pods, pod)
}
