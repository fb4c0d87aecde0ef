package main

import (
	"context"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	vknode "github.com/virtual-kubelet/virtual-kubelet/node"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// Provider is the pods of a virtual node. virtual-kubelet tells it what is wanted, workers see to that, and what becomes of it they tell back: to
// virtual-kubelet it is a [vknode.PodLifecycleHandler] and a [vknode.PodNotifier], to them a [podmill.StatusSink].
//
// virtual-kubelet knows pods by their names. A pod that was replaced by another of its name is here still the pod that it was, by its UID: the new one is
// started, the old one ends, and a status of the one never becomes the other's.
type Provider struct {
	workers Workers
	api     API

	mu     sync.Mutex
	pods   map[types.NamespacedName]*corev1.Pod // as they are wanted, with their newest statuses
	notify func(*corev1.Pod)
}

// Workers make pods into what they are wanted to be, and tell a status sink how they are. podworkers.Workers are some; [Containers] have an agent do it.
type Workers interface {
	Update(pod *corev1.Pod)
	Remove(pod types.UID)
}

// API is what a provider asks an API server.
type API interface {
	// Pod returns the pod that has this name now, nil if none has. It costs no request.
	Pod(namespace, name string) *corev1.Pod
	// Confirm removes a pod whose deletion was asked for.
	Confirm(ctx context.Context, pod *corev1.Pod) error
}

var (
	_ vknode.PodLifecycleHandler = (*Provider)(nil)
	_ vknode.PodNotifier         = (*Provider)(nil)
	_ podmill.StatusSink         = (*Provider)(nil)
)

// NewProvider returns a provider without pods. Its workers are made for it, as the sink that they tell is the provider.
func NewProvider[W Workers](api API, hire func(sink podmill.StatusSink) (W, error)) (*Provider, W, error) {
	p := &Provider{api: api, pods: map[types.NamespacedName]*corev1.Pod{}, notify: func(*corev1.Pod) {}}
	workers, err := hire(p)
	p.workers = workers
	return p, workers, err
}

// CreatePod has a pod run.
func (p *Provider) CreatePod(_ context.Context, pod *corev1.Pod) error {
	if before := p.keep(pod); before != nil {
		p.workers.Remove(before.UID)
	}
	p.workers.Update(pod)
	return nil
}

// UpdatePod has it run as it is now.
func (p *Provider) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	return p.CreatePod(ctx, pod)
}

// DeletePod has it end and returns at once: that it has ended its status tells. A pod that is deleted has its grace; one that the API does not know
// any more is forgotten besides.
func (p *Provider) DeletePod(_ context.Context, pod *corev1.Pod) error {
	if known := p.named(pod.Namespace, pod.Name); known == nil || known.UID != pod.UID {
		return errdefs.NotFoundf("pod %s is not here", podmill.RefOf(pod))
	}
	if pod.DeletionTimestamp != nil {
		p.workers.Update(pod)
		return nil
	}
	p.forget(pod)
	p.workers.Remove(pod.UID)
	return nil
}

// GetPod returns the pod of a name, unless the API has given the name to another since: that one is not here yet.
func (p *Provider) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	pod := p.named(namespace, name)
	if pod != nil {
		if now := p.api.Pod(namespace, name); now == nil || now.UID == pod.UID {
			return pod, nil
		}
	}
	return nil, errdefs.NotFoundf("pod %s/%s is not here", namespace, name)
}

// GetPodStatus returns its newest status.
func (p *Provider) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods returns all pods.
func (p *Provider) GetPods(context.Context) ([]*corev1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*corev1.Pod, 0, len(p.pods))
	for _, pod := range p.pods {
		all = append(all, pod.DeepCopy())
	}
	return all, nil
}

// NotifyPods says who is told of statuses.
func (p *Provider) NotifyPods(_ context.Context, notify func(*corev1.Pod)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notify = notify
}

// UpdateStatus takes a status from the workers, and tells it.
func (p *Provider) UpdateStatus(_ context.Context, pod *corev1.Pod, status *corev1.PodStatus) error {
	told := pod.DeepCopy()
	told.Status = *status.DeepCopy()
	p.mu.Lock()
	known, notify := p.pods[nameOf(pod)], p.notify
	if known == nil || known.UID != pod.UID {
		p.mu.Unlock()
		return podmill.ErrGone
	}
	kept := *known
	kept.Status = told.Status
	p.pods[nameOf(pod)] = &kept
	p.mu.Unlock()
	notify(told)
	return nil
}

// FinishPod confirms a deletion, once the API has the last status, with the exit codes in it. By itself virtual-kubelet would do so too, but not before the
// whole grace period is over.
func (p *Provider) FinishPod(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp == nil {
		return nil
	}
	for {
		now := p.api.Pod(pod.Namespace, pod.Name)
		switch {
		case now == nil || now.UID != pod.UID:
			return nil
		case now.Status.Phase == corev1.PodSucceeded || now.Status.Phase == corev1.PodFailed:
			return p.api.Confirm(ctx, pod)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// keep remembers a pod, and returns the one that had its name before if that is another.
func (p *Provider) keep(pod *corev1.Pod) (before *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := pod.DeepCopy()
	if known := p.pods[nameOf(pod)]; known != nil && known.UID != pod.UID {
		before = known
	} else if known != nil {
		kept.Status = known.Status
	}
	p.pods[nameOf(pod)] = kept
	return before
}

func (p *Provider) forget(pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pods, nameOf(pod))
}

// named returns a copy of the pod of a name, nil if there is none.
func (p *Provider) named(namespace, name string) *corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pods[types.NamespacedName{Namespace: namespace, Name: name}].DeepCopy()
}

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}
