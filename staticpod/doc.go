// Package staticpod has pods that stand in files: in a directory of manifests, or behind a URL.
//
// # Usage
//
//	manifests := staticpod.NewDirectory("/etc/podmill/manifests", "node1")
//	err := manifests.Run(ctx, deliver)
//
// A [Directory] and a [URL] are each a [podmill.PodSource]. A directory is [podmill.ConfigMaps], [podmill.Secrets], [podmill.RuntimeClasses] and [podmill.ObjectWatcher]
// too: what stands beside the pods serves them, which it cannot with the kubelet. Objects are found as soon as the pods that refer to them
// are delivered.
//
// # Manifests
//
// A manifest is YAML or JSON, may have several documents, and holds v1 Pods, ConfigMaps and Secrets, also in a v1 List, and RuntimeClasses of node.k8s.io/v1. It has a name that ends
// in .yaml, .yml or .json. Hidden files and the copies that editors and people keep (~, .bak, .swp and such) are passed over, other files
// and directories likewise, once told of. A link is followed if a regular file is behind it; nothing else is ever opened. A
// single file may be given instead of a directory, of any name.
//
// A pod gets what the kubelet gives it: a name that ends in the node's, the namespace default, defaults (package podspec), the annotations
// kubernetes.io/config.source, config.hash and config.seen, and in a file a toleration of all taints that would evict it. Its status, and what
// else only a server says, is left out.
//
// # Guarantees
//
// Decoding is strict. A field that is not known, misplaced, given twice or of a wrong type, or a pod that an API server would refuse, is told
// of with file, line, field and cure ([Problem]), and that file is not used; what it held before goes on, and no other file is touched.
// [WithStrict] false lets unknown fields pass. After a start nobody knows what a broken file held before: its pods are not there.
//
// A pod's UID is made of what its manifest says, of the node's name and of the directory or the URL. It stays the same over restarts, versions of
// the API, another layout or order of fields, and another name of the file, so that renaming a file restarts nothing (the kubelet's
// would). Another content, node or directory is another pod. A UID that is given is kept: then a changed pod is the same pod, changed.
//
// Of two pods of one name or one UID, or two objects of one name, the one of the first file, by name, counts, and the other is told of: nothing
// changes back and forth. When the other goes, nothing happens; when the first does, the other takes its place.
//
// Removing a manifest, or all that is in it but comments, removes its pods. A file without a single letter does not: it is what a full disk leaves,
// and editors for a moment. Nor does a directory that cannot be read or is not there: what it held goes on, and if it held nothing
// yet, the source is not synced until it can be read, for nobody should lose pods to a disk that is not mounted yet. It is looked at
// every second. The kubelet takes it for empty. A URL that answers with an error, or with nothing, is treated alike.
//
// What an editor does in several steps is one change: a directory is read when nothing has happened in it for 100 ms, at most 1 s after the
// first event; and every 20 s in any case ([WithPeriod]). A URL is asked every 20 s, with its ETag and time of modification; after errors in
// 1 s, doubling up to a minute; always some per cent sooner or later, so that many nodes do not ask at one time. It is not followed
// to another host.
//
// No manifest makes it panic or hang: it has at most 10 MiB, also with its aliases written out.
//
// # What you implement
//
// Nothing; the func that takes the pods.
//
// # Concurrency
//
// Run runs once at a time, and may run again. Everything else may be called concurrently. Pods and objects are shared and read-only.
//
// # Shutdown
//
// Run and WatchObjects return when their context ends. A directory goes on to give the objects that it had.
//
// # Observability
//
// Problems go to the logger of Run's context and to [Observer], once each.
//
// # Testing
//
// Decoding, identity and the merge of files are pure. Directories are tested with real files and inotify, URLs in virtual time, manifests
// by fuzzing.
package staticpod
