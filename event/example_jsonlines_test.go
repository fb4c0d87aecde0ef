package event_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/event"
)

// Each event is a line; what is said again is one line more, with its count.
func ExampleJSONLines() {
	var file bytes.Buffer
	events := event.JSONLines(&file)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- events.Run(ctx) }()
	web := corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web"}
	for range 3 {
		events.Event(web, corev1.EventTypeNormal, "BackOff", `Back-off pulling image "web:1"`)
	}
	cancel()
	if err := <-done; err != nil {
		fmt.Println(err)
	}

	for dec := json.NewDecoder(&file); dec.More(); {
		var e corev1.Event
		if err := dec.Decode(&e); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(e.InvolvedObject.Name, e.Reason, e.Message, e.Count)
	}
	// Output:
	// web BackOff Back-off pulling image "web:1" 1
	// web BackOff Back-off pulling image "web:1" 3
}
