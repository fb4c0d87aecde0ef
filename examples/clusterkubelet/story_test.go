package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/internal/testenv/apifault"
	"github.com/podmill/podmill/internal/testenv/testapi"
	"github.com/podmill/podmill/podmilltest"
)

// What goes wrong between the agent and a real server, with each kind of request that a pod's life needs, in the middle of its start and of its removal: the pod comes up
// and goes, with one sandbox and one container.
func TestFaultsOnTheWayToARealServer(t *testing.T) {
	c := newCluster(t)
	way := throughAProxy(c)
	c.start()
	c.Eventually("the node is ready", c.nodeReady)
	for name, effect := range map[string]apifault.Effect{
		"409":     apifault.Status(http.StatusConflict, metav1.StatusReasonConflict),
		"410":     apifault.ExpiredWatch(),
		"429":     apifault.RetryAfter(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, 1),
		"500":     apifault.Status(http.StatusInternalServerError, metav1.StatusReasonInternalError),
		"refused": apifault.Refuse(),
		"lost":    apifault.Lose(),
		"hangs":   apifault.Hang(),
	} {
		trouble := func(watches int) {
			way.Clear()
			for _, kind := range []apifault.Request{
				{Verb: "create", Resource: "serviceaccounts", Subresource: "token"}, {Verb: "patch", Resource: "pods", Subresource: "status"}, {Verb: "delete", Resource: "pods"},
			} {
				switch {
				case name == "410": // that is for watches
				case name == "hangs" && kind.Resource == "pods": // which is given up after half a minute
					way.Add(apifault.Fault{On: kind, Times: 1, Effect: effect})
				case name != "hangs":
					way.Add(apifault.Fault{On: kind, Times: 2, Effect: effect})
				}
			}
			if watches > 0 && name != "hangs" {
				way.Add(apifault.Fault{On: apifault.Request{Verb: "watch", Resource: "pods"}, Times: watches, Effect: effect})
				way.Cut()
			}
		}
		trouble(1) // more would only make the pauses longer
		c.CreatePod(sleeper("pod-" + name))
		pod := c.reaches("pod-"+name, "is ready", ready)
		seen := c.seen(pod.UID)
		if len(seen.Sandboxes) != 1 || len(seen.Containers) != 1 || pod.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("%s: %d sandboxes, %d containers, status %+v", name, len(seen.Sandboxes), len(seen.Containers), pod.Status)
		}
		if way.Struck() == 0 {
			t.Errorf("%s: nothing went wrong", name)
		}
		trouble(0)
		c.Delete("pods", pod.Name, 1)
		c.gone(pod.Name)
		if !c.seen(pod.UID).Empty() {
			t.Errorf("%s: the API has forgotten the pod, and the runtime holds something of it", name)
		}
	}
}

// An API server that is killed and started again, with what it knew, in the middle of a start, of a status and of a removal.
func TestTheAPIServerIsKilled(t *testing.T) {
	plane := testenv.OwnAPIServer(t)
	c := newNode(t, testapi.In(t, plane.ControlPlane))
	c.start()
	for _, name := range []string{"stays", "dies", "goes"} {
		c.CreatePod(sleeper(name))
	}
	stays, dies, goes := c.reaches("stays", "is ready", ready), c.reaches("dies", "is ready", ready), c.reaches("goes", "is ready", ready)
	before := c.seen(stays.UID).Container("main")
	version := c.Pod("stays").ResourceVersion
	c.CreatePod(sleeper("comes"))
	c.Delete("pods", "goes", -1)
	plane.Kill(t)
	ended := c.seen(dies.UID).Container("main").ID
	if err := c.runtime.StopContainer(t.Context(), ended, 0); err != nil {
		t.Fatal(err)
	}
	c.Eventually("the container runs again", func() bool {
		now := c.seen(dies.UID).Container("main")
		return now != nil && now.ID != ended && now.State == podmill.StateRunning
	})
	plane.Start(t)
	c.gone("goes")
	c.reaches("comes", "is ready", ready)
	c.reaches("dies", "was restarted once", func(pod *corev1.Pod) bool { return ready(pod) && pod.Status.ContainerStatuses[0].RestartCount == 1 })
	if !c.seen(goes.UID).Empty() {
		t.Error("the API has forgotten a pod, and the runtime holds something of it")
	}
	if now := c.seen(stays.UID).Container("main"); now == nil || now.ID != before.ID || c.Pod("stays").ResourceVersion != version {
		t.Errorf("the pod that stays was touched: %+v, %+v", now, c.Pod("stays").Status)
	}
}

// An agent that is killed and started again with thirty pods touches none of them, writes nothing about them, so that none flips Ready, and asks for nothing but what says that
// the node lives.
func TestThirtyPodsOverARestart(t *testing.T) {
	const pods = 30
	c := newCluster(t)
	way := throughAProxy(c)
	c.start()
	versions, containers := map[string]string{}, map[string]string{}
	for i := 0; i < pods; i += 5 { // a few at a time, for a machine that has others to serve
		for j := range 5 {
			c.CreatePod(sleeper(fmt.Sprintf("p%d", i+j)))
		}
		for j := range 5 {
			pod := c.reaches(fmt.Sprintf("p%d", i+j), "is ready", ready)
			containers[pod.Name] = c.seen(pod.UID).Container("main").ID
		}
	}
	writes := count(way.Take(), apifault.Request{Verb: "patch", Resource: "pods", Subresource: "status"})
	t.Logf("%d status writes for %d starts", writes, pods)
	if writes > 2*pods {
		t.Errorf("%d status writes for %d starts, want at most 2 each", writes, pods)
	}
	for name := range containers {
		versions[name] = c.Pod(name).ResourceVersion
	}
	c.signal(os.Kill)
	c.start()
	c.CreatePod(sleeper("last")) // when it runs the others have been looked at
	c.reaches("last", "is ready", ready)
	for name, version := range versions {
		pod := c.Pod(name)
		if pod.ResourceVersion != version || c.seen(pod.UID).Container("main").ID != containers[name] {
			t.Errorf("pod %s was touched: %+v", name, pod.Status)
		}
	}
	goesQuiet(c, way, "the last start is told of", func(r apifault.Request) bool {
		return r.Resource == "pods" && r.Verb != "watch" || r.Resource == "events"
	})
	way.Take()
	time.Sleep(31 * time.Second)
	rest := way.Take()
	if n := count(rest, apifault.Request{Verb: "update", Resource: "leases"}); n < 2 || n > 4 {
		t.Errorf("the lease was renewed %d times in half a minute", n)
	}
	for _, r := range rest {
		if r.Verb != "watch" && r.Resource != "leases" && !r.Is(apifault.Request{Verb: "patch", Resource: "nodes", Subresource: "status"}) || len(rest) > 8 {
			t.Errorf("at rest it is asked: %v", r)
		}
	}
}

// goesQuiet waits until five seconds go by without a request of a kind.
func goesQuiet(c *cluster, way *apifault.Faults, what string, kind func(apifault.Request) bool) {
	c.t.Helper()
	c.Eventually(what, func() bool {
		way.Take()
		time.Sleep(5 * time.Second)
		return !slices.ContainsFunc(way.Take(), kind)
	})
}

// A pod that is deleted by force while its container ignores the signal, and created again by the same name: the one ends, the other runs, and each is told as itself.
func TestANameComesBackOnARealServer(t *testing.T) {
	c := newCluster(t)
	c.start()
	stubborn := podmilltest.Pod("x/web", podmilltest.Grace(5*time.Second), podmilltest.Container("main", busybox, podmilltest.Runs("trap '' TERM; while :; do sleep 1; done")))
	c.CreatePod(stubborn)
	first := c.reaches("web", "is ready", ready)
	c.Delete("pods", "web", -1)
	c.Delete("pods", "web", 0)
	second := c.CreatePod(sleeper("web"))
	c.reaches("web", "is ready", func(pod *corev1.Pod) bool { return pod.UID == second.UID && ready(pod) })
	c.Eventually("the first has ended", func() bool { return c.seen(first.UID).Empty() })
	if pod := c.Pod("web"); pod.UID != second.UID || pod.Status.ContainerStatuses[0].RestartCount != 0 || !ready(pod) {
		t.Errorf("the second is %+v", pod)
	}
}

// A pod that was deleted by force, and created again on another node, is left alone: its end is confirmed to nobody, and nobody is asked about it for ever.
func TestANameComesBackOnAnotherNode(t *testing.T) {
	c := newCluster(t)
	way := throughAProxy(c)
	c.start()
	c.CreatePod(podmilltest.Pod("x/web", podmilltest.Grace(3*time.Second), podmilltest.Container("main", busybox, podmilltest.Runs("trap '' TERM; while :; do sleep 1; done"))))
	first := c.reaches("web", "is ready", ready)
	c.Delete("pods", "web", -1)
	c.Delete("pods", "web", 0)
	elsewhere := sleeper("web")
	elsewhere.Namespace, elsewhere.Spec.NodeName = c.Namespace, "m-"+c.Node
	c.Create("pods", elsewhere, nil)
	c.Eventually("the first has ended", func() bool { return c.seen(first.UID).Empty() })
	goesQuiet(c, way, "nobody asks about it any more", func(r apifault.Request) bool { return r.Name == "web" })
	if pod := c.Pod("web"); pod == nil || pod.Status.Phase != corev1.PodPending {
		t.Errorf("the pod of the other node is %+v", pod)
	}
	c.Delete("pods", "web", 0)
}

// A pod runs by the handler of its RuntimeClass, and what the class costs beside its containers counts. A class that appears later starts the pod that waits for it.
func TestRuntimeClasses(t *testing.T) {
	c := newCluster(t)
	c.start()
	class := func(name string) *nodev1.RuntimeClass {
		return &nodev1.RuntimeClass{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "runc",
			Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("16Mi")}},
		}
	}
	name := testenv.UniqueName(t)
	c.CreateClass(class(name))
	pod := sleeper("classy")
	pod.Spec.RuntimeClassName = &name
	c.CreatePod(pod)
	running := c.reaches("classy", "is ready", ready)
	if memory := running.Spec.Overhead.Memory(); memory.Value() != 16<<20 {
		t.Errorf("overhead %v", running.Spec.Overhead)
	}
	if got := c.seen(running.UID).Sandboxes[0].RuntimeHandler; got != "runc" {
		t.Errorf("the sandbox runs by handler %q", got)
	}
	pod = sleeper("early")
	pod.Spec.RuntimeClassName = &name
	c.signal(os.Interrupt)
	c.CreatePod(pod)
	c.DeleteClass(name)
	c.start()
	early := c.Pod("early")
	c.Eventually("people are told what is missing", func() bool {
		events := &corev1.EventList{}
		c.List("events", events)
		return slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.InvolvedObject.UID == early.UID && e.Reason == "FailedCreatePodSandBox"
		})
	})
	c.CreateClass(class(name))
	c.reaches("early", "is ready", ready)
}

// B083, on a real server: a static pod that needs what pods of the API have gets it, and they say why they ended.
func TestACriticalStaticPodPreempts(t *testing.T) {
	c := newCluster(t)
	c.start()
	c.Eventually("the node is ready", c.nodeReady)
	victim := sleeper("victim")
	victim.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: allCPU(t)}
	c.CreatePod(victim)
	c.reaches("victim", "is ready", ready)
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: critical, namespace: " + c.Namespace + "}\nspec:\n  terminationGracePeriodSeconds: 0\n" +
		"  containers: [{name: main, image: \"" + busybox + "\", command: [sleep, \"100000\"], resources: {requests: {cpu: 500m}}}]\n"
	if err := os.WriteFile(filepath.Join(c.manifests, "critical.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c.reaches("critical-"+c.Node, "is ready", ready)
	ended := c.reaches("victim", "has ended", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })
	if ended.Status.Reason != "Preempting" || !slices.ContainsFunc(ended.Status.Conditions, func(p corev1.PodCondition) bool { return p.Type == corev1.DisruptionTarget }) {
		t.Errorf("the victim is %+v", ended.Status)
	}
}

// A pod that is deleted while its image is pulled, from a registry that does not answer, goes at once.
func TestDeletedWhilePullingOnARealServer(t *testing.T) {
	c := newCluster(t)
	registry, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan net.Conn, 100)
	go func() {
		for {
			conn, err := registry.Accept()
			if err != nil {
				return
			}
			asked <- conn // and never answered
		}
	}()
	c.after = append(c.after, func() {
		_ = registry.Close()
		for len(asked) > 0 {
			_ = (<-asked).Close()
		}
	})
	c.start()
	for _, grace := range []int64{-1, 0} {
		pod := podmilltest.Pod(fmt.Sprintf("x/pulls%d", grace+1), podmilltest.Grace(time.Minute), podmilltest.Container("main", registry.Addr().String()+"/slow:1"))
		created := c.CreatePod(pod)
		defer (<-asked).Close()
		begin := time.Now()
		c.Delete("pods", created.Name, grace)
		c.gone(created.Name)
		c.Eventually("nothing is left of it", func() bool { return c.seen(created.UID).Empty() })
		if took := time.Since(begin); took > 45*time.Second {
			t.Errorf("it took %v to be rid of a pod that was never started", took)
		}
	}
}
