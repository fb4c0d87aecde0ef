package apiserver

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// following runs a source in virtual time, on a server that may begin with a fault.
func following(t *testing.T, story func(t *testing.T, s *server, take func() []string), fault ...func(*http.Request) (*http.Response, error)) {
	synctest.Test(t, func(t *testing.T) {
		s, d := newServer(), &deliveries{}
		for _, f := range fault {
			s.fault = f
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan time.Time)
		go func() {
			_ = NewPodSource(s.client(t)).Run(ctx, d.deliver)
			ended <- time.Now()
		}()
		story(t, s, func() []string {
			synctest.Wait()
			return d.take()
		})
		cancel()
		asked := time.Now()
		if took := (<-ended).Sub(asked); took > time.Second {
			t.Errorf("Run has ended %v after its context", took)
		}
	})
}

func wantDelivered(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
}

func TestChangesAreDeliveredOneByOne(t *testing.T) {
	following(t, func(t *testing.T, s *server, take func() []string) {
		wantDelivered(t, take(), "SET ")
		s.put("a", "1")
		s.put("b", "2")
		wantDelivered(t, take(), "UPDATE a=1", "UPDATE b=2")
		s.put("a", "1")
		s.drop("b")
		s.put("b", "3")
		wantDelivered(t, take(), "UPDATE a=1", "REMOVE b=2", "UPDATE b=3")
	})
}

// A watch that was cut goes on where it was; where that is forgotten the list is asked for anew, and what differs is delivered.
func TestOnlyDifferencesAfterALostWatch(t *testing.T) {
	following(t, func(t *testing.T, s *server, take func() []string) {
		for _, name := range []string{"a", "b", "c"} {
			s.put(name, types.UID(name+"1"))
		}
		take()
		s.set(func() { s.fault = away })
		s.cut()
		s.put("b", "b1")
		time.Sleep(time.Second)
		s.set(func() { s.fault = nil })
		time.Sleep(time.Minute)
		wantDelivered(t, take(), "UPDATE b=b1")
		s.set(func() { s.fault = away })
		s.forget()
		s.drop("a")
		s.put("b", "b1")
		s.drop("c")
		s.put("c", "c2")
		s.put("d", "d1")
		s.set(func() { s.log = nil })
		time.Sleep(3 * 24 * time.Hour) // nothing is deleted because the server is silent
		wantDelivered(t, take())
		s.set(func() { s.fault = nil })
		time.Sleep(time.Minute)
		wantDelivered(t, take(), "REMOVE a=a1 c=c1", "UPDATE b=b1 c=c2 d=d1")
	})
}

// A source that has no whole list has nothing to say, whatever the server answers instead.
func TestNotSyncedWithoutAList(t *testing.T) {
	for code, reason := range map[int]string{http.StatusInternalServerError: "InternalError", http.StatusTooManyRequests: "TooManyRequests", http.StatusForbidden: "Forbidden"} {
		following(t, func(t *testing.T, s *server, take func() []string) {
			s.put("a", "1")
			time.Sleep(time.Hour)
			wantDelivered(t, take())
			s.set(func() { s.fault = nil })
			time.Sleep(time.Minute)
			wantDelivered(t, take(), "SET a=1")
		}, func(*http.Request) (*http.Response, error) {
			return respond(code, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}), nil
		})
	}
}

// A watch that is open and says nothing is noticed.
func TestAWatchThatStalls(t *testing.T) {
	following(t, func(t *testing.T, s *server, take func() []string) {
		take()
		s.set(func() { s.mute = true })
		s.put("a", "1")
		wantDelivered(t, take())
		time.Sleep(silence + time.Second)
		wantDelivered(t, take(), "UPDATE a=1")
	})
}

func TestDeliveredPodsAreLeanAndSayWhereTheyAreFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a", "1")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		updates := make(chan podmill.PodUpdate)
		go func() {
			defer close(updates)
			_ = NewPodSource(s.client(t)).Run(ctx, func(u podmill.PodUpdate) { updates <- u })
		}()
		pod := (<-updates).Pods[0]
		if pod.ManagedFields != nil || pod.Annotations[podmill.AnnotationConfigSource] != "api" {
			t.Errorf("managed fields %v, annotations %v", pod.ManagedFields, pod.Annotations)
		}
		cancel()
		for range updates {
		}
	})
}
