package node_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/node"
	"github.com/podmill/podmill/podmilltest"
)

// at returns a pod of a priority.
func at(name string, priority int32) *corev1.Pod {
	return podmilltest.Pod(name, podmilltest.UID(types.UID(name)), func(pod *corev1.Pod) { pod.Spec.Priority = &priority })
}

// machine is pods that take some time to stop.
type machine struct {
	began time.Time
	takes map[types.UID]time.Duration
	story []string
}

func (m *machine) kill(pod types.UID, k podmill.Kill) <-chan struct{} {
	m.story = append(m.story, fmt.Sprintf("%v %s grace=%d", time.Since(m.began), pod, *k.GracePeriodSeconds))
	if k.Reason != "Terminated" || k.Message != "Pod was terminated in response to imminent node shutdown." {
		m.story = append(m.story, k.Reason+": "+k.Message)
	}
	stopped := make(chan struct{})
	time.AfterFunc(m.takes[pod], func() { close(stopped) })
	return stopped
}

// Those that the system can do without end first, and the others when they have ended. Those that take too long are not waited for, and are named. (KEP-2000)
func TestAShutdownEndsCriticalPodsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{began: time.Now(), takes: map[types.UID]time.Duration{"web": 5 * time.Second, "db": 7 * time.Second, "cni": time.Second, "dns": time.Minute}}
		pods := []*corev1.Pod{at("dns", 2_000_000_000), at("web", 0), at("cni", 2_000_001_000), at("db", 1_000_000)}
		err := node.Shutdown(t.Context(), pods, node.ShutdownBands(30*time.Second, 10*time.Second), m.kill)
		want := []string{"0s web grace=20", "0s db grace=20", "7s dns grace=10", "7s cni grace=10"}
		if diff := cmp.Diff(want, m.story); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if took := time.Since(m.began); took != 17*time.Second {
			t.Errorf("it took %v, want 17s", took)
		}
		if err == nil || !strings.Contains(err.Error(), "default/dns") || strings.Contains(err.Error(), "cni") {
			t.Errorf("error %v, want dns to be named alone", err)
		}
		time.Sleep(time.Minute) // for the timers
	})
}

// Bands come in the order of their priorities, whatever order they are given in; a band that nobody is in takes no time. (KEP-2712)
func TestBands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bands := []node.Band{{10_000, 180 * time.Second}, {100_000, 10 * time.Second}, {0, 60 * time.Second}, {1_000, 120 * time.Second}}
		m := &machine{began: time.Now()}
		var pods []*corev1.Pod
		for _, priority := range []int32{100_000, 99_999, 10_000, 999, 0, -5, 2_000_000_000} {
			pods = append(pods, at(fmt.Sprint("p", priority), priority))
		}
		pods = append(pods, podmilltest.Pod("none", podmilltest.UID("none")))
		if err := node.Shutdown(t.Context(), pods, bands, m.kill); err != nil {
			t.Error(err)
		}
		want := []string{
			"0s p999 grace=60", "0s p0 grace=60", "0s p-5 grace=60", "0s none grace=60",
			"0s p99999 grace=180", "0s p10000 grace=180", "0s p100000 grace=10", "0s p2000000000 grace=10",
		}
		if diff := cmp.Diff(want, m.story); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A shutdown that is called off kills nobody else.
func TestAShutdownThatIsCalledOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{began: time.Now(), takes: map[types.UID]time.Duration{"web": time.Minute}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := node.Shutdown(ctx, []*corev1.Pod{at("web", 0), at("dns", 2_000_000_000)}, node.ShutdownBands(time.Hour, time.Minute), m.kill)
		if !errors.Is(err, context.DeadlineExceeded) || slices.ContainsFunc(m.story, func(s string) bool { return strings.Contains(s, "dns") }) {
			t.Errorf("error %v, story %v", err, m.story)
		}
		time.Sleep(time.Minute)
	})
}
