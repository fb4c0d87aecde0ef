package csi

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/internal/testenv/testcsi"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/volume"
)

func TestMain(m *testing.M) {
	code := m.Run()
	testcsi.Remove()
	if err := goleak.Find(); code == 0 && err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

// rig is an agent's volumes with one driver. When the test ends nothing may be left.
type rig struct {
	*volume.Manager
	t       testing.TB
	root    string
	drivers *Drivers
	driver  *testcsi.Driver
	objects *podmilltest.Objects
	events  *podmilltest.EventRecorder
	cluster *cluster
	opts    []Option

	heard  chan string   // names of drivers that registered, or were refused
	failed chan struct{} // has a token when an attempt to make a volume ready has failed
	stop   func()
}

// newRig returns volumes without a cluster, and a driver that was not started yet. args are the driver's.
func newRig(t testing.TB, args []string, opts ...Option) *rig {
	t.Helper()
	testenv.Root(t)
	root, err := os.MkdirTemp("", "csi-root") // the names of sockets have to be short
	must(t, err)
	r := &rig{
		t: t, root: root, objects: podmilltest.NewObjects(), events: podmilltest.NewEventRecorder(), opts: opts,
		heard: make(chan string, 1000), failed: make(chan struct{}, 1), driver: testcsi.New(t, filepath.Join(root, "plugins_registry"), args...),
	}
	t.Cleanup(r.end)
	r.restart()
	return r
}

// started is newRig with the driver registered.
func started(t testing.TB, args []string, opts ...Option) *rig {
	t.Helper()
	r := newRig(t, args, opts...)
	r.driver.Start()
	r.registered()
	return r
}

// joined is started on a cluster.
func joined(t testing.TB, args []string, info storagev1.CSIDriverSpec, opts ...Option) *rig {
	t.Helper()
	c := &cluster{drivers: map[string]*storagev1.CSIDriver{"csi.test": {Spec: info}}, attachments: map[string]*storagev1.VolumeAttachment{}}
	r := newRig(t, args, append(opts, WithCluster(c))...)
	r.cluster = c
	r.driver.Start()
	r.registered()
	return r
}

// restart puts another process's agent in the place of this one.
func (r *rig) restart() {
	r.t.Helper()
	if r.stop != nil {
		r.stop()
	}
	opts := []Option{WithSecrets(r.objects), WithTimeout(10 * time.Second), WithObserver(Observer{Registered: func(_, driver string, err error) {
		if err != nil {
			driver = err.Error()
		}
		r.heard <- driver
	}})}
	drivers, err := New(r.root, "node1", append(opts, r.opts...)...)
	must(r.t, err)
	r.drivers = drivers
	r.Manager, err = volume.New(r.root, volume.WithPlugins(drivers), volume.WithClaims(r.objects), volume.WithEvents(r.events), volume.WithPatience(20*time.Second),
		volume.WithObserver(volume.Observer{SetUp: r.attempted}))
	must(r.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- drivers.Run(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			r.t.Errorf("Run: %v", err)
		}
	}
}

// registered waits until a driver has registered.
func (r *rig) registered() {
	r.t.Helper()
	r.eventually("the driver has registered", func() bool { d, _ := r.drivers.registry.find("csi.test"); return d != nil })
}

func (r *rig) eventually(what string, is func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("it did not come to this: %s", what)
		}
	}
}

// end takes everything away, by an agent that knows nothing, and looks whether something is left.
func (r *rig) end() {
	defer func() { r.stop(); _ = os.RemoveAll(r.root) }()
	r.driver.Fault("", "")
	r.restart()
	if r.left() != "" {
		r.driver.Kill()
		r.driver.Start()
		r.registered()
	}
	if err := r.Cleanup(context.Background(), func(types.UID) bool { return false }); err != nil {
		r.t.Errorf("clean up: %v", err)
	}
	if left := r.left(); left != "" {
		r.t.Errorf("left on disk: %v", left)
	}
	if mounts := r.mounts(); len(mounts) > 0 {
		r.t.Fatalf("left mounted: %v", mounts) // and not removed: it would be removed with what is behind it
	}
}

// left returns what is on disk of pods and volumes, but for empty directories of drivers.
func (r *rig) left() string {
	var all []string
	for _, dir := range []string{"pods", "plugins"} {
		_ = filepath.WalkDir(filepath.Join(r.root, dir), func(path string, entry fs.DirEntry, err error) error {
			relative, _ := filepath.Rel(r.root, path)
			if relative == "plugins/kubernetes.io/csi/volumeDevices/publish" || relative == "plugins/kubernetes.io/csi/volumeDevices/staging" {
				return nil
			}
			if err == nil && strings.Count(relative, "/") > 3 || err == nil && dir == "pods" && relative != "pods" {
				all = append(all, relative)
			}
			return err
		})
	}
	return strings.Join(all, " ")
}

// mounts returns what is mounted below the root.
func (r *rig) mounts() (all []string) {
	data, err := os.ReadFile("/proc/self/mounts")
	must(r.t, err)
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); strings.HasPrefix(fields[1], r.root+"/") {
			all = append(all, strings.TrimPrefix(fields[1], r.root+"/"))
		}
	}
	return all
}

// mount mounts a pod's volumes, and returns the path of the one called v.
func (r *rig) mount(pod *corev1.Pod) string {
	r.t.Helper()
	volumes, err := r.MountVolumes(r.t.Context(), pod)
	must(r.t, err)
	return volumes["v"].HostPath
}

func (r *rig) attempted(_ podmill.PodRef, _ string, _ time.Duration, err error) {
	if err == nil {
		return
	}
	select {
	case r.failed <- struct{}{}:
	default:
	}
}

// notReady returns why a pod's volume is not ready when that has been tried once.
func (r *rig) notReady(pod *corev1.Pod) string {
	r.t.Helper()
	select {
	case <-r.failed: // another attempt
	default:
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	go func() {
		select {
		case <-r.failed:
			cancel()
		case <-ctx.Done():
		}
	}()
	_, err := r.MountVolumes(ctx, pod)
	if err == nil {
		r.t.Fatal("the volumes are ready")
	}
	return err.Error()
}

func (r *rig) unmount(pod *corev1.Pod) {
	r.t.Helper()
	must(r.t, r.UnmountVolumes(r.t.Context(), pod.UID))
}

// asked returns the names of the driver's calls about volumes since it was asked last.
func (r *rig) asked() string {
	var names []string
	for _, c := range r.driver.Calls() {
		names = append(names, c.Name)
	}
	return strings.Join(names, " ")
}

// request returns the newest request of a call, as JSON.
func (r *rig) request(call string) string {
	r.t.Helper()
	calls := r.driver.Calls(call)
	if len(calls) == 0 {
		r.t.Fatalf("there was no %s", call)
	}
	data, err := json.MarshalIndent(calls[len(calls)-1].Request, "", " ")
	must(r.t, err)
	return strings.ReplaceAll(string(data), r.root, "ROOT")
}

// bind makes a claim c of a volume of the driver's, and returns where what is in it is.
func (r *rig) bind(change ...func(*corev1.PersistentVolume)) string {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.test", VolumeHandle: "vol1", FSType: "ext4"}},
	}}
	for _, f := range change {
		f(pv)
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c", UID: "uid-of-claim"}}
	claim.Status.Capacity = pv.Spec.Capacity
	r.objects.Bind(claim, pv)
	return r.driver.Volume("vol1")
}

// persistent returns a pod whose volume v is the claim c.
func persistent(name string, opts ...podmilltest.PodOption) *corev1.Pod {
	return withVolume(name, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}, opts...)
}

// inline returns a pod that has a volume v by itself.
func inline(name string, opts ...podmilltest.PodOption) *corev1.Pod {
	return withVolume(name, corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "csi.test"}}, opts...)
}

func withVolume(name string, source corev1.VolumeSource, opts ...podmilltest.PodOption) *corev1.Pod {
	return podmilltest.Pod(name, append([]podmilltest.PodOption{podmilltest.Volume("v", source), podmilltest.Container("main", "i", podmilltest.VolumeMount("v", "/v"))}, opts...)...)
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// cluster is a cluster in memory.
type cluster struct {
	mu          sync.Mutex
	drivers     map[string]*storagev1.CSIDriver
	attachments map[string]*storagev1.VolumeAttachment
	published   []storagev1.CSINodeDriver
	gone        []string
	topology    map[string]string
	grown       []string
	fail        error
}

func (c *cluster) CSIDriver(_ context.Context, name string) (*storagev1.CSIDriver, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		return nil, c.fail
	}
	if d := c.drivers[name]; d != nil {
		return d, nil
	}
	return nil, podmill.ErrNotFound
}

func (c *cluster) VolumeAttachment(_ context.Context, name string) (*storagev1.VolumeAttachment, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.attachments[name]; a != nil {
		return a.DeepCopy(), nil
	}
	return nil, podmill.ErrNotFound
}

func (c *cluster) PublishDrivers(_ context.Context, drivers []storagev1.CSINodeDriver, gone []string, topology map[string]string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		return c.fail
	}
	c.published, c.gone, c.topology = drivers, gone, topology
	return nil
}

func (c *cluster) ClaimGrown(_ context.Context, claim *corev1.PersistentVolumeClaim, size resource.Quantity) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grown = append(c.grown, claim.Name+" "+size.String())
	return c.fail
}

// with changes the cluster.
func (c *cluster) with(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

var errAway = errors.New("the API server is away")

func (r *rig) umount(path string) error { return unix.Unmount(path, 0) }

// unmountElsewhere takes away what a driver has mounted beside a pod's volume.
func (r *rig) unmountElsewhere(pod *corev1.Pod) {
	r.t.Helper()
	path := filepath.Join(r.root, "pods", string(pod.UID), "volumes/kubernetes.io~csi/v/mount-elsewhere")
	must(r.t, r.umount(path), os.Remove(path))
}

func sha(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }
