package main

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill/internal/testenv/testcsi"
	"github.com/podmill/podmill/podmilltest"
)

const (
	volumesPath = "/api/v1/persistentvolumes"
	storagePath = "/apis/storage.k8s.io/v1/"
)

// storage is a CSI driver on a node, with the test in the place of the controllers that bind and attach.
type storage struct {
	*cluster
	driver *testcsi.Driver
	name   string // of the PersistentVolume and its handle
}

func newStorage(t *testing.T) *storage {
	t.Helper()
	c := newCluster(t)
	s := &storage{cluster: c, driver: testcsi.New(t, filepath.Join(c.root, "plugins_registry"), "-node-id", c.Node, "-topology", "csi.test/zone=a", "-max-volumes", "7")}
	s.driver.Name = fmt.Sprintf("csi%x.test", time.Now().UnixNano()&0xffffff) // other tests may have drivers in the same cluster
	s.name = "vol-" + s.driver.Name
	s.after = append(s.after, func() {
		for _, path := range []string{volumesPath + "/" + s.name, storagePath + "csidrivers/" + s.driver.Name, storagePath + "volumeattachments/" + s.attachment()} {
			s.Raw("DELETE", path, nil, nil)
		}
	})
	modes := []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral}
	s.Raw("POST", storagePath+"csidrivers", &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: s.driver.Name}, Spec: storagev1.CSIDriverSpec{PodInfoOnMount: new(true), VolumeLifecycleModes: modes},
	}, nil)
	return s
}

func (s *storage) attachment() string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(s.name+s.driver.Name+s.Node)))
}

// bind makes a volume, and a claim that is bound to it.
func (s *storage) bind() {
	s.driver.Volume(s.name)
	gigabyte := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		VolumeName: s.name, AccessModes: modes, StorageClassName: new(""), Resources: corev1.VolumeResourceRequirements{Requests: gigabyte},
	}}
	s.Create("persistentvolumeclaims", claim, claim)
	s.Raw("POST", volumesPath, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Spec: corev1.PersistentVolumeSpec{
		Capacity: gigabyte, AccessModes: modes, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		ClaimRef:               &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: s.Namespace, Name: "data", UID: claim.UID},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: s.driver.Name, VolumeHandle: s.name, FSType: "ext4"}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "csi.test/zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}},
		}}}},
	}}, nil)
	s.Patch("persistentvolumeclaims", "data", map[string]any{"status": map[string]any{"phase": corev1.ClaimBound, "capacity": gigabyte}}, "status")
}

// attach says that the volume is attached to the node.
func (s *storage) attach() {
	s.Raw("POST", storagePath+"volumeattachments", &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: s.attachment()}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: s.driver.Name, NodeName: s.Node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &s.name},
	}}, nil)
	s.Raw("PATCH", storagePath+"volumeattachments/"+s.attachment()+"/status", map[string]any{"status": storagev1.VolumeAttachmentStatus{
		Attached: true, AttachmentMetadata: map[string]string{"device": "/dev/vdb"},
	}}, nil)
}

// drivers returns what the CSINode says.
func (s *storage) drivers() []storagev1.CSINodeDriver {
	node := &storagev1.CSINode{}
	s.Raw("GET", storagePath+"csinodes/"+s.Node, nil, node)
	return node.Spec.Drivers
}

func (s *storage) inUse() []corev1.UniqueVolumeName {
	node := &corev1.Node{}
	s.Get("nodes", s.Node, node)
	return node.Status.VolumesInUse
}

// A pod has a claim that is bound to a volume of a CSI driver: it waits until that is attached, which the node helps to by saying what it has and uses. The volume grows when it
// should, and goes back with the pod.
func TestAClaimOfACSIVolume(t *testing.T) {
	s := newStorage(t)
	s.start()
	s.Eventually("the node is ready", s.nodeReady)
	s.driver.Start()
	s.Eventually("the cluster knows the driver", func() bool {
		all := s.drivers()
		return len(all) == 1 && all[0].Name == s.driver.Name && all[0].NodeID == s.Node && slices.Equal(all[0].TopologyKeys, []string{"csi.test/zone"}) && *all[0].Allocatable.Count == 7
	})
	node := &corev1.Node{}
	s.Get("nodes", s.Node, node)
	if node.Labels["csi.test/zone"] != "a" || !strings.Contains(node.Annotations["csi.volume.kubernetes.io/nodeid"], s.driver.Name) {
		t.Errorf("the node has labels %v and annotations %v", node.Labels, node.Annotations)
	}
	s.bind()
	claimed := mounting("claims", corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}})
	claimed.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: new(int64(2000))}
	s.CreatePod(claimed)
	s.Eventually("the volume is said to be in use", func() bool {
		return slices.Contains(s.inUse(), corev1.UniqueVolumeName("kubernetes.io/csi/"+s.driver.Name+"^"+s.name))
	})
	if calls := s.driver.Calls(); len(calls) > 0 {
		t.Errorf("the driver was asked before the volume was attached: %v", calls)
	}
	s.attach()
	pod := s.reaches("claims", "is ready", ready)
	if got := s.sh(pod, "main", "echo x > /data/file; stat -c '%g' /data/file"); got != "2000" {
		t.Errorf("the file is of group %q", got)
	}
	for _, c := range s.driver.Calls() {
		if published, _ := c.Request["publish_context"].(map[string]any); published["device"] != "/dev/vdb" {
			t.Errorf("%s without what the controller said: %v", c.Name, c.Request)
		}
	}

	s.Raw("PATCH", volumesPath+"/"+s.name, map[string]any{"spec": map[string]any{"capacity": map[string]any{"storage": "2Gi"}}}, nil)
	s.Patch("pods", "claims", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"look": "again"}}})
	s.Eventually("the claim says that it has grown", func() bool {
		claim := &corev1.PersistentVolumeClaim{}
		s.Get("persistentvolumeclaims", "data", claim)
		size := claim.Status.Capacity[corev1.ResourceStorage]
		return size.String() == "2Gi"
	})

	s.signal(syscall.SIGKILL)
	s.start()
	s.Delete("pods", "claims", 1)
	s.gone("claims")
	s.Eventually("no volume is in use", func() bool { return len(s.inUse()) == 0 })
	if calls := s.driver.Calls(); calls[len(calls)-1].Name != "NodeUnstageVolume" {
		t.Errorf("the pod is gone, and the driver was asked for %v last", calls[len(calls)-1])
	}
	s.driver.Stop()
	s.Eventually("the cluster knows no driver", func() bool { return len(s.drivers()) == 0 })
}

// A pod has a volume of a driver's by itself. Nobody attaches it, and the driver is told whose it is.
func TestAnInlineCSIVolume(t *testing.T) {
	s := newStorage(t)
	s.start()
	s.driver.Start()
	s.CreatePod(mounting("inline", corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: s.driver.Name}}))
	pod := s.reaches("inline", "is ready", ready)
	calls := s.driver.Calls()
	about, _ := calls[0].Request["volume_context"].(map[string]any)
	if len(calls) != 1 || about["csi.storage.k8s.io/pod.uid"] != string(pod.UID) || about["csi.storage.k8s.io/serviceAccount.name"] != "default" {
		t.Errorf("the driver was asked for %v", calls)
	}
	s.Delete("pods", "inline", 1)
	s.gone("inline")
}

// mounting returns a pod with a volume at /data.
func mounting(name string, source corev1.VolumeSource) *corev1.Pod {
	pod := sleeper(name, podmilltest.Volume("data", source))
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	return pod
}
