package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

const (
	// systemCritical is the least priority of pods that the system cannot do without: the classes system-cluster-critical and system-node-critical.
	systemCritical int32 = 2_000_000_000

	shutdownReason  = "Terminated"
	shutdownMessage = "Pod was terminated in response to imminent node shutdown."
)

// ErrShuttingDown is what is wrong with a node that shuts down: it is for [Ready].
var ErrShuttingDown = errors.New("node is shutting down")

// Band is the time that pods have to end when their node shuts down (KEP-2712): those whose priority is at least Priority, and less than that of the next
// band. Whatever is below all bands belongs to the lowest.
type Band struct {
	Priority int32
	Grace    time.Duration
}

// ShutdownBands are the bands of the kubelet's two settings (KEP-2000): critical, which is a part of grace, is left to pods that the system cannot do without, and
// all others have to end before.
func ShutdownBands(grace, critical time.Duration) []Band {
	return []Band{{Priority: 0, Grace: grace - critical}, {Priority: systemCritical, Grace: critical}}
}

// Shutdown ends pods because their node goes down, as the kubelet does: band after band, the lowest priority first, all pods of a band at once, and the next band when
// they have stopped or the band's time is over. A pod has its own grace period and no more than its band has; a band without pods takes no time.
//
// kill is podworkers.Workers.Kill or, of a whole agent, Agent.Kill: the channel is closed when the pod's containers have stopped. A pod that is killed is Failed, with
// the reason and the condition DisruptionTarget by which a cluster knows that the node was to blame. The error names pods that had not stopped in their time. Without
// bands no pod ends.
//
// Who calls it has told the node to say that it is not ready ([ErrShuttingDown]) and takes no pods any more.
func Shutdown(ctx context.Context, pods []*corev1.Pod, bands []Band, kill func(pod types.UID, k podmill.Kill) <-chan struct{}) error {
	var late []error
	for _, g := range group(pods, bands) {
		stopped := make(map[podmill.PodRef]<-chan struct{}, len(g.pods))
		for _, pod := range g.pods {
			grace := int64(g.Grace / time.Second)
			stopped[podmill.RefOf(pod)] = kill(pod.UID, podmill.Kill{GracePeriodSeconds: &grace, Reason: shutdownReason, Message: shutdownMessage})
		}
		if left := await(ctx, stopped, g.Grace); len(left) > 0 {
			late = append(late, fmt.Errorf("not stopped within %v: %s", g.Grace, strings.Join(left, ", ")))
		}
		if ctx.Err() != nil {
			return errors.Join(append(late, ctx.Err())...)
		}
	}
	return errors.Join(late...)
}

// await waits for channels to be closed, for as long as patience lasts, and returns whose were not.
func await(ctx context.Context, stopped map[podmill.PodRef]<-chan struct{}, patience time.Duration) (left []string) {
	over := time.After(patience)
	for pod, done := range stopped {
		select {
		case <-done:
			continue
		default:
		}
		select {
		case <-done:
		case <-over:
			over = closed() // the others are only looked at
			left = append(left, pod.String())
		case <-ctx.Done():
			left = append(left, pod.String())
		}
	}
	slices.Sort(left)
	return left
}

func closed() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}

// groupOf is the pods of a band.
type groupOf struct {
	Band
	pods []*corev1.Pod
}

// group sorts pods into their bands, the lowest first. Bands that nobody is in are left out.
func group(pods []*corev1.Pod, bands []Band) []groupOf {
	var groups []groupOf
	for _, band := range bands {
		groups = append(groups, groupOf{Band: band})
	}
	slices.SortFunc(groups, func(a, b groupOf) int { return cmp.Compare(a.Priority, b.Priority) })
	for _, pod := range pods {
		var priority int32
		if pod.Spec.Priority != nil {
			priority = *pod.Spec.Priority
		}
		above := slices.IndexFunc(groups, func(g groupOf) bool { return g.Priority > priority })
		if above < 0 {
			above = len(groups)
		}
		if len(groups) > 0 {
			g := &groups[max(0, above-1)]
			g.pods = append(g.pods, pod)
		}
	}
	return slices.DeleteFunc(groups, func(g groupOf) bool { return len(g.pods) == 0 })
}
