package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podmill/podmill/examples/internal/machine"
	"github.com/podmill/podmill/node"
)

// config is what the flags say. They have the kubelet's names and mean the same.
type config struct {
	machine.Flags

	kubeconfig   string
	manifestPath string
	nodeLabels   map[string]string
	taints       []corev1.Taint
	maxPods      resource.Quantity
	serving      serving

	evictionHard       node.Thresholds
	pressureTransition time.Duration
	shutdownGrace      time.Duration
	shutdownCritical   time.Duration
}

func parseFlags(args []string, errOut io.Writer) (*config, error) {
	c := &config{}
	flags := flag.NewFlagSet("clusterkubelet", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "the `file` that says where the API server is and who this node is there")
	c.Define(flags)
	c.serving.define(flags)
	flags.StringVar(&c.manifestPath, "pod-manifest-path", "", "the `directory` or file of static pods")
	labels := flags.String("node-labels", "", "`labels` that the node has, as a=b,c=d")
	taints := flags.String("register-with-taints", "", "`taints` that the node is created with, as a=b:NoSchedule,c:NoExecute")
	maxPods := flags.Int64("max-pods", 110, "how many pods the node says it can run")
	c.evictionHard = node.DefaultThresholds()
	flags.Func("eviction-hard", "`thresholds` below which the node says that it is under pressure, as memory.available<100Mi (the default is the kubelet's); no pod is evicted for them",
		func(text string) (err error) {
			c.evictionHard, err = node.ParseThresholds(text)
			return err
		})
	flags.DurationVar(&c.pressureTransition, "eviction-pressure-transition-period", 5*time.Minute, "how long the node goes on to say that it is under pressure")
	flags.DurationVar(&c.shutdownGrace, "shutdown-grace-period", 0, "the `time` that pods have to end when the machine goes down, which SIGPWR says; 0 leaves them running")
	flags.DurationVar(&c.shutdownCritical, "shutdown-grace-period-critical-pods", 0, "the `part` of it that is left to pods which the system cannot do without")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if c.shutdownCritical < 0 || c.shutdownCritical > c.shutdownGrace {
		return nil, fmt.Errorf("--shutdown-grace-period-critical-pods %v is no part of --shutdown-grace-period %v", c.shutdownCritical, c.shutdownGrace)
	}
	c.maxPods = *resource.NewQuantity(*maxPods, resource.DecimalSI)
	if c.kubeconfig == "" {
		return nil, errors.New("there is no API server to ask: give --kubeconfig")
	}
	return c, errors.Join(c.Complete(flags), c.serving.complete(c.Root), c.parse(*labels, *taints))
}

// parse reads the lists.
func (c *config) parse(labels, taints string) error {
	c.nodeLabels = map[string]string{}
	for _, text := range machine.Split(labels) {
		key, value, _ := strings.Cut(text, "=")
		if msgs := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(msgs) > 0 {
			return fmt.Errorf("--node-labels: %q: %s", text, strings.Join(msgs, "; "))
		}
		c.nodeLabels[key] = value
	}
	for _, text := range machine.Split(taints) {
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
