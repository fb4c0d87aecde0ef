package volume

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

// victimRoot, where it is set, makes the test's binary a process that works on volumes until it is killed.
const victimRoot = "PODMILL_TEST_VICTIM_ROOT"

func victimPod() *corev1.Pod {
	return podmilltest.Pod("victim", volume("v", configMapSource("cm")), volume("s", secretSource("s")), volume("d", emptyDirSource("")))
}

// setVersion gives the victim's objects a content that tells its version by each file, and by which files there are.
func setVersion(objects *podmilltest.Objects, version int) {
	text, data := map[string]string{}, map[string][]byte{}
	for key := range 3 + version%3 {
		text[strconv.Itoa(key)], data[strconv.Itoa(key)] = strconv.Itoa(version), []byte(strconv.Itoa(version))
	}
	meta := metav1.ObjectMeta{Namespace: "default", Name: "cm"}
	objects.SetConfigMap(&corev1.ConfigMap{ObjectMeta: meta, Data: text})
	meta.Name = "s"
	objects.SetSecret(&corev1.Secret{ObjectMeta: meta, Data: data})
}

func beVictim(root string) error {
	objects, ctx := podmilltest.NewObjects(), context.Background()
	opts := []Option{WithObjects(objects, objects)}
	if !mayMount() {
		opts = append(opts, WithFilesOnDisk())
	}
	m, err := New(root, opts...)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	pod := victimPod()
	for version := 0; ; version++ {
		setVersion(objects, version)
		ready, err := m.MountVolumes(ctx, pod)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(ready["d"].HostPath, "a/b/c"), 0o755); err != nil {
			return err
		}
		if mayMount() {
			for i, part := range []podmill.SubPath{{Volume: "v", Path: "0"}, {Volume: "s", Path: "1"}, {Volume: "d", Path: "a/b"}, {Volume: "d", Path: strconv.Itoa(version)}} {
				part.Container, part.Index = "c", i
				if _, err := m.MountSubPath(ctx, pod, part); err != nil {
					return err
				}
			}
		}
		if version%4 == 3 {
			if err := m.UnmountVolumes(ctx, pod.UID); err != nil {
				return err
			}
		}
	}
}

// The agent is killed at any time. What it leaves has one version in each volume, and the next agent repairs or removes it, with what was mounted of parts.
func TestKilledAgent(t *testing.T) {
	r := newRig(t)
	pod := victimPod()
	setVersion(r.objects, 1000000)
	for round := range 12 {
		victim := exec.Command(os.Args[0], "-test.run=^$")
		victim.Env = append(os.Environ(), victimRoot+"="+r.root)
		out, err := victim.StdoutPipe()
		must(t, err, victim.Start())
		line := bufio.NewScanner(out)
		if !line.Scan() || line.Text() != "ready" {
			t.Fatalf("the victim says %q", line.Text())
		}
		// Not a wait for anything: any moment is as good.
		time.Sleep(rand.N(30 * time.Millisecond))
		must(t, victim.Process.Kill())
		_ = victim.Wait()

		oneVersion(t, r.place(pod, "kubernetes.io~configmap", "v"))
		oneVersion(t, r.place(pod, "kubernetes.io~secret", "s"))
		r.restart()
		if round%2 == 0 {
			ready, err := r.MountVolumes(t.Context(), pod)
			must(t, err)
			for _, name := range []string{"v", "s"} {
				holds(t, ready[name].HostPath, map[string]string{"0": "1000000", "1": "1000000", "2": "1000000", "3": "1000000"})
			}
			r.unmount(pod)
		} else {
			must(t, r.Cleanup(t.Context(), func(types.UID) bool { return false }))
		}
		if left := r.list("pods"); len(left) > 0 {
			t.Fatalf("left: %v", left)
		}
	}
}

// oneVersion fails the test unless a volume, if it is there, has one whole version.
func oneVersion(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(path, "..data"))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	must(t, err)
	first := ""
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(path, "..data", entry.Name()))
		must(t, err)
		if first == "" {
			first = string(data)
		}
		if string(data) != first {
			t.Errorf("a mix of %s and %s in %s", first, data, path)
		}
	}
	if version, _ := strconv.Atoi(first); len(entries) != 3+version%3 {
		t.Errorf("version %s has %d files in %s", first, len(entries), path)
	}
}
