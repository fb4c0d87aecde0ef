package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podmill/podmill/internal/lifecycle"
)

// containers checks init containers and containers, and what they must not have in common.
func (c *checker) containers(spec path) {
	if len(c.spec.Containers) == 0 {
		c.required(spec.Child("containers"), "give at least one container")
	}
	names := map[string]bool{}
	ports := map[string]bool{}
	// The app containers come first: of two of one name the init container is the one to rename.
	for i := range c.spec.Containers {
		at, container := spec.Child("containers").Index(i), &c.spec.Containers[i]
		c.container(at, container, names)
		c.running(at, container)
		c.restartRules(at, container)
		c.hostPorts(at, container, ports)
		c.hostNetworkPorts(at, container)
	}
	for i := range c.spec.InitContainers {
		at, container := spec.Child("initContainers").Index(i), &c.spec.InitContainers[i]
		c.container(at, container, names)
		c.restartRules(at, container)
		c.hostPorts(at, container, map[string]bool{}) // they run one after another
		if lifecycle.InitKind(container) == lifecycle.Sidecar {
			c.running(at, container)
		} else {
			c.initOnly(at, container)
		}
	}
}

// container checks what containers of all kinds have.
func (c *checker) container(p path, container *corev1.Container, names map[string]bool) {
	e := &c.problems
	c.label(p.Child("name"), container.Name)
	if names[container.Name] && container.Name != "" {
		e.duplicate(p.Child("name"), container.Name)
	}
	names[container.Name] = true
	if e.given(p.Child("image"), container.Image, "say which image to run") && strings.TrimSpace(container.Image) != container.Image {
		e.invalid(p.Child("image"), container.Image, "must have no space around it")
	}
	oneOf(e, p.Child("imagePullPolicy"), container.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
	oneOf(e, p.Child("terminationMessagePolicy"), container.TerminationMessagePolicy,
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)
	c.ports(p.Child("ports"), container.Ports)
	c.env(p.Child("env"), container.Env)
	c.envFrom(p.Child("envFrom"), container.EnvFrom)
	c.mounts(p.Child("volumeMounts"), container)
	c.devices(p.Child("volumeDevices"), container)
	c.resources(p.Child("resources"), &container.Resources, containerResourceName)
	c.claimNames(p.Child("resources", "claims"), container.Resources.Claims)
	c.resizePolicy(p.Child("resizePolicy"), container.ResizePolicy)
	c.containerSecurity(p.Child("securityContext"), container)
}

// running checks what only containers have that run beside others.
func (c *checker) running(p path, container *corev1.Container) {
	c.hooks(p.Child("lifecycle"), container.Lifecycle)
	c.probe(p.Child("livenessProbe"), container.LivenessProbe)
	c.probe(p.Child("readinessProbe"), container.ReadinessProbe)
	c.probe(p.Child("startupProbe"), container.StartupProbe)
	c.succeedsOnce(p.Child("livenessProbe"), container.LivenessProbe)
	c.succeedsOnce(p.Child("startupProbe"), container.StartupProbe)
	if probe := container.ReadinessProbe; probe != nil && probe.TerminationGracePeriodSeconds != nil {
		c.invalid(p.Child("readinessProbe", "terminationGracePeriodSeconds"), *probe.TerminationGracePeriodSeconds, "must be left out: this probe stops nothing")
	}
}

func (c *checker) succeedsOnce(p path, probe *corev1.Probe) {
	if probe != nil && probe.SuccessThreshold != 1 {
		c.invalid(p.Child("successThreshold"), probe.SuccessThreshold, "must be 1")
	}
}

// initOnly checks that an init container has nothing that only what keeps running can have.
func (c *checker) initOnly(p path, container *corev1.Container) {
	for _, u := range []use{
		{"lifecycle", container.Lifecycle != nil}, {"livenessProbe", container.LivenessProbe != nil},
		{"readinessProbe", container.ReadinessProbe != nil}, {"startupProbe", container.StartupProbe != nil},
	} {
		if u.used {
			c.forbidden(p.Child(u.field), "an init container has it only with restartPolicy Always")
		}
	}
	for i, policy := range container.ResizePolicy {
		if policy.RestartPolicy == corev1.RestartContainer {
			c.invalid(p.Child("resizePolicy").Index(i).Child("restartPolicy"), policy.RestartPolicy, "an init container has it only with restartPolicy Always")
		}
	}
}

func (c *checker) ports(p path, ports []corev1.ContainerPort) {
	names := map[string]bool{}
	for i, port := range ports {
		at := p.Index(i)
		if port.Name != "" {
			c.says(at.Child("name"), port.Name, validation.IsValidPortName(port.Name))
			if names[port.Name] {
				c.duplicate(at.Child("name"), port.Name)
			}
			names[port.Name] = true
		}
		if port.ContainerPort == 0 {
			c.required(at.Child("containerPort"), "give the port's number")
		} else {
			c.says(at.Child("containerPort"), port.ContainerPort, validation.IsValidPortNum(int(port.ContainerPort)))
		}
		if port.HostPort != 0 {
			c.says(at.Child("hostPort"), port.HostPort, validation.IsValidPortNum(int(port.HostPort)))
		}
		oneOf(&c.problems, at.Child("protocol"), port.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
	}
}

// hostPorts checks that no port of the host is taken twice.
func (c *checker) hostPorts(p path, container *corev1.Container, taken map[string]bool) {
	for i, port := range container.Ports {
		if port.HostPort == 0 {
			continue
		}
		key := fmt.Sprintf("%s/%s/%d", port.Protocol, port.HostIP, port.HostPort)
		if taken[key] {
			c.duplicate(p.Child("ports").Index(i).Child("hostPort"), key)
		}
		taken[key] = true
	}
}

func (c *checker) hostNetworkPorts(p path, container *corev1.Container) {
	for i, port := range container.Ports {
		if c.spec.HostNetwork && port.HostPort != port.ContainerPort {
			c.invalid(p.Child("ports").Index(i).Child("hostPort"), port.HostPort, "must be the containerPort when hostNetwork is true, or left out")
		}
	}
}

// The bounds of the rules by which a container restarts (KEP-5307).
const (
	maxRestartRules = 20
	maxExitCodes    = 255
)

func (c *checker) restartRules(p path, container *corev1.Container) {
	e := &c.problems
	if container.RestartPolicy == nil && len(container.RestartPolicyRules) > 0 {
		e.required(p.Child("restartPolicy"), "give the policy where no rule applies, such as Never")
	}
	maybeOneOf(e, p.Child("restartPolicy"), container.RestartPolicy,
		corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyOnFailure, corev1.ContainerRestartPolicyNever)
	p = p.Child("restartPolicyRules")
	if n := len(container.RestartPolicyRules); n > maxRestartRules {
		e.list = append(e.list, field.TooMany(p, n, maxRestartRules))
	}
	for i, rule := range container.RestartPolicyRules {
		at := p.Index(i)
		oneOf(e, at.Child("action"), rule.Action, corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers)
		at = at.Child("exitCodes")
		if rule.ExitCodes == nil {
			e.required(at, "say for which exit codes the rule is")
			continue
		}
		oneOf(e, at.Child("operator"), rule.ExitCodes.Operator, corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn)
		if n := len(rule.ExitCodes.Values); n > maxExitCodes {
			e.list = append(e.list, field.TooMany(at.Child("values"), n, maxExitCodes))
		}
	}
}
