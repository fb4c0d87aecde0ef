package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podworkers"
	"github.com/podmill/podmill/status"
)

// Task is what a container is to [Tasks]: something that runs to its end, and ends soon when ctx does. It is all that a back end has to be: here a function of
// this process, elsewhere a call of somebody's job service.
type Task func(ctx context.Context, pod *corev1.Pod, container *corev1.Container) (exitCode int32)

// Tasks runs pods that have no containers anywhere. podworkers leads each pod from its start to its end, one step at a time, and status makes of what is known
// of it what Kubernetes wants to hear; that is all of podmill that is used.
//
// A task runs once. Pods that ask for more, for a restart policy or for init containers, fail with a reason: the package syncpod gives them.
type Tasks struct {
	run      Task
	workers  *podworkers.Workers
	statuses *status.Manager
	gone     chan struct{} // holds one token when a pod may have gone for good

	mu   sync.Mutex
	jobs map[types.UID]*job
}

// job is a pod whose tasks were begun.
type job struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed when all tasks have ended

	mu   sync.Mutex
	seen podmill.RuntimePod
}

var _ podworkers.Syncer = (*Tasks)(nil)

// NewTasks returns tasks that tell sink how they are.
func NewTasks(run Task, sink podmill.StatusSink) *Tasks {
	t := &Tasks{run: run, statuses: status.New(sink), gone: make(chan struct{}, 1), jobs: map[types.UID]*job{}}
	t.workers = podworkers.New(t, podworkers.WithObserver(podworkers.Observer{StateChanged: func(_ podmill.PodRef, _, to podworkers.State) {
		if to == podworkers.Finished {
			t.mayBeGone()
		}
	}}))
	return t
}

// Update has a pod run.
func (t *Tasks) Update(pod *corev1.Pod) { t.workers.Update(pod) }

// Remove has it end, and forgets it.
func (t *Tasks) Remove(pod types.UID) {
	t.workers.Remove(pod)
	t.mayBeGone()
}

func (t *Tasks) mayBeGone() {
	select {
	case t.gone <- struct{}{}:
	default:
	}
}

// forget forgets how pods were that have gone, until ctx ends. Of one that was removed by force nobody asks for its end to be confirmed.
func (t *Tasks) forget(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.gone:
		}
		_ = t.statuses.Cleanup(ctx, t.workers.Known) // it only notes what there is to do
	}
}

// Synced has nothing to do: there is nothing of an earlier process to clean up.
func (t *Tasks) Synced() {}

// Run runs tasks until ctx ends. What still runs then is cancelled: nobody could find it again.
func (t *Tasks) Run(ctx context.Context) error {
	telling, stop := context.WithCancel(context.WithoutCancel(ctx))
	var told sync.WaitGroup
	told.Go(func() { _ = t.statuses.Run(telling) })
	told.Go(func() { t.forget(telling) })
	err := t.workers.Run(ctx)
	t.mu.Lock()
	for _, j := range t.jobs {
		j.cancel()
		<-j.ended
	}
	t.mu.Unlock()
	stop()
	told.Wait()
	return err
}

// SyncPod begins a pod's tasks, once, and says that the pod's work is done when theirs is.
func (t *Tasks) SyncPod(ctx context.Context, pod *corev1.Pod) (end *podmill.Kill, err error) {
	if pod.Spec.RestartPolicy != corev1.RestartPolicyNever || len(pod.Spec.InitContainers) > 0 {
		return &podmill.Kill{Reason: "Unsupported", Message: "a task runs once: restartPolicy has to be Never, and there are no init containers"}, nil
	}
	j := t.job(pod.UID)
	if j == nil && len(pod.Status.ContainerStatuses) > 0 {
		return &podmill.Kill{}, nil // an earlier process had them, and they ended with it
	}
	if j == nil {
		j = t.begin(context.WithoutCancel(ctx), pod)
	}
	seen := j.look()
	t.report(pod, seen, podmill.Progress{})
	for i := range seen.Containers {
		if seen.Containers[i].State != podmill.StateExited {
			return nil, nil
		}
	}
	return &podmill.Kill{}, nil
}

// SyncTerminatingPod has the tasks end. A back end that can do more when the grace is over does it at the deadline; a goroutine can only be asked.
func (t *Tasks) SyncTerminatingPod(ctx context.Context, pod *corev1.Pod, end podmill.Termination) error {
	seen := &podmill.RuntimePod{PodRef: podmill.RefOf(pod)}
	if j := t.job(pod.UID); j != nil {
		j.cancel()
		select {
		case <-j.ended:
		case <-ctx.Done():
			return fmt.Errorf("stop tasks of pod %s: %w", podmill.RefOf(pod), context.Cause(ctx))
		}
		seen = j.look()
	}
	t.report(pod, seen, podmill.Progress{Termination: &end, Stopped: true})
	return nil
}

// SyncTerminatingRuntimePod has nothing to do: no task outlives the process that knows its pod.
func (t *Tasks) SyncTerminatingRuntimePod(context.Context, *podmill.RuntimePod) error { return nil }

// SyncTerminatedPod forgets the tasks, and says so where that was asked for.
func (t *Tasks) SyncTerminatedPod(_ context.Context, pod *corev1.Pod) error {
	t.mu.Lock()
	delete(t.jobs, pod.UID)
	t.mu.Unlock()
	if pod.DeletionTimestamp != nil {
		t.statuses.Finish(pod)
	}
	return nil
}

// report tells how a pod is. What a status is made of is a plain struct: no runtime has to stand behind it.
func (t *Tasks) report(pod *corev1.Pod, seen *podmill.RuntimePod, p podmill.Progress) {
	t.statuses.Report(status.Input{Pod: pod, Seen: seen, Progress: p, Runtime: "task"})
}

func (t *Tasks) job(pod types.UID) *job {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.jobs[pod]
}

// begin starts a pod's tasks.
func (t *Tasks) begin(ctx context.Context, pod *corev1.Pod) *job {
	ctx, cancel := context.WithCancel(ctx)
	j := &job{cancel: cancel, ended: make(chan struct{}), seen: podmill.RuntimePod{PodRef: podmill.RefOf(pod)}}
	now := time.Now()
	j.seen.Sandboxes = []podmill.Sandbox{{ID: string(pod.UID), Ready: true, CreatedAt: now}}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		j.seen.Containers = append(j.seen.Containers, podmill.Container{
			ID: string(pod.UID) + "." + c.Name, SandboxID: string(pod.UID), Name: c.Name, Image: c.Image,
			State: podmill.StateRunning, CreatedAt: now, StartedAt: now,
		})
	}
	t.mu.Lock()
	t.jobs[pod.UID] = j
	t.mu.Unlock()
	var tasks sync.WaitGroup
	for i := range pod.Spec.Containers {
		tasks.Go(func() {
			code := t.run(ctx, pod, &pod.Spec.Containers[i])
			j.mu.Lock()
			ended := &j.seen.Containers[i]
			ended.State, ended.ExitCode, ended.FinishedAt = podmill.StateExited, code, time.Now()
			j.mu.Unlock()
			t.workers.Sync(pod.UID)
		})
	}
	go func() {
		tasks.Wait()
		close(j.ended)
	}()
	return j
}

// look returns how the tasks are.
func (j *job) look() *podmill.RuntimePod {
	j.mu.Lock()
	defer j.mu.Unlock()
	seen := j.seen
	seen.Containers = append([]podmill.Container(nil), seen.Containers...)
	return &seen
}
