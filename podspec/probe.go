package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

func (c *checker) probe(p path, probe *corev1.Probe) {
	if probe == nil {
		return
	}
	c.handler(p, action{exec: probe.Exec, httpGet: probe.HTTPGet, tcpSocket: probe.TCPSocket, grpc: probe.GRPC},
		"exec, httpGet, tcpSocket or grpc")
	c.notNegative(p.Child("initialDelaySeconds"), int64(probe.InitialDelaySeconds))
	c.notNegative(p.Child("timeoutSeconds"), int64(probe.TimeoutSeconds))
	c.notNegative(p.Child("periodSeconds"), int64(probe.PeriodSeconds))
	c.notNegative(p.Child("successThreshold"), int64(probe.SuccessThreshold))
	c.notNegative(p.Child("failureThreshold"), int64(probe.FailureThreshold))
	if grace := probe.TerminationGracePeriodSeconds; grace != nil && *grace <= 0 {
		c.invalid(p.Child("terminationGracePeriodSeconds"), *grace, "must be 1 or more, or left out for the pod's")
	}
}

func (c *checker) hooks(p path, l *corev1.Lifecycle) {
	if l == nil {
		return
	}
	const kinds = "exec, httpGet or sleep"
	if h := l.PostStart; h != nil {
		c.handler(p.Child("postStart"), action{exec: h.Exec, httpGet: h.HTTPGet, tcpSocket: h.TCPSocket, sleep: h.Sleep}, kinds)
	}
	if h := l.PreStop; h != nil {
		c.handler(p.Child("preStop"), action{exec: h.Exec, httpGet: h.HTTPGet, tcpSocket: h.TCPSocket, sleep: h.Sleep}, kinds)
	}
	if l.StopSignal != nil {
		c.stopSignal(p.Child("stopSignal"), *l.StopSignal)
	}
}

// action is what a probe or a hook does.
type action struct {
	exec      *corev1.ExecAction
	httpGet   *corev1.HTTPGetAction
	tcpSocket *corev1.TCPSocketAction
	grpc      *corev1.GRPCAction
	sleep     *corev1.SleepAction
}

func (c *checker) handler(p path, a action, kinds string) {
	c.exactlyOne(p, "say what to do: one of "+kinds, []choice{
		{"exec", a.exec != nil, func(p path) {
			if len(a.exec.Command) == 0 {
				c.required(p.Child("command"), "give the command and its arguments")
			}
		}},
		{"httpGet", a.httpGet != nil, func(p path) { c.httpGet(p, a.httpGet) }},
		{"tcpSocket", a.tcpSocket != nil, func(p path) { c.port(p.Child("port"), a.tcpSocket.Port) }},
		{"grpc", a.grpc != nil, func(p path) {
			c.port(p.Child("port"), intstr.FromInt32(a.grpc.Port))
			maybeOneOf(&c.problems, p.Child("mode"), a.grpc.Mode, corev1.GRPCProbeModePlaintext, corev1.GRPCProbeModeTLS)
		}},
		{"sleep", a.sleep != nil, func(p path) {
			grace := c.spec.TerminationGracePeriodSeconds
			if grace != nil && (a.sleep.Seconds < 0 || a.sleep.Seconds > *grace) {
				c.invalid(p.Child("seconds"), a.sleep.Seconds, fmt.Sprintf("must be between 0 and the pod's terminationGracePeriodSeconds, which is %d", *grace))
			}
		}},
	})
}

func (e *problems) httpGet(p path, get *corev1.HTTPGetAction) {
	e.given(p.Child("path"), get.Path, "give the path, such as \"/\"")
	e.port(p.Child("port"), get.Port)
	oneOf(e, p.Child("scheme"), get.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)
	for i, header := range get.HTTPHeaders {
		e.says(p.Child("httpHeaders").Index(i).Child("name"), header.Name, validation.IsHTTPHeaderName(header.Name))
	}
	if get.Protocol == nil {
		return
	}
	at := p.Child("protocol")
	oneOf(e, at, *get.Protocol, corev1.HTTPProtocolHTTP1, corev1.HTTPProtocolHTTP2)
	switch {
	case *get.Protocol != corev1.HTTPProtocolHTTP2:
	case get.Scheme != corev1.URISchemeHTTP:
		e.invalid(at, *get.Protocol, "needs the scheme HTTP")
	case get.Host != "":
		e.invalid(p.Child("host"), get.Host, "cannot be set when the protocol is HTTP2")
	}
}

// port checks the number or the name of a port.
func (e *problems) port(p path, port intstr.IntOrString) {
	if port.Type == intstr.Int {
		e.says(p, port.IntValue(), validation.IsValidPortNum(port.IntValue()))
		return
	}
	e.says(p, port.StrVal, validation.IsValidPortName(port.StrVal))
}

func (c *checker) stopSignal(p path, signal corev1.Signal) {
	switch {
	case c.spec.OS == nil:
		c.forbidden(p, "needs spec.os.name, such as linux")
	case c.isWindows():
		oneOf(&c.problems, p, signal, corev1.SIGTERM, corev1.SIGKILL)
	case c.spec.OS.Name == corev1.Linux:
		if !isLinuxSignal(signal) {
			c.invalid(p, signal, "must be a signal of Linux, such as SIGINT or SIGRTMIN+3")
		}
	}
}

func isLinuxSignal(signal corev1.Signal) bool {
	switch signal {
	case corev1.SIGABRT, corev1.SIGALRM, corev1.SIGBUS, corev1.SIGCHLD, corev1.SIGCLD, corev1.SIGCONT, corev1.SIGFPE, corev1.SIGHUP,
		corev1.SIGILL, corev1.SIGINT, corev1.SIGIO, corev1.SIGIOT, corev1.SIGKILL, corev1.SIGPIPE, corev1.SIGPOLL, corev1.SIGPROF,
		corev1.SIGPWR, corev1.SIGQUIT, corev1.SIGSEGV, corev1.SIGSTKFLT, corev1.SIGSTOP, corev1.SIGSYS, corev1.SIGTERM, corev1.SIGTRAP,
		corev1.SIGTSTP, corev1.SIGTTIN, corev1.SIGTTOU, corev1.SIGURG, corev1.SIGUSR1, corev1.SIGUSR2, corev1.SIGVTALRM,
		corev1.SIGWINCH, corev1.SIGXCPU, corev1.SIGXFSZ, corev1.SIGRTMIN, corev1.SIGRTMAX:
		return true
	}
	return matches(`^(SIGRTMIN\+([1-9]|1[0-5])|SIGRTMAX-([1-9]|1[0-4]))$`, string(signal))
}
