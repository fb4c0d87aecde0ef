package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"syscall"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// bench is a run of all that is measured.
type bench struct {
	tap     *tap
	runtime runtimeapi.RuntimeServiceClient // beside the tap, to look
	exits   exits
	record  *raw // learns from the first round what to replay
	results results
	quiet   func(context.Context) float64 // waits for a quiet window, and says how busy the machine was with other things
	idle    time.Duration
}

// names are pods as the runtime knows them: a static pod's name ends in its node's.
func names(prefix string, from, to int) []string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf("%s-%d-bench", prefix, i))
	}
	return all
}

// turn has a subject do one round of the timed work and leaves nothing behind.
func (b *bench) turn(ctx context.Context, s subject, w *work, keep bool) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if w.configMap && s.name() == kubelet {
		return nil // it takes no ConfigMap for a static pod
	}
	if err := s.up(ctx); err != nil {
		return err
	}
	defer s.down()
	first := b.tap.mark()
	if err := b.warm(ctx, s, w); err != nil {
		return fmt.Errorf("the pod before: %w", err)
	}
	time.Sleep(2 * time.Second) // what a start of the agent brings with it
	busy := b.quiet(ctx)
	note := func(what, unit string, value float64) {
		if keep {
			b.results.add(what, s.name(), unit, value, busy)
		}
	}
	pods := names(w.name(), 0, w.pods)
	began := b.tap.mark()
	if err := b.start(ctx, s, w, pods, note); err != nil {
		return err
	}
	if w.restart {
		if err := b.restart(ctx, s, pods[0], note); err != nil {
			return err
		}
	}
	if err := b.remove(ctx, s, pods, w, note); err != nil {
		return err
	}
	b.counted(w, pods, began, note)
	if s.name() == minikubelet && !keep {
		b.record.record(b.tap.since(first))
	}
	return nil
}

// warm has one pod come and go. Agents are up for weeks, and each code page that one touches for the first time is a fault that takes many microseconds: what is
// timed is not to be the first pod of a process.
func (b *bench) warm(ctx context.Context, s subject, w *work) error {
	pods := names("warm", 0, 1)
	mark := b.tap.mark()
	if err := s.start(ctx, pods, w.configMap); err != nil {
		return err
	}
	if _, err := b.tap.each(ctx, mark, "StartContainer", pods); err != nil {
		return err
	}
	if err := s.remove(ctx, pods); err != nil {
		return err
	}
	gone := "RemovePodSandbox"
	if s.name() == kubelet {
		gone = "StopPodSandbox" // it removes a minute later
	}
	_, err := b.tap.each(ctx, mark, gone, pods)
	return err
}

// work is a number of pods that start together.
type work struct {
	pods      int
	configMap bool
	restart   bool // one of them is killed
	rounds    int  // beside the first, which nobody counts
}

func (w *work) name() string {
	if w.configMap {
		return "config"
	}
	return fmt.Sprintf("pods%d", w.pods)
}

func (w *work) title() string {
	switch {
	case w.configMap:
		return "start of 1, ConfigMap volume"
	case w.pods == 1:
		return "start of 1"
	default:
		return fmt.Sprintf("burst of %d", w.pods)
	}
}

// start takes the time from the pods' arrival to the end of the last StartContainer.
func (b *bench) start(ctx context.Context, s subject, w *work, pods []string, note func(string, string, float64)) error {
	mark, began := b.tap.mark(), time.Now()
	used := s.used()
	if err := s.start(ctx, pods, w.configMap); err != nil {
		return err
	}
	all, err := b.tap.each(ctx, mark, "StartContainer", pods)
	if err != nil {
		return err
	}
	note(w.title(), "ms", ms(all[len(all)-1].ended.Sub(began)))
	if w.pods > 1 {
		note("half of them, "+w.title(), "ms", ms(all[len(all)/2-1].ended.Sub(began)))
	}
	if used > 0 {
		note("agent's own CPU, "+w.title(), "ms a pod", ms(s.used()-used)/float64(w.pods))
	}
	return nil
}

// restart kills a container's process. It takes the time until the next instance has started, and that from the runtime's own event to the
// call that creates it.
func (b *bench) restart(ctx context.Context, s subject, pod string, note func(string, string, float64)) error {
	id, pid, err := b.containerOf(ctx, pod)
	if err != nil {
		return err
	}
	time.Sleep(time.Second) // let the start settle
	mark, began := b.tap.mark(), time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill process %d of pod %s: %w", pid, pod, err)
	}
	told, err := b.exits.wait(ctx, id)
	if err != nil {
		return err
	}
	if err := s.killed(ctx, pod); err != nil {
		return err
	}
	create, err := b.tap.last(ctx, mark, "CreateContainer", []string{pod})
	if err != nil {
		return err
	}
	start, err := b.tap.last(ctx, mark, "StartContainer", []string{pod})
	if err != nil {
		return err
	}
	note("restart after kill", "ms", ms(start.ended.Sub(began)))
	note("exit event to create call", "ms", ms(create.began.Sub(told)))
	time.Sleep(time.Second)
	return nil
}

// remove takes the time from the word to the end of the last StopPodSandbox, and waits until all is gone.
func (b *bench) remove(ctx context.Context, s subject, pods []string, w *work, note func(string, string, float64)) error {
	mark, began := b.tap.mark(), time.Now()
	if err := s.remove(ctx, pods); err != nil {
		return err
	}
	last, err := b.tap.last(ctx, mark, "StopPodSandbox", pods)
	if err == nil && w.pods > 1 {
		note(fmt.Sprintf("delete of %d", w.pods), "ms", ms(last.ended.Sub(began)))
	}
	if err != nil {
		return err
	}
	return b.gone(ctx, s, mark, pods)
}

// gone waits until an agent has removed its pods. A kubelet would take a minute for that, so it is done in its place.
func (b *bench) gone(ctx context.Context, s subject, mark int, pods []string) error {
	if s.name() == kubelet {
		s.down()
		return b.sweep()
	}
	_, err := b.tap.each(ctx, mark, "RemovePodSandbox", pods)
	time.Sleep(time.Second) // the agent removes directories and cgroups
	return err
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }

// containerOf finds a pod's running container and its process.
func (b *bench) containerOf(ctx context.Context, pod string) (id string, pid int, err error) {
	list, err := b.runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}, LabelSelector: map[string]string{"io.kubernetes.pod.name": pod},
	}})
	if err != nil {
		return "", 0, err
	}
	if len(list.Containers) != 1 {
		return "", 0, fmt.Errorf("pod %s has %d running containers", pod, len(list.Containers))
	}
	id = list.Containers[0].Id
	status, err := b.runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: true})
	if err != nil {
		return "", 0, err
	}
	var info struct{ Pid int }
	err = json.Unmarshal([]byte(status.Info["info"]), &info)
	if err == nil && info.Pid <= 1 {
		err = fmt.Errorf("the runtime tells no process of container %s", id)
	}
	return id, info.Pid, err
}

// exits keeps when the runtime told that a container has exited.
type exits struct {
	mu      sync.Mutex
	at      map[string]time.Time
	changed chan struct{}
}

func (e *exits) follow(ctx context.Context, runtime runtimeapi.RuntimeServiceClient) error {
	e.at, e.changed = map[string]time.Time{}, make(chan struct{})
	stream, err := runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		return err
	}
	go func() {
		for {
			event, err := stream.Recv()
			if err != nil {
				return
			}
			if event.ContainerEventType == runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT {
				e.mu.Lock()
				e.at[event.ContainerId] = time.Now()
				close(e.changed)
				e.changed = make(chan struct{})
				e.mu.Unlock()
			}
		}
	}()
	return nil
}

func (e *exits) wait(ctx context.Context, id string) (time.Time, error) {
	for {
		e.mu.Lock()
		at, ok := e.at[id]
		changed := e.changed
		e.mu.Unlock()
		if ok {
			return at, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("the runtime did not tell that container %s has exited: %w", id, ctx.Err())
		}
	}
}
