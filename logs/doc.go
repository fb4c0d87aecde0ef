// Package logs keeps the logs of running containers to a size, in the layout and under the names that the kubelet gives them.
//
// # Usage
//
//	if reopener, ok := podmill.As[podmill.LogReopener](runtime); ok {
//		err := logs.New("/var/log/pods", eyes.Pods, reopener).Run(ctx)
//	}
//
// # Guarantees
//
// A log that has grown to 10 MiB is renamed to <attempt>.log.<time>, and the runtime told to open a new one. Older ones are compressed
// to <attempt>.log.<time>.gz; the newest of them stays as it is, for readers to come to its end. With the one that is written there are five
// files at most. A container that writes without end so takes 50 MiB, and what it writes between two looks.
//
// Only regular files below the directory are touched. A rotation that was interrupted is taken up by the next: no line is lost, and no
// half of a compressed file stays. Where the runtime cannot be told, the log keeps its name and grows.
//
// # What you implement
//
// A function that returns what the runtime holds, and [podmill.LogReopener].
//
// # Concurrency and shutdown
//
// One goroutine, that of Run, does everything; it ends with its context.
//
// # Observability
//
// [WithObserver] is told of every rotation.
package logs
