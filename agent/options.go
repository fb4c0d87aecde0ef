package agent

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/admission"
	"github.com/podmill/podmill/image"
	"github.com/podmill/podmill/pleg"
	"github.com/podmill/podmill/podworkers"
	"github.com/podmill/podmill/probe"
	"github.com/podmill/podmill/sandbox"
	"github.com/podmill/podmill/status"
	"github.com/podmill/podmill/syncloop"
	"github.com/podmill/podmill/syncpod"
	"github.com/podmill/podmill/userns"
	"github.com/podmill/podmill/volume"
)

// Objects gives the ConfigMaps and Secrets that pods refer to. Where it is a [podmill.ObjectWatcher] too, pods that refer to one that
// changed are brought up to date at once; where it is [podmill.Services], containers are told of Services; where it is [podmill.RuntimeClasses], pods can name
// one; where it is [podmill.Claims], pods may have volumes that exist beside them; where it is [podmill.ServiceAccountTokens], [podmill.TrustBundles] or
// [podmill.PodCertificates], projected volumes may hold those.
type Objects interface {
	podmill.ConfigMaps
	podmill.Secrets
}

// Cgroups keeps the cgroups of pods; package cgroup does.
type Cgroups interface {
	syncpod.Cgroups
	Cleanup(ctx context.Context, keep func(types.UID) bool) error
}

// Option changes a default of an [Agent].
type Option func(*options)

type options struct {
	objects   Objects
	cgroups   Cgroups
	volumes   podmill.VolumeMounter
	sink      podmill.StatusSink
	events    podmill.EventRecorder
	logRoot   string
	node      syncpod.Node
	admission func() admission.Node
	stopPods  bool
	observers Observers

	workers []podworkers.Option
	sandbox []sandbox.Option
	image   []image.Option
	volume  []volume.Option
	pleg    []pleg.Option
	probe   []probe.Option
	hands   []syncpod.Option
	users   []userns.Option
	loop    []syncloop.Option
}

// WithObjects says where ConfigMaps and Secrets are; without it pods cannot refer to any.
func WithObjects(objects Objects) Option { return func(o *options) { o.objects = objects } }

// WithCgroups says who keeps the pods' cgroups; without it the runtime chooses them.
func WithCgroups(cgroups Cgroups) Option { return func(o *options) { o.cgroups = cgroups } }

// WithVolumes says who makes volumes ready; the default is package volume. Where it has a method Cleanup, housekeeping calls it.
func WithVolumes(volumes podmill.VolumeMounter) Option {
	return func(o *options) { o.volumes = volumes }
}

// WithStatusSink says where statuses go; the default is a file for each pod below <root>/status. Where it, or what it wraps, has a method
// Cleanup, housekeeping calls it.
func WithStatusSink(sink podmill.StatusSink) Option { return func(o *options) { o.sink = sink } }

// WithEvents says who is told what people should know; without it nobody is.
func WithEvents(events podmill.EventRecorder) Option { return func(o *options) { o.events = events } }

// WithLogRoot is the directory of pods/ with the containers' logs and of containers/ with links to them, as the kubelet's
// /var/log; the default is <root>/log.
func WithLogRoot(dir string) Option { return func(o *options) { o.logRoot = dir } }

// WithNode describes the node to pods and in statuses.
func WithNode(node syncpod.Node) Option { return func(o *options) { o.node = node } }

// WithAdmission has pods rejected that the node cannot run, as package admission says; without it all are taken. The func says what they are measured
// against, and returns at once. The labels that it gives also say which PersistentVolumes are for this node, as local ones are by their node affinity; an agent that takes
// all pods can say so with [volume.WithNodeLabels].
func WithAdmission(node func() admission.Node) Option { return func(o *options) { o.admission = node } }

// WithStopPodsOnExit makes Run stop and remove all pods before it returns. The kubelet does not: its containers run on.
func WithStopPodsOnExit() Option { return func(o *options) { o.stopPods = true } }

// WithObservers says who is told of what the blocks do.
func WithObservers(observers Observers) Option { return func(o *options) { o.observers = observers } }

// WithWorkerOptions passes options on to the pod workers.
func WithWorkerOptions(opts ...podworkers.Option) Option {
	return func(o *options) { o.workers = append(o.workers, opts...) }
}

// WithSandboxOptions passes options on to the sandboxes: DNS, runtime classes.
func WithSandboxOptions(opts ...sandbox.Option) Option {
	return func(o *options) { o.sandbox = append(o.sandbox, opts...) }
}

// WithImageOptions passes options on to the image puller.
func WithImageOptions(opts ...image.Option) Option {
	return func(o *options) { o.image = append(o.image, opts...) }
}

// WithVolumeOptions passes options on to the volumes.
func WithVolumeOptions(opts ...volume.Option) Option {
	return func(o *options) { o.volume = append(o.volume, opts...) }
}

// WithPLEGOptions passes options on to the PLEG.
func WithPLEGOptions(opts ...pleg.Option) Option {
	return func(o *options) { o.pleg = append(o.pleg, opts...) }
}

// WithProbeOptions passes options on to the probes: who carries out gRPC probes, which the agent by itself does not.
func WithProbeOptions(opts ...probe.Option) Option {
	return func(o *options) { o.probe = append(o.probe, opts...) }
}

// WithSyncPodOptions passes options on to the hands: the maximum of restart delays.
func WithSyncPodOptions(opts ...syncpod.Option) Option {
	return func(o *options) { o.hands = append(o.hands, opts...) }
}

// WithUserNamespaceOptions passes options on to the allotment of user IDs: which ones pods may have.
func WithUserNamespaceOptions(opts ...userns.Option) Option {
	return func(o *options) { o.users = append(o.users, opts...) }
}

// WithSyncLoopOptions passes options on to the sync loop.
func WithSyncLoopOptions(opts ...syncloop.Option) Option {
	return func(o *options) { o.loop = append(o.loop, opts...) }
}

// Observers are the observers of the blocks, for metrics and traces. The zero value is silent.
type Observers struct {
	Workers  podworkers.Observer
	Sandbox  sandbox.Observer
	Image    image.Observer
	Volume   volume.Observer
	PLEG     pleg.Observer
	Probe    probe.Observer
	Status   status.Observer
	SyncLoop syncloop.Observer
	SyncPod  syncpod.Observer
}
