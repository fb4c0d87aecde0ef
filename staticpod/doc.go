// Package staticpod finds pods in files: a directory of manifests, or a URL.
//
// # Usage
//
//	manifests := staticpod.NewDirectory("/etc/podmill/manifests", "node1")
//
// The result is a [podmill.PodSource]. A manifest is YAML or JSON and may have several documents: pods, and ConfigMaps and Secrets for them, which
// the directory gives as [podmill.ConfigMaps], [podmill.Secrets] and [podmill.ObjectWatcher].
//
// # Guarantees
//
// Decoding is strict: an unknown, misplaced or doubled field, a wrong type, or a pod that an API server would refuse is reported with file, line and field, and
// the file's last good content keeps its pods running; so does a file that is empty, which is one that is being written. A bad file does nothing to
// another. Only files that end in .yaml, .yml or .json are looked at, and none that is hidden.
//
// A pod gets what the kubelet gives it: a name that ends in the node's, the annotations kubernetes.io/config.*, a toleration of NoExecute, and a UID that
// is made of its content and the node's name. It stays the same over restarts, upgrades, another order of fields and another name of the file, and
// changes with the content.
//
// Of two pods of one name the one of the first file, by name, is run; the other is reported.
//
// A directory that cannot be read, or is not there, is not an empty one: nothing is stopped because of it.
//
// # Concurrency
//
// All methods may be called concurrently; Run once at a time.
//
// # Shutdown
//
// Run returns when its context ends.
//
// # Observability
//
// [Observer] is told of every problem, when it appears; the logger of Run's context is, too.
package staticpod
