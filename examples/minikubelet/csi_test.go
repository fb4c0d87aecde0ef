package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/internal/testenv/testcsi"
	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/volume"
	"github.com/podmill/podmill/volume/csi"
)

// driversIn returns the drivers of an agent with that root directory, where a driver that it starts has registered.
func driversIn(t *testing.T, root string, driver *testcsi.Driver) *csi.Drivers {
	t.Helper()
	secrets := podmilltest.NewObjects()
	secrets.SetSecret(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "secret"}})
	drivers, err := csi.New(root, "node", csi.WithSecrets(secrets))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- drivers.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	driver.Start()
	return drivers
}

const csiManifest = `
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {user: me}
---
apiVersion: v1
kind: Pod
metadata: {name: scratch}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: podmill.test/busybox:1
    command: [sh, -c, 'trap exit TERM; while :; do sleep 1 & wait $!; done']
    volumeMounts:
    - {name: data, mountPath: /data}
    - {name: data, mountPath: /part, subPath: a/b}
  volumes:
  - {name: data, csi: {driver: csi.test, volumeAttributes: {size: small}, nodePublishSecretRef: {name: key}}}
`

// A pod has a volume of a CSI driver that registers after it. The volume outlives a crash of the agent and the driver's absence, and goes with the pod.
func TestAnInlineCSIVolumeOnContainerd(t *testing.T) {
	testenv.EachContainerd(t, func(t *testing.T, endpoint string) {
		n := newNode(t, endpoint)
		driver := testcsi.New(t, filepath.Join(n.root, "plugins_registry"))
		n.write("scratch.yaml", csiManifest)
		n.start()
		n.eventually("people are told that there is no driver", func() bool {
			for _, e := range n.events() {
				if e.Reason == "FailedMount" && strings.Contains(e.Message, "driver name csi.test not found in the list of registered CSI drivers") {
					return true
				}
			}
			return false
		})
		driver.Start()
		pod := n.reaches("scratch", "is ready", ready)
		n.sh("scratch", "main", "echo data > /data/file; echo part > /part/file")
		if got := n.sh("scratch", "main", "cat /data/file /data/a/b/file"); got != "data\npart" {
			t.Errorf("it sees %q", got)
		}
		asked := driver.Calls()
		if secrets, _ := asked[0].Request["secrets"].(map[string]any); len(asked) != 1 || secrets["user"] != "me" {
			t.Errorf("the driver was asked for %v", asked)
		}
		driver.Stop()
		before := n.seen(pod.UID)
		n.crash()
		n.start()
		n.reaches("scratch", "is ready", ready)
		n.wantSame(before, n.seen(pod.UID))
		n.kill(pod, "main")
		n.reaches("scratch", "is restarted", func(pod *corev1.Pod) bool { return ready(pod) && pod.Status.ContainerStatuses[0].RestartCount == 1 })
		if got := n.sh("scratch", "main", "cat /data/file /part/file"); got != "data\npart" {
			t.Errorf("started anew it sees %q", got)
		}
		driver.Start()
		n.remove("scratch.yaml")
		n.gone(pod)
		if left := driver.Volumes(); len(left) > 0 {
			t.Errorf("the driver has %v", left)
		}
	})
}

// A pod of a source that is no file has a claim that is bound to a volume of a CSI driver. What is in it outlives the pod.
func TestAClaimedCSIVolumeOnContainerd(t *testing.T) {
	testenv.Root(t)
	root := t.TempDir()
	driver := testcsi.New(t, filepath.Join(root, "plugins_registry"))
	objects, data := cluster{podmilltest.NewObjects()}, driver.Volume("vol1")
	objects.Bind(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data", UID: "uid"}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.test", VolumeHandle: "vol1", FSType: "ext4"}},
		}})
	drivers := driversIn(t, root, driver)
	s := newStarterIn(t, root, func(r podmill.Runtime) podmill.Runtime { return r }, agent.WithObjects(objects), agent.WithVolumeOptions(volume.WithPlugins(drivers)))
	gid := int64(2000)
	pod := podmilltest.Pod("csi-"+filepath.Base(filepath.Dir(root)), sleeping("main"), claimed("data"), podmilltest.Grace(0), func(pod *corev1.Pod) {
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: &gid, RunAsUser: &gid, RunAsGroup: &gid}
	})
	s.start(pod)
	result, err := s.agent.Exec(t.Context(), pod.Namespace, pod.Name, "main", []string{"sh", "-c", "echo here > /data/note; stat -c '%u %g' /data/note"})
	if err != nil {
		t.Fatal(err)
	}
	if string(result.Stdout) != "2000 2000\n" {
		t.Errorf("the file is of %q%q", result.Stdout, result.Stderr)
	}
	s.source.Delete(pod)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		calls := driver.Calls()
		if calls[len(calls)-1].Name == "NodeUnstageVolume" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the volume is not taken away: %v", calls)
		}
	}
	if got, err := os.ReadFile(filepath.Join(data, "note")); err != nil || string(got) != "here\n" {
		t.Errorf("what is in the volume went with the pod: %q, %v", got, err)
	}
}
