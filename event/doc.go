// Package event takes the events that an agent has for people, where there is no API server to send them to.
//
// # Usage
//
//	events := event.JSONLines(file)
//	go events.Run(ctx)
//
// [JSONLines] writes one JSON object a line, with the names of a corev1.Event, so that what reads `kubectl get events -o json` reads it
// too:
//
//	{"lastTimestamp":"2026-01-02T03:04:05Z","type":"Normal","reason":"Pulling","involvedObject":{"kind":"Pod",...},"message":"...","count":1}
//
// [Tee] gives events to several recorders, [Func] makes a recorder of a func, [Discard] has none.
//
// # Guarantees
//
// Event never blocks, whatever the writer does. What is said again within the window, five minutes, is counted and written once more at
// its end, with the count. Memory is bounded, as is what is written: 50 events a second, after a burst of 100, and messages of at most 1024
// bytes. What is too much is dropped and counted ([Recorder.Stats]).
//
// # What you implement
//
// An [io.Writer]; each Write gets one whole line. Rotation is the writer's own business.
//
// # Concurrency
//
// Everything may be called concurrently. Only Run writes, and it runs once.
//
// # Shutdown
//
// When Run's context ends it writes what has not been written yet, the counts too, and returns. Let it end after those who still have
// something to say.
//
// # Observability
//
// Stats counts; a writer that fails is in the log.
//
// # Testing
//
// Func notes what a test wants to see. The recorder runs in virtual time.
package event
