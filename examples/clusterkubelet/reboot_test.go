package main

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	"github.com/podmill/podmill/apiserver"
	"github.com/podmill/podmill/checkpoint"
	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/internal/testenv/apifault"
	"github.com/podmill/podmill/podmilltest"
)

// startKept starts, in place of the agent, one that keeps what the API server tells it.
func (v *virtual) startKept() {
	v.Helper()
	v.stop()
	client, err := apiserver.NewClient(&rest.Config{Host: "http://server", Transport: v.way, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, "n")
	if err != nil {
		v.Fatal(err)
	}
	kept, err := checkpoint.Open(filepath.Join(v.root, "checkpoint"))
	if err != nil {
		v.Fatal(err)
	}
	objects, statuses := apiserver.NewObjects(client), apiserver.NewStatusSink(client)
	pods := objects.Follow(apiserver.NewPodSource(client, apiserver.WithStatuses(statuses)))
	a, err := agent.New(v.use, v.root, []podmill.PodSource{kept.Source(pods)}, agent.WithObjects(kept.Objects(objects)), agent.WithStatusSink(kept.Sink(statuses)))
	if err != nil {
		v.Fatal(err)
	}
	ctx, cancel := context.WithCancel(v.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	v.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			v.Errorf("the agent ended with: %v", err)
		}
	}
}

// A node that loses its power, and its way to the API server with it, runs its pods again, with their ConfigMaps and tokens. When the server is back it is told so in one write for
// each pod, and nothing is started anew.
func TestARebootWithoutTheServer(t *testing.T) {
	testenv.Root(t)
	inVirtualTime(t, func(v *virtual) {
		const pods = 5
		v.startKept()
		for i := range pods {
			v.api.CreatePod(needy(fmt.Sprintf("p%d", i)))
		}
		for i := range pods {
			v.says(time.Minute, fmt.Sprintf("p%d", i))
		}
		v.pass(time.Minute)
		v.stop()
		v.stop = func() {}
		v.rt.Reboot()
		v.rt.Log().Reset()
		v.way.Add(apifault.Fault{Effect: apifault.Refuse()})
		v.startKept()
		v.pass(10 * time.Minute)
		if n := v.rt.Log().Count(podmilltest.OpStartContainer); n != pods {
			t.Fatalf("%d containers were started, want %d\n%s", n, pods, v.rt.Log())
		}
		v.pass(2 * time.Hour)
		v.way.Take()
		v.way.Clear()
		v.until(3*time.Minute, "the server is told", func() bool {
			for i := range pods {
				if pod := v.api.Pod("x", fmt.Sprintf("p%d", i)); !ready(pod) || pod.Status.ContainerStatuses[0].RestartCount != 1 {
					return false
				}
			}
			return true
		})
		v.pass(time.Hour)
		if n := count(v.way.Take(), apifault.Request{Verb: "patch", Resource: "pods", Subresource: "status"}); n != pods {
			t.Errorf("%d statuses were written when the server was back, want %d", n, pods)
		}
		if n := v.rt.Log().Count(podmilltest.OpStartContainer) + v.rt.Log().Count(podmilltest.OpStopContainer); n != pods {
			t.Errorf("pods were touched when the server was back\n%s", v.rt.Log())
		}
		for i := range pods {
			if pod := v.api.Pod("x", fmt.Sprintf("p%d", i)); pod.Status.Phase != corev1.PodRunning {
				t.Errorf("pod %s is %+v", pod.Name, pod.Status)
			}
		}
	})
}
