package apiserver

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/testenv/apifault"
	"github.com/podmill/podmill/internal/testenv/memapi"
	"github.com/podmill/podmill/podmilltest"
)

// mirroring is a node that shows static pods, in virtual time: the pods of the API, those of files, and the statuses that an agent would tell.
type mirroring struct {
	*testing.T
	api   *memapi.Server
	way   *apifault.Faults
	files *podmilltest.PodSource
	*Mirrors

	stop func()
}

func inMirrors(t *testing.T, story func(m *mirroring)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &mirroring{T: t, api: memapi.New("n")}
		m.way = apifault.New(m.api)
		m.api.Create("nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
		m.start()
		defer func() { m.stop() }()
		story(m)
	})
}

func (m *mirroring) start() {
	m.Helper()
	client, err := NewClient(&rest.Config{Host: "http://server", Transport: m.way, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, "n")
	if err != nil {
		m.Fatal(err)
	}
	m.files = podmilltest.NewPodSource("file")
	m.Mirrors = NewMirrors(client, NewStatusSink(client), func() *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "node"}} })
	files := m.Follow(m.files) // before anything runs: else nobody is waited for
	ctx, cancel := context.WithCancel(m.Context())
	ended := make(chan error)
	ignore := func(podmill.PodUpdate) {}
	parts := []func() error{
		func() error { return m.Mirrors.Run(ctx) },
		func() error { return NewPodSource(client, WithMirrors(m.Mirrors)).Run(ctx, ignore) },
		func() error { return files.Run(ctx, ignore) },
	}
	for _, part := range parts {
		go func() { ended <- part() }()
	}
	m.stop = func() {
		cancel()
		for range parts {
			if err := <-ended; err != nil && ctx.Err() == nil {
				m.Error(err)
			}
		}
	}
	synctest.Wait()
}

// static is a pod of a manifest file with that content.
func static(content string) *corev1.Pod {
	return podmilltest.Pod("x/web", podmilltest.UID(types.UID(content)), podmilltest.Container("c", content),
		podmilltest.Annotation(podmill.AnnotationConfigSource, "file"), podmilltest.Annotation(podmill.AnnotationConfigHash, content))
}

// runs tells that a static pod runs, ends that it has ended and nothing is left of it.
func (m *mirroring) runs(pod *corev1.Pod) {
	m.Helper()
	if err := m.UpdateStatus(m.Context(), pod, &corev1.PodStatus{Phase: corev1.PodRunning, Message: string(pod.UID)}); err != nil {
		m.Fatal(err)
	}
}

func (m *mirroring) ends(pod *corev1.Pod) {
	m.Helper()
	if err := m.FinishPod(m.Context(), pod); err != nil {
		m.Fatal(err)
	}
}

// shows waits and fails unless the API shows a static pod then: with its content, running, and by no more pods than one.
func (m *mirroring) shows(content string) *corev1.Pod {
	m.Helper()
	time.Sleep(6 * time.Minute) // more than the longest pause after a failure
	synctest.Wait()
	mirror := m.api.Pod("x", "web")
	switch {
	case content == "" && mirror != nil:
		m.Fatalf("there is a mirror: %+v", mirror)
	case content != "" && (mirror == nil || mirror.Annotations[AnnotationMirror] != content || mirror.Status.Phase != corev1.PodRunning || mirror.Status.Message != content):
		m.Fatalf("the mirror is %+v, want that of %s", mirror, content)
	}
	return mirror
}

func (m *mirroring) creations() int {
	n := 0
	for _, r := range m.way.Take() {
		if r.Is(apifault.Request{Verb: "create", Resource: "pods"}) {
			n++
		}
	}
	return n
}

// Whoever deletes a mirror gets it back, deleted with a grace period or by force, and also while the server is hardly there.
func TestADeletedMirrorComesBack(t *testing.T) {
	for _, grace := range []int64{-1, 0} {
		for name, effect := range map[string]apifault.Effect{
			"no fault": nil, "refused": apifault.Refuse(), "lost": apifault.Lose(), "500": apifault.Status(http.StatusInternalServerError, metav1.StatusReasonInternalError),
		} {
			t.Run(name, func(t *testing.T) {
				inMirrors(t, func(m *mirroring) {
					pod := static("one")
					m.files.Replace(pod)
					m.runs(pod)
					first := m.shows("one")
					if effect != nil {
						m.way.Add(apifault.Fault{Times: 4, Effect: effect})
						m.way.Cut()
					}
					m.api.Delete("pods", "x", "web", grace)
					if again := m.shows("one"); again.UID == first.UID {
						t.Error("the mirror was not deleted")
					}
				})
			})
		}
	}
}

// A static pod that is changed while the server is away is shown as it is when the server is back, when the pod before it still stops as well as when it has gone.
func TestAStaticPodThatIsChangedWhileTheServerIsAway(t *testing.T) {
	for _, gone := range []bool{true, false} {
		inMirrors(t, func(m *mirroring) {
			one, two := static("one"), static("two")
			m.files.Replace(one)
			m.runs(one)
			m.shows("one")
			m.way.Add(apifault.Fault{Effect: apifault.Refuse()})
			m.way.Cut()
			m.files.Replace(two)
			time.Sleep(24 * time.Hour)
			if gone {
				m.ends(one)
				m.runs(two)
			}
			m.way.Clear()
			time.Sleep(time.Minute)
			m.ends(one)
			m.runs(two)
			m.shows("two")
			m.files.Replace()
			time.Sleep(time.Second)
			m.ends(two)
			m.shows("")
		})
	}
}

// A mirror that an agent left behind goes when every source has been heard, and none wants its pod; one whose pod is still there stays as it is.
func TestAMirrorThatIsLeftBehind(t *testing.T) {
	for _, stays := range []bool{true, false} {
		inMirrors(t, func(m *mirroring) {
			pod := static("one")
			m.files.Replace(pod)
			m.runs(pod)
			first := m.shows("one")
			m.stop()
			m.start()
			m.way.Take()
			m.shows("one") // no source has been heard yet
			if !stays {
				m.files.Replace()
				m.shows("")
				return
			}
			m.files.Replace(pod)
			m.runs(pod)
			if again := m.shows("one"); again.UID != first.UID || again.ResourceVersion != first.ResourceVersion || m.creations() != 0 {
				t.Errorf("the mirror was touched: %+v", again)
			}
		})
	}
}

// A pod of the API that has the name of a mirror is not touched. When it has gone the static pod is shown.
func TestANameThatARealPodHas(t *testing.T) {
	inMirrors(t, func(m *mirroring) {
		taken := m.api.CreatePod(podmilltest.Pod("x/web", podmilltest.Container("c", "i")))
		pod := static("one")
		m.files.Replace(pod)
		m.runs(pod)
		time.Sleep(time.Hour)
		if now := m.api.Pod("x", "web"); now.UID != taken.UID || now.ResourceVersion != taken.ResourceVersion {
			t.Fatalf("the pod of the API was touched: %+v", now)
		}
		if n := m.creations(); n > 30 {
			t.Errorf("%d attempts in an hour", n)
		}
		m.api.Delete("pods", "x", "web", 0)
		m.shows("one")
	})
}

// A mirror whose creation is not answered is not created twice, and its status is told.
func TestACreationThatIsNotAnswered(t *testing.T) {
	inMirrors(t, func(m *mirroring) {
		m.way.Add(apifault.Fault{On: apifault.Request{Verb: "create", Resource: "pods"}, Times: 1, Effect: apifault.Lose()})
		pod := static("one")
		m.files.Replace(pod)
		m.runs(pod)
		mirror := m.shows("one")
		if !slices.ContainsFunc(mirror.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == "node" }) || m.creations() != 1 {
			t.Errorf("the mirror is %+v", mirror)
		}
	})
}
