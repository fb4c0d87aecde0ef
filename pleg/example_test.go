package pleg_test

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/pleg"
)

// oneContainer is a runtime that holds one container.
type oneContainer struct{ state podmill.State }

func (r oneContainer) ListPods(_ context.Context, snap *podmill.Snapshot) error {
	snap.Items = append(snap.Items[:0], podmill.Item{Pod: ref("web"), ID: "c1", Container: "main", State: r.state})
	return nil
}

func (r oneContainer) InspectPod(_ context.Context, uid types.UID) (*podmill.RuntimePod, error) {
	return &podmill.RuntimePod{PodRef: ref(uid), Containers: []podmill.Container{{ID: "c1", Name: "main", State: r.state}}}, nil
}

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	changed := make(chan types.UID, 1)
	eyes := pleg.New(oneContainer{podmill.StateRunning}, func(pod types.UID) { changed <- pod },
		pleg.WithObserver(pleg.Observer{Event: func(e pleg.Event) { fmt.Println(e.Type, e.ID) }}))
	ended := make(chan error)
	go func() { ended <- eyes.Run(ctx) }()

	pod := <-changed
	seen, err := eyes.Observe(ctx, pod, false)
	fmt.Println(seen.PodRef, seen.Container("main").State, err)
	cancel()
	fmt.Println(<-ended)
	// Output:
	// ContainerStarted c1
	// default/pod-web(web) running <nil>
	// <nil>
}
