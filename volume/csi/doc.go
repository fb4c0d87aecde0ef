// Package csi makes the volumes of CSI drivers: those of claims that are bound to CSI PersistentVolumes, and those that a pod has inline. It is apart from
// package volume so that only who wants CSI links gRPC.
//
// # Usage
//
//	drivers, err := csi.New("/var/lib/kubelet", "node1", csi.WithSecrets(secrets))
//	volumes, err := volume.New("/var/lib/kubelet", volume.WithPlugins(drivers), volume.WithClaims(claims))
//	go drivers.Run(ctx) // until nothing is mounted or unmounted any more
//
// A driver registers as with the kubelet: it, or the node-driver-registrar beside it, serves the kubelet's plugin registration API on a socket in
// <root>/plugins_registry. A volume whose driver has not registered yet waits for it.
//
// # Guarantees
//
// The layout on disk is the kubelet's:
//
//	pods/<uid>/volumes/kubernetes.io~csi/<name>/mount                       what containers mount
//	pods/<uid>/volumes/kubernetes.io~csi/<name>/vol_data.json               what it takes to unpublish it
//	plugins/kubernetes.io/csi/<driver>/<sha256 of the handle>/globalmount   where it is staged
//	plugins/kubernetes.io/csi/<driver>/<sha256 of the handle>/vol_data.json what it takes to unstage it
//	plugins/kubernetes.io/csi/volumeDevices/{staging,publish,<name>/data}   the same of block devices
//
// What a driver is about to be asked for is on disk before it is asked, so that an agent that knows nothing else undoes it: it asks the driver to unpublish
// whatever may be published and, with a volume's last pod, to unstage whatever may be staged. One volume is worked on by one call at a time.
//
// A driver's word is checked: a volume that is said to be published has to be there, and one that is said to be unpublished has to be unmounted. Nothing that is mounted is
// ever removed, nor any file in a volume. A driver that hangs is given up after two minutes, and asked again later; it holds up the pods that have
// its volumes, and no other.
//
// A volume that is ready stays so while its driver is away, also over a restart of the agent where it is a mount. One that is none, such as the node of a block device, is
// published again then.
//
// # What you implement
//
// Nothing. On a cluster a [Cluster], which package apiserver has, tells of CSIDrivers and attachments, and is told which drivers there are. Without one nothing is attached,
// drivers may have inline volumes, and are told which pod one is for.
//
// # Concurrency
//
// All methods may be called concurrently.
//
// # Shutdown
//
// Run ends with its context, and returns when nothing that it started goes on. Afterwards no driver is registered: end it after who mounts and unmounts.
//
// # Observability
//
// [WithObserver] hears of registrations and of each call of a driver. No request is in any error or event. A driver's own words are, at most a KiB of them, without the secrets
// and tokens that it was given, where it quotes those.
//
// # Testing
//
// The tests run a real driver, a small program over the CSI's gRPC API that passes csi-test's sanity suite and can be told to hang, to crash and to lie.
package csi
