package apiserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/lifecycle"
)

// Mirrors shows static pods in the API server: each has a mirror pod there, with its status, which is created once, made anew when the static pod is
// another, and removed when the static pod has ended. Whoever deletes a mirror does not touch the pod, and gets the mirror back.
//
//	mirrors := apiserver.NewMirrors(client, statuses, node.Known)
//	api := apiserver.NewPodSource(client, apiserver.WithMirrors(mirrors))
//	static := mirrors.Follow(manifests)
//
// It is the sink of all pods: statuses of static pods go to their mirrors, others to the sink that it was given. Nothing is shown before the
// API server has told which mirrors there are, and no mirror is removed for want of its pod before every followed source is synced.
type Mirrors struct {
	client *Client
	sink   *StatusSink
	owner  func() *corev1.Node

	mu      sync.Mutex
	listed  bool // the API's mirrors are known
	waiting int  // followed sources that are not synced
	shown   map[types.NamespacedName]*shown
	queue   map[types.NamespacedName]time.Time // when to look at it
	failed  map[types.NamespacedName]int       // how often in a row
	wake    chan struct{}
}

// shown is what there is by one name.
type shown struct {
	mirror  *corev1.Pod
	removed types.UID // the last mirror that was removed here: news of it are old
	static  *corev1.Pod
	wanted  bool
	status  *corev1.PodStatus // the newest of static; nil if there is none yet
}

var _ podmill.StatusSink = (*Mirrors)(nil)

// NewMirrors returns mirrors in the name of the client's node. owner returns its Node, nil while there is none; sink is where other
// pods' statuses go.
func NewMirrors(client *Client, sink *StatusSink, owner func() *corev1.Node) *Mirrors {
	return &Mirrors{
		client: client, sink: sink, owner: owner, shown: map[types.NamespacedName]*shown{},
		queue: map[types.NamespacedName]time.Time{}, failed: map[types.NamespacedName]int{}, wake: make(chan struct{}, 1),
	}
}

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// Follow returns the source with its pods shown.
func (m *Mirrors) Follow(source podmill.PodSource) podmill.PodSource {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting++
	return &mirrored{PodSource: source, mirrors: m, pods: map[types.UID]*corev1.Pod{}}
}

type mirrored struct {
	podmill.PodSource
	mirrors *Mirrors
	synced  bool
	pods    map[types.UID]*corev1.Pod
}

// Run implements [podmill.PodSource].
func (s *mirrored) Run(ctx context.Context, deliver func(podmill.PodUpdate)) error {
	return s.PodSource.Run(ctx, func(u podmill.PodUpdate) {
		s.note(u)
		deliver(u)
	})
}

func (s *mirrored) note(u podmill.PodUpdate) {
	s.mirrors.mu.Lock()
	defer s.mirrors.mu.Unlock()
	before := map[types.UID]*corev1.Pod{}
	if u.Op == podmill.ReplacePods {
		before, s.pods = s.pods, before
	}
	for _, pod := range u.Pods {
		if known, ok := s.pods[pod.UID]; ok && u.Op == podmill.DeletePods {
			before[pod.UID] = known
			delete(s.pods, pod.UID)
		}
		if u.Op != podmill.DeletePods {
			s.pods[pod.UID] = pod
			delete(before, pod.UID)
			s.mirrors.want(pod)
		}
	}
	for _, pod := range before {
		s.mirrors.unwant(pod)
	}
	if !s.synced {
		s.synced = true
		s.mirrors.waiting--
		s.mirrors.lookAtAll()
	}
}

// want notes that a static pod is wanted. Callers hold mu.
func (m *Mirrors) want(pod *corev1.Pod) {
	s := m.of(nameOf(pod))
	if s.static == nil || s.static.UID != pod.UID {
		s.status = nil
	}
	s.static, s.wanted = pod, true
	m.look(nameOf(pod), 0)
}

// unwant notes that a static pod is not wanted any more. It is shown until it has finished. Callers hold mu.
func (m *Mirrors) unwant(pod *corev1.Pod) {
	if s := m.of(nameOf(pod)); s.static != nil && s.static.UID == pod.UID {
		s.wanted = false
	}
}

func (m *Mirrors) of(name types.NamespacedName) *shown {
	s := m.shown[name]
	if s == nil {
		s = &shown{}
		m.shown[name] = s
	}
	return s
}

// UpdateStatus implements [podmill.StatusSink]. The status of a static pod is written by Run, as soon as there is a mirror for it.
func (m *Mirrors) UpdateStatus(ctx context.Context, pod *corev1.Pod, status *corev1.PodStatus) error {
	if !lifecycle.Static(pod.Annotations) {
		return m.sink.UpdateStatus(ctx, pod, status)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.of(nameOf(pod))
	if s.static == nil { // it ends, and this is the first that is heard of it
		s.static = pod
	}
	if s.static.UID == pod.UID {
		s.status = status.DeepCopy()
		m.look(nameOf(pod), 0)
	}
	return nil
}

// FinishPod implements [podmill.StatusSink].
func (m *Mirrors) FinishPod(ctx context.Context, pod *corev1.Pod) error {
	if !lifecycle.Static(pod.Annotations) {
		return m.sink.FinishPod(ctx, pod)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.of(nameOf(pod)); !s.wanted && (s.static == nil || s.static.UID == pod.UID) {
		s.static, s.status = nil, nil
		m.look(nameOf(pod), 0)
	}
	return nil
}

// set, put and drop are what the API shows.
func (m *Mirrors) set(mirrors []*corev1.Pod) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.shown {
		s.mirror = nil
	}
	for _, mirror := range mirrors {
		m.see(mirror)
	}
	m.listed = true
	m.lookAtAll()
}

func (m *Mirrors) put(mirror *corev1.Pod) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.see(mirror)
}

func (m *Mirrors) see(mirror *corev1.Pod) {
	if s := m.of(nameOf(mirror)); s.removed != mirror.UID {
		s.mirror = mirror
		if mirror.DeletionTimestamp != nil || s.static == nil {
			m.look(nameOf(mirror), 0)
		}
	}
}

func (m *Mirrors) drop(mirror *corev1.Pod) {
	if m == nil {
		return
	}
	m.sink.forget(mirror.UID)
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.of(nameOf(mirror)); s.mirror != nil && s.mirror.UID == mirror.UID {
		s.mirror = nil
		m.look(nameOf(mirror), 0)
	}
}

// look has Run look at a name, after a time. Callers hold mu.
func (m *Mirrors) look(name types.NamespacedName, after time.Duration) {
	at := time.Now().Add(after)
	if known, ok := m.queue[name]; !ok || at.Before(known) {
		m.queue[name] = at
	}
	select { // also for what waits already: it may be that the mirrors are known now
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *Mirrors) lookAtAll() {
	for name := range m.shown {
		m.look(name, 0)
	}
}

// Run shows the pods until ctx ends. It returns nil.
func (m *Mirrors) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.wake:
		case <-timer.C:
		}
		due, next := m.due()
		for _, name := range due {
			err := m.show(ctx, name)
			if ctx.Err() == nil {
				m.outcome(ctx, name, err)
			}
		}
		timer.Reset(next)
	}
}

// due takes what is to be looked at now, and says when there is more if nothing happens.
func (m *Mirrors) due() (names []types.NamespacedName, next time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next = time.Hour
	if !m.listed {
		return nil, next
	}
	for name, at := range m.queue {
		if wait := time.Until(at); wait > 0 {
			next = min(next, wait)
			continue
		}
		names = append(names, name)
		delete(m.queue, name)
	}
	return names, next
}

// outcome has what has failed looked at again: after a second, doubling up to five minutes.
func (m *Mirrors) outcome(ctx context.Context, name types.NamespacedName, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		delete(m.failed, name)
		return
	}
	m.failed[name]++
	m.look(name, min(5*time.Minute, time.Second<<min(m.failed[name]-1, 10)))
	logr.FromContextOrDiscard(ctx).Error(err, "a static pod is not shown as it is", "pod", name.String(), "attempt", m.failed[name])
}

// show takes the next step for the pod of a name, and those after it.
func (m *Mirrors) show(ctx context.Context, name types.NamespacedName) error {
	for {
		if done, err := m.step(ctx, name); done || err != nil {
			return err
		}
	}
}

// step takes the next step for the pod of a name. done says that it was the last.
func (m *Mirrors) step(ctx context.Context, name types.NamespacedName) (done bool, err error) {
	m.mu.Lock()
	s, synced := *m.of(name), m.waiting == 0
	step := nextMirror(s.static, s.wanted, s.mirror)
	if s.static == nil && s.mirror == nil {
		delete(m.shown, name)
	}
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	switch {
	case step == mirrorLeave, step == mirrorRemove && s.static == nil && !synced:
		return true, nil
	case step == mirrorRemove:
		return false, m.remove(ctx, s.mirror)
	case step == mirrorCreate:
		return false, m.create(ctx, s.static)
	case s.status == nil:
		return true, nil
	}
	err = m.sink.UpdateStatus(ctx, s.mirror, s.status)
	if errors.Is(err, podmill.ErrGone) {
		m.drop(s.mirror)
	}
	return true, err
}

func (m *Mirrors) create(ctx context.Context, static *corev1.Pod) error {
	owner := m.owner()
	if owner == nil {
		return fmt.Errorf("create mirror of pod %s: the node is not registered yet", podmill.RefOf(static))
	}
	created := &corev1.Pod{}
	err := m.client.core.Post().Namespace(static.Namespace).Resource("pods").Body(mirrorOf(static, owner)).Do(ctx).Into(created)
	if err != nil {
		return fmt.Errorf("create mirror of pod %s: %w", podmill.RefOf(static), err)
	}
	m.put(created)
	return nil
}

func (m *Mirrors) remove(ctx context.Context, mirror *corev1.Pod) error {
	if err := m.client.remove(ctx, mirror); err != nil {
		return fmt.Errorf("remove mirror pod %s: %w", podmill.RefOf(mirror), err)
	}
	m.sink.forget(mirror.UID)
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.of(nameOf(mirror))
	s.removed = mirror.UID
	if s.mirror != nil && s.mirror.UID == mirror.UID {
		s.mirror = nil
	}
	return nil
}
