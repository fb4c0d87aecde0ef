//go:build !race

package agent_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	. "github.com/podmill/podmill/podmilltest"
)

// The start of a pod takes as many allocations among a thousand pods as among a hundred: they count what is done, whatever else the machine does.
func TestOneOfAThousandPodsBesideItsBaseline(t *testing.T) {
	each := func(n int) (allocations float64) {
		inWorld(t, func(w *world) {
			pods := make([]*corev1.Pod, n)
			for i := range pods {
				pods[i] = Pod(fmt.Sprint("pod-", i), static, Container("server", "busybox:1"))
			}
			w.start()
			w.file.Replace()
			w.pass(time.Second)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			w.file.Replace(pods...)
			w.pass(5 * time.Second)
			runtime.ReadMemStats(&after)
			if running := w.rt.Log().Count(OpStartContainer); running != n {
				w.Fatalf("%d of %d pods were started", running, n)
			}
			allocations = float64(after.Mallocs-before.Mallocs) / float64(n)
		})
		return allocations
	}
	few, many := each(100), each(1000)
	t.Logf("%.0f allocations a pod among a thousand, %.0f among a hundred", many, few)
	if many > 1.25*few {
		t.Errorf("%.0f allocations a pod among a thousand, %.0f among a hundred", many, few)
	}
}
