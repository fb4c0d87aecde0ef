package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

// node is an agent's side of a checkpoint, from a boot to the next.
type node struct {
	*Checkpoint
	t      *testing.T
	api    *podmilltest.PodSource
	stop   func()
	writes atomic.Int32

	mu      sync.Mutex
	updates []string
	pods    map[string]*corev1.Pod
}

// boot starts a node over what a former one has kept in dir. Its API is silent until the test lets it speak.
func boot(t *testing.T, dir string) *node {
	t.Helper()
	n := &node{t: t, api: podmilltest.NewPodSource("api"), pods: map[string]*corev1.Pod{}}
	c, err := Open(dir, WithObserver(Observer{Written: func(int, int, time.Duration, error) { n.writes.Add(1) }}))
	if err != nil {
		t.Fatal(err)
	}
	n.Checkpoint = c
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	source := c.Source(n.api)
	go func() { ended <- source.Run(ctx, n.deliver) }()
	n.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, errAway) {
			t.Error(err)
		}
		_ = c.journal.close()
	})
	t.Cleanup(n.stop)
	return n
}

func (n *node) deliver(u podmill.PodUpdate) {
	n.mu.Lock()
	defer n.mu.Unlock()
	names := ""
	for _, pod := range u.Pods {
		names += " " + pod.Name + statusWord(pod)
		n.pods[pod.Name] = pod
	}
	n.updates = append(n.updates, u.Op.String()+names)
}

func statusWord(pod *corev1.Pod) string {
	if pod.Status.Message == "" {
		return ""
	}
	return "(" + pod.Status.Message + ")"
}

func (n *node) delivered(want ...string) {
	n.t.Helper()
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	if diff := cmp.Diff(want, n.updates); diff != "" {
		n.t.Errorf("delivered (-want +got):\n%s", diff)
	}
}

func pod(name string, opts ...podmilltest.PodOption) *corev1.Pod {
	return podmilltest.Pod("default/"+name, append(opts, podmilltest.Container("c", "i:1"))...)
}

func status(message string) *corev1.PodStatus {
	return &corev1.PodStatus{Phase: corev1.PodRunning, Message: message}
}

var errAway = errors.New("the API is away")

// B090, B093: a node that boots without its API starts the pods that it knew, with the statuses that it had, and is not synced.
func TestABootWithoutTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		n := boot(t, dir)
		n.api.Replace(pod("a"), pod("b"), pod("c"))
		synctest.Wait()
		sink := podmilltest.NewStatusSink()
		sink.Fail(func(*corev1.Pod) error { return errAway })
		if err := n.Sink(sink).UpdateStatus(t.Context(), pod("a"), status("restarted twice")); !errors.Is(err, errAway) {
			t.Errorf("UpdateStatus: %v, want the sink's error", err)
		}
		n.api.Delete(pod("b"))
		n.delivered("SET a b c", "REMOVE b")
		n.stop()

		n = boot(t, dir)
		time.Sleep(2900 * time.Millisecond)
		n.delivered()
		time.Sleep(200 * time.Millisecond)
		n.delivered("UPDATE a(restarted twice) c")
		time.Sleep(48 * time.Hour)
		n.api.Replace(pod("a"), pod("d"))
		n.delivered("UPDATE a(restarted twice) c", "SET a(restarted twice) d")
		n.stop()

		n = boot(t, dir)
		time.Sleep(time.Minute)
		n.delivered("UPDATE a(restarted twice) d")
	})
}

// A source that fails is not waited for, and one that answers is not doubted.
func TestKeptPodsComeWhenTheSourceFailsAndNotWhenItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		n := boot(t, dir)
		n.api.Replace(pod("a"))
		time.Sleep(time.Second)
		n.stop()

		n = boot(t, dir)
		n.api.Fail(errAway)
		n.delivered("UPDATE a")
		n.stop()

		n = boot(t, dir)
		time.Sleep(time.Second)
		n.api.Replace()
		time.Sleep(time.Minute)
		n.delivered("SET")
		n.stop()

		n = boot(t, dir)
		time.Sleep(time.Minute)
		n.delivered()
	})
}

// The API may know more than the disk: it is told before the disk is, and another agent may have run in between.
func TestWhatTheSourceKnowsBetterHolds(t *testing.T) {
	restarted := func(times int32) *corev1.PodStatus {
		s := status(fmt.Sprint(times))
		s.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", RestartCount: times}}
		return s
	}
	over := func(message string) *corev1.PodStatus {
		return &corev1.PodStatus{Phase: corev1.PodSucceeded, Message: message}
	}
	for name, tc := range map[string]struct {
		kept, told *corev1.PodStatus
		want       string
	}{
		"nothing is told":                {restarted(1), &corev1.PodStatus{}, "1"},
		"the same":                       {restarted(1), restarted(1), "1"},
		"more restarts are kept":         {restarted(2), restarted(1), "2"},
		"more restarts are told":         {restarted(1), restarted(2), "2"},
		"the end is told":                {restarted(3), over("told"), "told"},
		"the end is kept":                {over("kept"), restarted(3), "kept"},
		"an end is kept and one is told": {over("kept"), over("told"), "kept"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				n := boot(t, dir)
				n.api.Replace(pod("a"))
				synctest.Wait()
				if err := n.Sink(podmilltest.NewStatusSink()).UpdateStatus(t.Context(), pod("a"), tc.kept); err != nil {
					t.Fatal(err)
				}
				n.stop()
				n = boot(t, dir)
				told := pod("a")
				told.Status = *tc.told
				n.api.Replace(told)
				n.delivered("SET a(" + tc.want + ")")
			})
		})
	}
}

// The end of a pod is on disk before the API hears of it: after that nobody would find it out.
func TestAnEndIsKeptBeforeItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		n := boot(t, dir)
		n.api.Replace(pod("a"))
		time.Sleep(time.Second)
		told := 0
		sink := podmilltest.NewStatusSink()
		sink.Fail(func(pod *corev1.Pod) error {
			told++
			var kept corev1.PodStatus
			if again, _ := open(t, n.journal.path); !again.get(statusKey(pod.UID), &kept) || kept.Phase != corev1.PodSucceeded {
				t.Errorf("on disk the pod is %q", kept.Phase)
			}
			return nil
		})
		if err := n.Sink(sink).UpdateStatus(t.Context(), pod("a"), &corev1.PodStatus{Phase: corev1.PodSucceeded}); err != nil || told != 1 {
			t.Errorf("told %d times, %v", told, err)
		}
	})
}

// The conditions that others set are those of the API, the node's own those that it had.
func TestOthersConditionsAreTheAPIs(t *testing.T) {
	condition := func(kind string, is corev1.ConditionStatus) corev1.PodCondition {
		return corev1.PodCondition{Type: corev1.PodConditionType(kind), Status: is}
	}
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		a := pod("a")
		a.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}}
		n := boot(t, dir)
		n.api.Replace(a)
		synctest.Wait()
		own := status("own")
		own.Conditions = []corev1.PodCondition{condition("Ready", corev1.ConditionTrue), condition("gate", corev1.ConditionFalse)}
		if err := n.Sink(podmilltest.NewStatusSink()).UpdateStatus(t.Context(), a, own); err != nil {
			t.Fatal(err)
		}
		n.stop()

		n = boot(t, dir)
		theirs := a.DeepCopy()
		theirs.Status.Conditions = []corev1.PodCondition{
			condition("Ready", corev1.ConditionFalse), condition("gate", corev1.ConditionTrue), condition("DisruptionTarget", corev1.ConditionTrue),
		}
		n.api.Replace(theirs)
		n.delivered("SET a(own)")
		want := []corev1.PodCondition{
			condition("Ready", corev1.ConditionTrue), condition("gate", corev1.ConditionTrue), condition("DisruptionTarget", corev1.ConditionTrue),
		}
		if diff := cmp.Diff(want, n.pods["a"].Status.Conditions); diff != "" {
			t.Errorf("conditions (-want +got):\n%s", diff)
		}
		if len(theirs.Status.Conditions) != 3 || theirs.Status.Message != "" {
			t.Error("the source's pod was changed")
		}
	})
}

// A pod that was to be deleted is kept until the sink has confirmed it, so that its end goes on after a restart.
func TestAPodIsKeptUntilItsEndIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		n := boot(t, dir)
		gone := pod("a", podmilltest.Deleted(30*time.Second))
		n.api.Replace(gone)
		synctest.Wait()
		sink := podmilltest.NewStatusSink()
		sink.Fail(func(*corev1.Pod) error { return errAway })
		if err := n.Sink(sink).FinishPod(t.Context(), gone); !errors.Is(err, errAway) {
			t.Errorf("FinishPod: %v, want the sink's error", err)
		}
		n.stop()

		n = boot(t, dir)
		time.Sleep(time.Minute)
		n.delivered("UPDATE a")
		if n.pods["a"].DeletionTimestamp == nil {
			t.Error("the pod comes back without its deletion")
		}
		sink.Fail(nil)
		if err := n.Sink(sink).FinishPod(t.Context(), gone); err != nil {
			t.Error(err)
		}
		n.stop()

		n = boot(t, dir)
		time.Sleep(time.Minute)
		n.delivered()
	})
}

// A sink is told of a pod as the API has it, not as it was recalled, or it would take for sent what is not.
func TestTheSinkSeesThePodOfItsSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		for _, message := range []string{"first", "second"} {
			n := boot(t, dir)
			n.api.Replace(pod("a"))
			synctest.Wait()
			sink := podmilltest.NewStatusSink()
			sink.Fail(func(pod *corev1.Pod) error {
				if pod.Status.Message != "" {
					t.Errorf("the sink is told of a pod with the status %q", pod.Status.Message)
				}
				return nil
			})
			if err := n.Sink(sink).UpdateStatus(t.Context(), n.pods["a"], status(message)); err != nil {
				t.Error(err)
			}
			n.stop()
		}
	})
}

// A burst of pods and statuses is one write or two, not one each.
func TestABurstIsWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := boot(t, t.TempDir())
		n.api.Replace()
		time.Sleep(time.Second)
		before := n.writes.Load()
		sink := n.Sink(podmilltest.NewStatusSink())
		for i := range 100 {
			n.api.Upsert(pod(fmt.Sprint("pod-", i)))
		}
		synctest.Wait()
		for i := range 100 {
			if err := sink.UpdateStatus(t.Context(), pod(fmt.Sprint("pod-", i)), status("on")); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if writes := n.writes.Load() - before; writes != 1 {
			t.Errorf("%d writes, want 1", writes)
		}
		n.api.Upsert(pod("pod-1"))
		time.Sleep(time.Second)
		if writes := n.writes.Load() - before; writes != 1 {
			t.Errorf("%d writes after a pod was told that is known, want 1", writes)
		}
	})
}

func TestObjectsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		n := boot(t, dir)
		api := podmilltest.NewObjects()
		for _, name := range []string{"used", "unused", "deleted"} {
			api.SetConfigMap(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"k": "v"}})
		}
		n.api.Replace(pod("a", podmilltest.Volume("v", fromConfigMap("used")), podmilltest.Volume("w", fromConfigMap("deleted"))))
		synctest.Wait()
		objects := n.Objects(api)
		for _, name := range []string{"used", "unused", "deleted"} {
			if _, err := objects.ConfigMap(t.Context(), "default", name); err != nil {
				t.Error(err)
			}
		}
		api.Delete(podmill.ObjectRef{Kind: "ConfigMap", Namespace: "default", Name: "deleted"})
		if _, err := objects.ConfigMap(t.Context(), "default", "deleted"); !errors.Is(err, podmill.ErrNotFound) {
			t.Errorf("a ConfigMap that was deleted: %v, want ErrNotFound", err)
		}
		n.stop()

		n = boot(t, dir)
		api.Fail(errAway)
		objects = n.Objects(api)
		cm, err := objects.ConfigMap(t.Context(), "default", "used")
		if err != nil || cm.Data["k"] != "v" {
			t.Errorf("the ConfigMap that was kept: %v, %v", cm, err)
		}
		for _, name := range []string{"unused", "deleted"} {
			if _, err := objects.ConfigMap(t.Context(), "default", name); !errors.Is(err, errAway) {
				t.Errorf("a ConfigMap that was not kept: %v, want the provider's error", err)
			}
		}
		n.api.Replace(pod("b"))
		time.Sleep(time.Second)
		n.stop()

		n = boot(t, dir)
		if _, err := n.Objects(api).ConfigMap(t.Context(), "default", "used"); !errors.Is(err, errAway) {
			t.Errorf("a ConfigMap that no pod refers to: %v, want the provider's error", err)
		}
	})
}

// everything has what a provider may have beside ConfigMaps and Secrets, or is silent.
type everything struct {
	*podmilltest.Objects
	away error
}

func (e *everything) Services(context.Context, string) ([]*corev1.Service, error) {
	return []*corev1.Service{{ObjectMeta: metav1.ObjectMeta{Name: "dns"}}}, e.away
}

func (e *everything) ServiceAccountToken(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) (podmill.Token, error) {
	return podmill.Token{Value: "canary", Expires: time.Now().Add(time.Hour)}, e.away
}

func (e *everything) RuntimeClass(context.Context, string) (*nodev1.RuntimeClass, error) {
	return &nodev1.RuntimeClass{Handler: "kata"}, e.away
}

// What a provider has beside ConfigMaps and Secrets is had through a checkpoint too, and what it has not is not.
func TestOtherRolesOfAProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		a := pod("a")
		a.Spec.RuntimeClassName = new("kata")
		for _, away := range []error{nil, errAway} {
			n := boot(t, dir)
			if away == nil {
				n.api.Replace(a)
			}
			synctest.Wait()
			objects := n.Objects(&everything{Objects: podmilltest.NewObjects(), away: away})
			services, _ := podmill.As[podmill.Services](objects)
			if all, err := services.Services(t.Context(), "default"); err != nil || len(all) != 1 {
				t.Errorf("services: %v, %v", all, err)
			}
			tokens, _ := podmill.As[podmill.ServiceAccountTokens](objects)
			token, err := tokens.ServiceAccountToken(t.Context(), a, &corev1.ServiceAccountTokenProjection{Audience: "a/b"})
			if err != nil || token.Value != "canary" {
				t.Errorf("token: %v, %v", token, err)
			}
			classes, _ := podmill.As[podmill.RuntimeClasses](objects)
			if class, err := classes.RuntimeClass(t.Context(), "kata"); err != nil || class.Handler != "kata" {
				t.Errorf("runtime class: %v, %v", class, err)
			}
			if _, err := classes.RuntimeClass(t.Context(), "unused"); !errors.Is(err, away) {
				t.Errorf("a runtime class that no pod names: %v, want %v", err, away)
			}
			if _, ok := podmill.As[podmill.ObjectWatcher](objects); !ok {
				t.Error("changes of objects are not told")
			}
			n.stop()
		}
		n := boot(t, dir)
		n.api.Replace()
		time.Sleep(time.Second)
		n.stop()
		if data, err := os.ReadFile(n.journal.path); err != nil || strings.Contains(string(data), "canary") {
			t.Errorf("the token of a pod that is gone is on disk: %v", err)
		}
		plain := n.Objects(hanging{})
		if _, ok := podmill.As[podmill.Services](plain); ok {
			t.Error("there are Services, and nobody has any")
		}
		if _, ok := podmill.As[podmill.ServiceAccountTokens](plain); ok {
			t.Error("there are tokens, and nobody has any")
		}
	})
}

func fromConfigMap(name string) corev1.VolumeSource {
	return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

// hanging is a provider that does not answer.
type hanging struct{}

func (hanging) ConfigMap(ctx context.Context, _, _ string) (*corev1.ConfigMap, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hanging) Secret(ctx context.Context, _, _ string) (*corev1.Secret, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A provider that hangs is waited for once, not by each object of each pod.
func TestAProviderThatHangsIsNotWaitedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := boot(t, t.TempDir())
		n.api.Replace(pod("a", podmilltest.Volume("v", fromConfigMap("used"))))
		synctest.Wait()
		api := podmilltest.NewObjects()
		api.SetConfigMap(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "used"}})
		if _, err := n.Objects(api).ConfigMap(t.Context(), "default", "used"); err != nil {
			t.Fatal(err)
		}
		objects := n.Objects(hanging{})
		for i, want := range []time.Duration{3 * time.Second, 10 * time.Millisecond, 10 * time.Millisecond} {
			began := time.Now()
			if _, err := objects.ConfigMap(t.Context(), "default", "used"); err != nil || time.Since(began) != want {
				t.Errorf("look %d: %v after %v, want %v", i, err, time.Since(began), want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if _, err := objects.Secret(ctx, "default", "unknown"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("what is not kept: %v after %v, want the caller's own patience", err, time.Since(began))
		}
	})
}

func TestKits(t *testing.T) {
	newCheckpoint := func(t *testing.T) *Checkpoint {
		c, err := Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.journal.close() })
		return c
	}
	t.Run("PodSource", func(t *testing.T) {
		podmilltest.PodSourceTest(t, func(t *testing.T) podmilltest.PodSourceEnv {
			from := podmilltest.NewPodSource("api")
			from.Replace()
			return podmilltest.PodSourceEnv{
				Source: newCheckpoint(t).Source(from),
				Put:    func(_ *testing.T, pod *corev1.Pod) { from.Upsert(pod) },
				Remove: func(_ *testing.T, pod *corev1.Pod) { from.Delete(pod) },
			}
		})
	})
	t.Run("StatusSink", func(t *testing.T) {
		podmilltest.StatusSinkTest(t, func(t *testing.T) podmilltest.StatusSinkEnv {
			c, to := newCheckpoint(t), podmilltest.NewStatusSink()
			return podmilltest.StatusSinkEnv{
				Sink: c.Sink(to),
				Add: func(t *testing.T, pod *corev1.Pod) {
					if err := c.keep("api", podmill.PodUpdate{Op: podmill.UpsertPods, Pods: []*corev1.Pod{pod}}); err != nil {
						t.Error(err)
					}
				},
				Status: func(_ *testing.T, pod *corev1.Pod) *corev1.PodStatus { return to.Status(pod.UID) },
			}
		})
	})
}
