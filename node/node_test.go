package node_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/node"
)

// memory is an API in memory.
type memory struct {
	mu       sync.Mutex
	node     *corev1.Node
	made     int
	reports  int
	renewals []types.UID // of whom
	fail     error
}

func (m *memory) do(need bool, change func()) (*corev1.Node, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.fail != nil:
		return nil, m.fail
	case need && m.node == nil:
		return nil, podmill.ErrNotFound
	}
	change()
	return m.node.DeepCopy(), nil
}

func (m *memory) Node(context.Context) (*corev1.Node, error) { return m.do(true, func() {}) }

func (m *memory) CreateNode(_ context.Context, n *corev1.Node) (*corev1.Node, error) {
	return m.do(false, func() {
		m.made++
		m.node = n.DeepCopy()
		m.node.UID = types.UID([]string{"", "first", "second"}[m.made])
	})
}

func (m *memory) LabelNode(_ context.Context, labels map[string]string) (*corev1.Node, error) {
	return m.do(true, func() {
		for key, value := range labels {
			m.node.Labels[key] = value
		}
	})
}

func (m *memory) UpdateNodeStatus(_ context.Context, status *corev1.NodeStatus) (*corev1.Node, error) {
	return m.do(true, func() {
		m.reports++
		m.node.Status = *status.DeepCopy()
	})
}

func (m *memory) RenewLease(_ context.Context, owner *corev1.Node) error {
	_, err := m.do(false, func() { m.renewals = append(m.renewals, owner.UID) })
	return err
}

// look runs f while nobody else is in the API.
func (m *memory) look(f func()) {
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func start(t *testing.T, n *node.Node) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func well(context.Context) node.State {
	return node.State{Conditions: []corev1.NodeCondition{node.Ready(), node.Pressure(corev1.NodeDiskPressure, false)}}
}

// A node with nothing to say costs its lease every ten seconds and a status every five minutes.
func TestANodeWithNothingToSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		start(t, node.New(m, "n", well, node.WithLabels(map[string]string{"a": "b"}), node.WithTaints(corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule})))
		m.look(func() {
			if m.made != 1 || m.node.Labels["a"] != "b" || len(m.node.Spec.Taints) != 1 || len(m.renewals) != 1 {
				t.Fatalf("made %d times: %+v, lease %v", m.made, m.node, m.renewals)
			}
		})
		time.Sleep(time.Hour + time.Second)
		m.look(func() {
			if n := len(m.renewals); n < 360 || n > 362 {
				t.Errorf("%d renewals in an hour, want 361", n)
			}
			if m.reports < 12 || m.reports > 14 {
				t.Errorf("%d reports in an hour, want 13", m.reports)
			}
		})
	})
}

// older is a server that does not know all fields.
type older struct{ memory }

func (o *older) UpdateNodeStatus(ctx context.Context, status *corev1.NodeStatus) (*corev1.Node, error) {
	status = status.DeepCopy()
	status.RuntimeHandlers, status.Features = nil, nil
	return o.memory.UpdateNodeStatus(ctx, status)
}

// A server that leaves out what it does not know is not told of it with each look. What is new is told, and what somebody else writes over it is written again.
func TestAServerThatDropsAField(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &older{}
		var kernel atomic.Value
		kernel.Store("6")
		start(t, node.New(m, "n", func(ctx context.Context) node.State {
			s := well(ctx)
			s.RuntimeHandlers, s.Features = []corev1.NodeRuntimeHandler{{Name: "runc"}}, &corev1.NodeFeatures{}
			s.Info.KernelVersion, _ = kernel.Load().(string)
			return s
		}))
		time.Sleep(time.Hour + time.Second)
		m.look(func() {
			if m.reports < 12 || m.reports > 14 {
				t.Errorf("%d reports in an hour, want 13", m.reports)
			}
			m.reports, m.node.Status.Conditions = 0, nil
		})
		kernel.Store("7")
		time.Sleep(11 * time.Second)
		m.look(func() {
			if m.reports != 1 || m.node.Status.NodeInfo.KernelVersion != "7" || len(m.node.Status.Conditions) == 0 {
				t.Errorf("%d reports of what is new; the status is %+v", m.reports, m.node.Status)
			}
		})
	})
}

// What is behind a pointer is news only where it says something else.
func TestTheSameSwapIsNoNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		start(t, node.New(m, "n", func(ctx context.Context) node.State {
			s, bytes := well(ctx), int64(1)
			s.Info.Swap = &corev1.NodeSwapStatus{Capacity: &bytes}
			return s
		}))
		time.Sleep(time.Minute)
		m.look(func() {
			if m.reports != 1 {
				t.Errorf("%d reports in a minute, want 1", m.reports)
			}
		})
	})
}

// A look that hangs, as at a runtime that does not answer, ends in time for the cluster to hear of it.
func TestALookThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		start(t, node.New(m, "n", func(ctx context.Context) node.State {
			<-ctx.Done()
			return node.State{Conditions: []corev1.NodeCondition{node.Ready(context.Cause(ctx))}}
		}))
		time.Sleep(11 * time.Second)
		m.look(func() {
			if m.node == nil || m.node.Status.Conditions[0].Status != corev1.ConditionFalse {
				t.Errorf("after 11 s the Node is %+v, want one that is not ready", m.node)
			}
		})
	})
}

// What turns is told with the next look, and its transition time is that of the turn; what does not keeps its time.
func TestAConditionThatTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		var wrong error
		n := node.New(m, "n", func(context.Context) node.State {
			return node.State{Conditions: []corev1.NodeCondition{node.Ready(wrong), node.Pressure(corev1.NodeDiskPressure, false)}}
		})
		start(t, n)
		began := time.Now()
		time.Sleep(time.Minute + time.Millisecond)
		m.look(func() { wrong = errors.New("PLEG is not healthy") })
		n.Look()
		m.look(func() {
			ready, disk := m.node.Status.Conditions[0], m.node.Status.Conditions[1]
			if ready.Status != corev1.ConditionFalse || ready.Reason != "KubeletNotReady" || ready.Message != "PLEG is not healthy" {
				t.Errorf("Ready is %+v", ready)
			}
			if turned := ready.LastTransitionTime.Sub(began); turned < 59*time.Second || turned > time.Minute {
				t.Errorf("Ready turned after %v, want a minute", turned)
			}
			if stayed := disk.LastTransitionTime.Sub(began).Abs(); stayed > time.Second {
				t.Errorf("DiskPressure turned after %v, want never", stayed)
			}
		})
	})
}

// A node that is deleted is made anew, and the lease is the new one's. While the API is away nothing is lost.
func TestANodeThatIsDeletedComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		n := node.New(m, "n", well)
		start(t, n)
		m.look(func() { m.node, m.fail = nil, errors.New("the server is away") })
		time.Sleep(time.Hour)
		m.look(func() { m.fail = nil })
		time.Sleep(10 * time.Minute)
		m.look(func() {
			if m.made != 2 || m.renewals[len(m.renewals)-1] != "second" {
				t.Errorf("made %d times, the last lease is of %q", m.made, m.renewals[len(m.renewals)-1])
			}
		})
		if known := n.Known(); known == nil || known.UID != "second" {
			t.Errorf("known is %+v, want the second", known)
		}
	})
}

// A Node that is there keeps its taints and others' labels.
func TestANodeThatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{node: &corev1.Node{}}
		m.node.Name, m.node.Labels = "n", map[string]string{"a": "old", "other": "x"}
		start(t, node.New(m, "n", well, node.WithLabels(map[string]string{"a": "b"}), node.WithTaints(corev1.Taint{Key: "k"})))
		m.look(func() {
			if diff := cmp.Diff(map[string]string{"a": "b", "other": "x"}, m.node.Labels); diff != "" || len(m.node.Spec.Taints) != 0 || m.made != 0 {
				t.Errorf("made %d times, taints %v, labels (-want +got):\n%s", m.made, m.node.Spec.Taints, diff)
			}
		})
	})
}

func TestReadySaysAllThatIsWrong(t *testing.T) {
	c := node.Ready(errors.New("a"), nil, errors.New("b"), errors.New("a"))
	if c.Status != corev1.ConditionFalse || c.Message != "[a, b]" {
		t.Errorf("condition %+v", c)
	}
}

// watched is an API that tells of changes.
type watched struct {
	*memory
	changed chan func(*corev1.Node)
}

func (w *watched) WatchNode(ctx context.Context, changed func(*corev1.Node)) error {
	w.changed <- changed
	<-ctx.Done()
	return ctx.Err()
}

// What others make of a Node is known at once: a taint, a condition that they write over, that it is gone. What is old is not news.
func TestWhatOthersMakeOfANodeIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{&memory{}, make(chan func(*corev1.Node), 1)}
		n := node.New(w, "n", well)
		start(t, n)
		changed := <-w.changed
		version := func(v string, change func(*corev1.Node)) *corev1.Node {
			made := &corev1.Node{}
			w.look(func() {
				w.node.ResourceVersion = v
				change(w.node)
				made = w.node.DeepCopy()
			})
			return made
		}
		tainted := version("7", func(node *corev1.Node) { node.Spec.Taints = []corev1.Taint{{Key: "k"}} })
		changed(tainted)
		changed(version("6", func(node *corev1.Node) { node.Spec.Taints = nil }))
		if known := n.Known(); len(known.Spec.Taints) != 1 {
			t.Errorf("known is %+v, want the taint", known)
		}
		changed(version("8", func(node *corev1.Node) { node.Status.Conditions[0].Status = corev1.ConditionUnknown }))
		w.look(func() {
			if ready := w.node.Status.Conditions[0]; ready.Status != corev1.ConditionTrue {
				t.Errorf("Ready is %+v, want it restored", ready)
			}
			w.node = nil
		})
		changed(nil)
		w.look(func() {
			if w.made != 2 {
				t.Errorf("the Node was made %d times, want 2", w.made)
			}
		})
	})
}

// A Node that somebody else has made in place of the one that is known is registered, whether a watch tells of it or the answer to a write. What is heard late of
// the old one does not pass for the new one.
func TestANodeThatIsReplaced(t *testing.T) {
	for name, tell := range map[string]func(n *node.Node, changed func(*corev1.Node), other *corev1.Node){
		"by a watch": func(_ *node.Node, changed func(*corev1.Node), other *corev1.Node) { changed(other) },
		"by a write": func(*node.Node, func(*corev1.Node), *corev1.Node) { time.Sleep(6 * time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &watched{&memory{}, make(chan func(*corev1.Node), 1)}
				n := node.New(w, "n", well, node.WithLabels(map[string]string{"a": "b"}))
				start(t, n)
				changed := <-w.changed
				var first, other *corev1.Node
				w.look(func() {
					first = w.node.DeepCopy()
					first.ResourceVersion = "9"
					w.node.UID, w.node.Labels, w.node.ResourceVersion = "other", map[string]string{}, "8"
					other = w.node.DeepCopy()
				})
				tell(n, changed, other)
				w.look(func() {
					if w.node.Labels["a"] != "b" || w.renewals[len(w.renewals)-1] != "other" {
						t.Errorf("labels %v, the last lease is of %q", w.node.Labels, w.renewals[len(w.renewals)-1])
					}
				})
				changed(first)
				if known := n.Known(); known != nil && known.UID != "other" {
					t.Errorf("%q is known when the watch lags, want the other", known.UID)
				}
				w.look(func() {})
				if known := n.Known(); known == nil || known.UID != "other" {
					t.Errorf("known is %+v, want the other", known)
				}
			})
		})
	}
}
