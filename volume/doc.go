// Package volume makes the volumes of pods ready before their containers start, and takes them away when they have stopped.
//
// # Usage
//
//	volumes, err := volume.New("/var/lib/kubelet", volume.WithObjects(configMaps, secrets))
//	ready, err := volumes.MountVolumes(ctx, pod)   // before a container starts, and again to bring volumes up to date
//	path, err := volumes.MountSubPath(ctx, pod, p) // a part of a ready volume, for one container
//	err = volumes.UnmountVolumes(ctx, pod.UID)     // when no container runs any more
//	err = volumes.Cleanup(ctx, keep)               // what earlier processes left
//	go watcher.WatchObjects(ctx, volumes.Changed)  // so that a missing ConfigMap is noticed when it comes
//
// Built in are emptyDir (on disk and in memory), hostPath, configMap, secret, downwardAPI and projected volumes, and claims that are bound to local and hostPath
// PersistentVolumes. Others are refused with an error that names the volume and its kind, unless [WithPlugins] adds a [Plugin] for them, as volume/csi is one for those of CSI
// drivers. Images are left to the runtime. The
// layout on disk, the modes and the messages are the kubelet's.
//
// # Guarantees
//
// A reader of a configMap, secret, downwardAPI or projected volume sees one version of it: a change is one rename of the link ..data. What has not
// changed is not written again. What an interrupted agent left is repaired by the next MountVolumes.
//
// The node is safe from what is in a volume. No link is followed out of a pod's directory, no file is removed across a mount, and a pod's
// directory with a mount that no plugin knows is left whole, and named in an error.
//
// A subPath leads nowhere but into its volume: the kernel opens it without leaving the volume's directory, and what was opened, no path, is mounted for the container. It
// shows what was there when the container was started: a key of a ConfigMap by subPath does not change before the container is started anew.
//
// Volumes of a pod are made side by side. One that cannot be made is tried again as soon as [Manager.Changed] names an object that it is made of,
// and after growing pauses. A failure to read a ConfigMap or Secret leaves nothing half-made, and an optional one that is missing gives an
// empty volume. An attempt that hangs is given up after two minutes; one that goes through millions of files, for the
// pod's fsGroup, may take any time. A volume that was ready stays so when it cannot be brought up to date: a pod outlives the ConfigMap that it was started with.
//
// Tokens and certificates are renewed in time: a volume that holds one says when MountVolumes has to be called again for it ([podmill.Volume].Renew), as whoever runs the pod does
// then, such as package syncpod.
//
// Whether a directory is a mount is asked of the kernel in one call, so that it costs the same on a node with thousands of mounts. This needs Linux 5.8;
// on an older kernel nothing is removed.
//
// # What you implement
//
// Nothing, or a [Plugin] for each further kind of volume, [podmill.Claims] for volumes that exist beside pods, and [podmill.ServiceAccountTokens],
// [podmill.TrustBundles] and [podmill.PodCertificates] for what pods prove themselves by.
//
// # Concurrency
//
// All methods may be called concurrently. One call at a time works on a pod; another waits for its turn.
//
// # Shutdown
//
// A manager has no goroutine of its own: those of a call end with it. Volumes stay as they are when the process ends.
//
// # Observability
//
// [WithEvents] gets the kubelet's FailedMount events, [WithObserver] every attempt. No content of a Secret is in any error or event.
//
// # Testing
//
// Without root, [WithFilesOnDisk] needs no mounts; an emptyDir in memory does. podmilltest has objects in memory, and the tests that any
// mounter has to pass.
package volume
