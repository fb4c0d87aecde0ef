package csi

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/podmill/podmill"
)

// asJSON returns a value as the log of the driver's calls has it.
func asJSON(t *testing.T, text string) string {
	t.Helper()
	var value any
	must(t, json.Unmarshal([]byte(text), &value))
	data, err := json.MarshalIndent(value, "", " ")
	must(t, err)
	return string(data)
}

// An inline volume is the pod's own: it is made for it, at the kubelet's place, and goes with it.
func TestAnInlineVolume(t *testing.T) {
	r := started(t, nil)
	r.objects.SetSecret(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "key"}, Data: map[string][]byte{"user": []byte("me")}})
	pod := inline("a", func(pod *corev1.Pod) {
		source := pod.Spec.Volumes[0].CSI
		source.VolumeAttributes, source.FSType = map[string]string{"size": "small"}, ptr.To("ext4")
		source.NodePublishSecretRef = &corev1.LocalObjectReference{Name: "key"}
		pod.Spec.ServiceAccountName = "web"
	})
	path := r.mount(pod)
	place := filepath.Join(r.root, "pods", string(pod.UID), "volumes/kubernetes.io~csi/v")
	if path != filepath.Join(place, "mount") {
		t.Errorf("it is at %s", path)
	}
	own, err := readRecord(place)
	must(t, err)
	if r.asked() != "NodePublishVolume" || !strings.HasPrefix(own.VolumeHandle, "csi-") || len(own.VolumeHandle) != 68 {
		t.Errorf("the driver was asked for %s, handle %s", r.asked(), own.VolumeHandle)
	}
	want := asJSON(t, `{"volume_id": "`+own.VolumeHandle+`", "target_path": "ROOT/pods/`+string(pod.UID)+`/volumes/kubernetes.io~csi/v/mount",
		"volume_capability": {"mount": {"fs_type": "ext4"}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}, "secrets": {"user": "me"},
		"volume_context": {"size": "small", "csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.name": "a", "csi.storage.k8s.io/pod.namespace": "default",
			"csi.storage.k8s.io/pod.uid": "`+string(pod.UID)+`", "csi.storage.k8s.io/serviceAccount.name": "web"}}`)
	if diff := cmp.Diff(want, r.request("NodePublishVolume")); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	wantRecord := record{SpecVolID: "v", VolumeHandle: own.VolumeHandle, DriverName: "csi.test", NodeName: "node1", VolumeLifecycleMode: "Ephemeral", State: ready}
	if diff := cmp.Diff(wantRecord, own); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	must(t, os.WriteFile(filepath.Join(path, "file"), nil, 0o600))
	r.mount(pod)
	r.unmount(pod)
	if got := r.asked(); got != "NodePublishVolume NodeUnpublishVolume" || len(r.driver.Volumes()) > 0 {
		t.Errorf("the driver was asked for %s, and has %v", got, r.driver.Volumes())
	}
}

// A claim's volume is staged once for all its pods, with what the PersistentVolume says, and unstaged with the last.
func TestAVolumeOfTwoPods(t *testing.T) {
	r := started(t, nil)
	for _, name := range []string{"stage", "publish"} {
		r.objects.SetSecret(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: name}, Data: map[string][]byte{"for": []byte(name)}})
	}
	data := r.bind(func(pv *corev1.PersistentVolume) {
		pv.Spec.MountOptions, pv.Spec.CSI.VolumeAttributes = []string{"noatime"}, map[string]string{"pool": "fast"}
		pv.Spec.CSI.NodeStageSecretRef = &corev1.SecretReference{Namespace: "storage", Name: "stage"}
		pv.Spec.CSI.NodePublishSecretRef = &corev1.SecretReference{Namespace: "storage", Name: "publish"}
	})
	must(t, os.WriteFile(filepath.Join(data, "file"), []byte("precious"), 0o600))
	first, second := persistent("first"), persistent("second", func(pod *corev1.Pod) { pod.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true })
	for _, pod := range []*corev1.Pod{first, second} {
		if got, err := os.ReadFile(filepath.Join(r.mount(pod), "file")); err != nil || string(got) != "precious" {
			t.Errorf("%q, %v", got, err)
		}
	}
	const capability = `"volume_capability": {"mount": {"fs_type": "ext4", "mount_flags": ["noatime"]}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}`
	where := `"staging_target_path": "ROOT/plugins/kubernetes.io/csi/csi.test/` + sha("vol1") + `/globalmount"`
	want := asJSON(t, `{"volume_id": "vol1", `+where+`, `+capability+`, "secrets": {"for": "stage"}, "volume_context": {"pool": "fast"}}`)
	if diff := cmp.Diff(want, r.request("NodeStageVolume")); diff != "" {
		t.Errorf("stage (-want +got):\n%s", diff)
	}
	want = asJSON(t, `{"volume_id": "vol1", `+where+`, "target_path": "ROOT/pods/`+string(second.UID)+`/volumes/kubernetes.io~csi/pv/mount", `+capability+`,
		"readonly": true, "secrets": {"for": "publish"}, "volume_context": {"pool": "fast", "csi.storage.k8s.io/ephemeral": "false", "csi.storage.k8s.io/pod.name": "second",
		"csi.storage.k8s.io/pod.namespace": "default", "csi.storage.k8s.io/pod.uid": "`+string(second.UID)+`", "csi.storage.k8s.io/serviceAccount.name": ""}}`)
	if diff := cmp.Diff(want, r.request("NodePublishVolume")); diff != "" {
		t.Errorf("publish (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(filepath.Join(r.mount(second), "new"), nil, 0o600); err == nil {
		t.Error("a read-only volume is written to")
	}
	r.unmount(first)
	r.unmount(second)
	const calls = "NodeStageVolume NodePublishVolume NodePublishVolume NodeUnpublishVolume NodeUnpublishVolume NodeUnstageVolume"
	if got := r.asked(); got != calls {
		t.Errorf("the driver was asked for\n%s, want\n%s", got, calls)
	}
	if got, err := os.ReadFile(filepath.Join(data, "file")); err != nil || string(got) != "precious" {
		t.Errorf("what is in the volume went with the pods: %q, %v", got, err)
	}
}

// A driver that does not stage is not asked to.
func TestADriverThatDoesNotStage(t *testing.T) {
	r := started(t, []string{"-can", ""})
	r.bind()
	pod := persistent("a")
	r.mount(pod)
	r.unmount(pod)
	if got := r.asked(); got != "NodePublishVolume NodeUnpublishVolume" || strings.Contains(r.request("NodePublishVolume"), "staging") {
		t.Errorf("the driver was asked for %s, %s", got, r.request("NodePublishVolume"))
	}
}

// A volume that is ready stays so while its driver is away and the agent is another. One that was mounted before the machine was started anew is published again.
func TestRestarts(t *testing.T) {
	for name, pod := range map[string]*corev1.Pod{"inline": inline("a"), "persistent": persistent("a")} {
		t.Run(name, func(t *testing.T) {
			r := started(t, nil)
			r.bind()
			path := r.mount(pod)
			before := r.asked()
			r.driver.Stop()
			r.restart()
			if again := r.mount(pod); again != path || r.asked() != before {
				t.Errorf("it is at %s, and the driver was asked for %s", again, r.asked())
			}
			must(t, unix.Unmount(path, 0))
			for _, mount := range r.mounts() {
				must(t, unix.Unmount(filepath.Join(r.root, mount), 0))
			}
			r.driver.Start()
			r.restart()
			r.mount(pod)
			if got := r.asked(); got != before+" "+before {
				t.Errorf("the driver was asked for %s", got)
			}
		})
	}
}

// A block device is published at the kubelet's place, and the pod gets the device.
func TestABlockDevice(t *testing.T) {
	r := started(t, nil)
	r.bind(func(pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) })
	pod := persistent("a", func(pod *corev1.Pod) {
		pod.Spec.Containers[0].VolumeMounts = nil
		pod.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "v", DevicePath: "/dev/x"}}
	})
	for range 2 {
		volumes, err := r.MountVolumes(t.Context(), pod)
		must(t, err)
		want := podmill.Volume{HostPath: filepath.Join(r.root, "plugins/kubernetes.io/csi/volumeDevices/publish/pv", string(pod.UID)), Block: true}
		if diff := cmp.Diff(want, volumes["v"]); diff != "" {
			t.Error(diff)
		}
	}
	if want, got := "ROOT/plugins/kubernetes.io/csi/volumeDevices/staging/pv", r.request("NodeStageVolume"); !strings.Contains(got, want) || !strings.Contains(got, `"block": {}`) {
		t.Errorf("stage: %s", got)
	}
	r.restart()
	r.registered()
	r.unmount(pod)
	if got := r.asked(); got != "NodeStageVolume NodePublishVolume NodeUnpublishVolume NodeUnstageVolume" {
		t.Errorf("the driver was asked for %s", got)
	}
}

// Who gives a volume to the pod's group is the driver's to say.
func TestFSGroup(t *testing.T) {
	group := func(pod *corev1.Pod) {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To(int64(2000))}
	}
	for name, tt := range map[string]struct {
		policy storagev1.FSGroupPolicy
		change func(*corev1.PersistentVolume)
		can    string
		want   uint32
	}{
		"default":                  {"", nil, "stage", 2000},
		"no fsType":                {"", func(pv *corev1.PersistentVolume) { pv.Spec.CSI.FSType = "" }, "stage", 0},
		"shared by nodes":          {"", func(pv *corev1.PersistentVolume) { pv.Spec.AccessModes[0] = corev1.ReadWriteMany }, "stage", 0},
		"File, and no fsType":      {storagev1.FileFSGroupPolicy, func(pv *corev1.PersistentVolume) { pv.Spec.CSI.FSType = "" }, "stage", 2000},
		"None":                     {storagev1.NoneFSGroupPolicy, nil, "stage", 0},
		"the driver does, not all": {"", nil, "stage,group", 2000},
	} {
		t.Run(name, func(t *testing.T) {
			r := joined(t, []string{"-can", tt.can}, storagev1.CSIDriverSpec{AttachRequired: ptr.To(false), FSGroupPolicy: &tt.policy})
			data := r.bind(func(pv *corev1.PersistentVolume) {
				if tt.change != nil {
					tt.change(pv)
				}
			})
			must(t, os.WriteFile(filepath.Join(data, "file"), nil, 0o600))
			r.mount(persistent("a", group))
			var dir, file unix.Stat_t
			must(t, unix.Stat(data, &dir), unix.Stat(filepath.Join(data, "file"), &file))
			byDriver := tt.can != "stage"
			if dir.Gid != tt.want || (file.Gid == 2000) != (tt.want == 2000 && !byDriver) {
				t.Errorf("the volume is of group %d, a file in it of %d", dir.Gid, file.Gid)
			}
			if strings.Contains(r.request("NodePublishVolume"), `"volume_mount_group": "2000"`) != byDriver {
				t.Error(r.request("NodePublishVolume"))
			}
		})
	}
}

// A volume grows when its PersistentVolume has and the claim does not say so yet: once, and the cluster is told.
func TestAVolumeGrows(t *testing.T) {
	r := joined(t, nil, storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)})
	r.bind()
	pod := persistent("a")
	r.mount(pod)
	claim, err := r.objects.Claim(t.Context(), "default", "c")
	must(t, err)
	claim = claim.DeepCopy()
	r.bind(func(pv *corev1.PersistentVolume) {
		pv.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("2Gi")
	})
	claim.Spec.VolumeName = "pv"
	r.objects.SetClaim(claim)
	r.driver.Fault("NodeExpandVolume", "fail Internal cannot")
	r.mount(pod) // it stays ready
	if events := r.events.String(); !strings.Contains(events, "volume vol1 does not grow from 1Gi to 2Gi: NodeExpandVolume of CSI driver csi.test") {
		t.Errorf("events: %s", events)
	}
	r.driver.Fault("", "")
	for range 2 {
		r.mount(pod)
	}
	if got := r.request("NodeExpandVolume"); !strings.Contains(got, `"required_bytes": "2147483648"`) || !strings.Contains(got, "globalmount") {
		t.Error(got)
	}
	if n := len(r.driver.Calls("NodeExpandVolume")); n != 2 { // one of which failed
		t.Errorf("it was asked %d times", n)
	}
	if got := strings.Join(r.cluster.grown, ", "); got != "c 2Gi, c 2Gi" { // as long as the claim does not say so
		t.Errorf("the cluster was told %q", got)
	}
}

// A driver that cannot grow a volume in use keeps no pod from having it, and one that cannot now is asked for that alone again.
func TestAVolumeThatDoesNotGrow(t *testing.T) {
	for code, ready := range map[string]bool{"FailedPrecondition": true, "Internal": false} {
		t.Run(code, func(t *testing.T) {
			r := started(t, nil)
			r.bind()
			claim, err := r.objects.Claim(t.Context(), "default", "c")
			must(t, err)
			claim = claim.DeepCopy()
			r.bind(func(pv *corev1.PersistentVolume) {
				pv.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("2Gi")
			})
			claim.Spec.VolumeName = "pv"
			r.objects.SetClaim(claim)
			r.driver.Fault("NodeExpandVolume", "fail "+code+" not now")
			pod := persistent("a")
			if !ready {
				r.notReady(pod)
				r.driver.Fault("", "")
			}
			r.mount(pod)
			if n := len(r.driver.Calls("NodePublishVolume")); n != 1 || len(r.driver.Calls("NodeExpandVolume")) == 0 {
				t.Errorf("it was published %d times", n)
			}
		})
	}
}

// tokens makes tokens that live for an hour.
type tokens struct{ made int }

func (k *tokens) ServiceAccountToken(_ context.Context, pod *corev1.Pod, s *corev1.ServiceAccountTokenProjection) (podmill.Token, error) {
	k.made++
	return podmill.Token{Value: pod.Name + " for " + s.Audience, Expires: time.Now().Add(time.Hour)}, nil
}

// A driver that asks for it is given tokens, and asked to publish again whenever the pod's volumes are brought up to date.
func TestTokensAndRepublishing(t *testing.T) {
	for _, inSecrets := range []bool{false, true} {
		maker := &tokens{}
		r := joined(t, nil, storagev1.CSIDriverSpec{
			AttachRequired: ptr.To(false), RequiresRepublish: ptr.To(true), TokenRequests: []storagev1.TokenRequest{{Audience: "vault"}}, ServiceAccountTokenInSecrets: &inSecrets,
		}, WithServiceAccountTokens(maker))
		r.bind()
		pod := persistent("a")
		for range 3 {
			r.mount(pod)
		}
		calls := r.driver.Calls("NodePublishVolume")
		where := map[bool]string{false: "volume_context", true: "secrets"}[inSecrets]
		in, _ := calls[2].Request[where].(map[string]any)
		if text, _ := in[tokensKey].(string); len(calls) != 3 || !strings.HasPrefix(text, `{"vault":{"token":"a for vault","expirationTimestamp":"2`) {
			t.Errorf("it was published %d times, with %v", len(calls), in)
		}
		volumes, err := r.MountVolumes(t.Context(), pod)
		must(t, err)
		if left := time.Until(volumes["v"].Renew); maker.made != 1 || left > 48*time.Minute || left < 40*time.Minute {
			t.Errorf("%d tokens were made, which are to be renewed in %v, want four fifths of their hour", maker.made, left)
		}
		r.cluster.with(func() {
			info := r.cluster.drivers["csi.test"].DeepCopy()
			info.Spec.TokenRequests = append(info.Spec.TokenRequests, storagev1.TokenRequest{Audience: "bank"})
			r.cluster.drivers["csi.test"] = info
		})
		r.mount(pod)
		if got := r.request("NodePublishVolume"); !strings.Contains(got, "a for bank") {
			t.Errorf("a driver that wants a token more gets %s", got)
		}
	}
}

// A volume waits until its driver has registered, and is there at once then. People are told meanwhile.
func TestAVolumeWaitsForItsDriver(t *testing.T) {
	r := newRig(t, nil)
	pod := inline("a")
	ready := make(chan error, 1)
	go func() {
		_, err := r.MountVolumes(t.Context(), pod)
		ready <- err
	}()
	r.eventually("people are told", func() bool {
		return strings.Contains(r.events.String(), `MountVolume.SetUp failed for volume "v" : driver name csi.test not found in the list of registered CSI drivers: see that it runs on this node and registers in `+r.root)
	})
	r.driver.Start()
	must(t, <-ready)
	// A pod that never got so far leaves nothing, and needs no driver for that.
	other := withVolume("b", corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "unknown.test"}})
	r.notReady(other)
	r.unmount(other)
}

// What a driver may have is its CSIDriver's to say.
func TestModesThatADriverDoesNotHave(t *testing.T) {
	r := joined(t, nil, storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)})
	if why := r.notReady(inline("a")); !strings.Contains(why, `volume mode "Ephemeral" not supported by driver csi.test (only supports ["Persistent"])`) {
		t.Error(why)
	}
	r.cluster.with(func() { delete(r.cluster.drivers, "csi.test") })
	if why := r.notReady(inline("b")); !strings.Contains(why, `volume mode "Ephemeral" not supported by driver csi.test (no CSIDriver object)`) {
		t.Error(why)
	}
	r.cluster.with(func() { r.cluster.fail = errAway })
	if why := r.notReady(inline("c")); !strings.Contains(why, errAway.Error()) {
		t.Error(why)
	}
	if r.asked() != "" {
		t.Errorf("the driver was asked for %s", r.asked())
	}
}

// A volume is used when its controller has attached it, with what that has to say; meanwhile it counts as in use, so that it is not detached.
func TestAttachment(t *testing.T) {
	changed := make(chan struct{}, 100)
	r := joined(t, nil, storagev1.CSIDriverSpec{}, WithInUse(func() { changed <- struct{}{} }, always))
	r.bind()
	pod := persistent("a")
	if why := r.notReady(pod); !strings.Contains(why, "volume vol1 of CSI driver csi.test is not attached to node node1, VolumeAttachment csi-") {
		t.Error(why)
	}
	inUse := func() string {
		names, err := r.drivers.InUse()
		must(t, err)
		if len(names) == 0 {
			return ""
		}
		return string(names[0])
	}
	if <-changed; inUse() != "kubernetes.io/csi/csi.test^vol1" || r.asked() != "" {
		t.Errorf("%q is in use, and the driver was asked for %q", inUse(), r.asked())
	}
	r.unmount(pod)
	if <-changed; inUse() != "" || r.left() != "" {
		t.Errorf("%q is in use, left: %s", inUse(), r.left())
	}
	pod = persistent("b")
	spec := &spec{record: record{DriverName: "csi.test", VolumeHandle: "vol1", NodeName: "node1"}}
	attachment := &storagev1.VolumeAttachment{Status: storagev1.VolumeAttachmentStatus{AttachError: &storagev1.VolumeError{Message: "no free slot"}}}
	r.cluster.with(func() { r.cluster.attachments[spec.attachment()] = attachment })
	if why := r.notReady(pod); !strings.HasSuffix(why, ": no free slot") {
		t.Error(why)
	}
	r.cluster.with(func() {
		r.cluster.attachments[spec.attachment()] = &storagev1.VolumeAttachment{Status: storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{"device": "/dev/vdb"}}}
	})
	r.mount(pod)
	for _, call := range []string{"NodeStageVolume", "NodePublishVolume"} {
		if got := r.request(call); !strings.Contains(got, "\"publish_context\": {\n  \"device\": \"/dev/vdb\"") {
			t.Errorf("%s: %s", call, got)
		}
	}
	r.unmount(pod)
	if inUse() != "" {
		t.Errorf("%q is in use", inUse())
	}
}

func always(corev1.UniqueVolumeName) bool { return true }

// A volume that is attached is not mounted before the cluster knows that it is in use: it could be detached under its pods.
func TestNothingIsMountedThatMayBeDetached(t *testing.T) {
	var told atomic.Bool
	r := joined(t, nil, storagev1.CSIDriverSpec{}, WithInUse(func() {}, func(name corev1.UniqueVolumeName) bool {
		return told.Load() && name == "kubernetes.io/csi/csi.test^vol1"
	}))
	r.bind()
	spec := &spec{record: record{DriverName: "csi.test", VolumeHandle: "vol1", NodeName: "node1"}}
	r.cluster.with(func() {
		r.cluster.attachments[spec.attachment()] = &storagev1.VolumeAttachment{Status: storagev1.VolumeAttachmentStatus{Attached: true}}
	})
	pod := persistent("a")
	if why := r.notReady(pod); !strings.HasSuffix(why, ": the Node does not say yet that it is in use") || r.asked() != "" {
		t.Errorf("%s; the driver was asked for %q", why, r.asked())
	}
	told.Store(true)
	r.mount(pod)
	r.unmount(pod)
}

// A part of a volume is bound for a container, and goes before the volume does.
func TestSubPathOfAVolume(t *testing.T) {
	r := started(t, nil)
	data := r.bind()
	must(t, os.Mkdir(filepath.Join(data, "part"), 0o750), os.WriteFile(filepath.Join(data, "part/file"), []byte("x"), 0o600))
	pod := persistent("a")
	r.mount(pod)
	path, err := r.MountSubPath(t.Context(), pod, podmill.SubPath{Container: "main", Volume: "v", Path: "part"})
	must(t, err)
	if got, err := os.ReadFile(filepath.Join(path, "file")); err != nil || string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
	r.unmount(pod)
}
