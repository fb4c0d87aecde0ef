package syncpod_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

func subPath(volume, at, path, expr string) podmilltest.ContainerOption {
	return func(c *corev1.Container) {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: at, SubPath: path, SubPathExpr: expr})
	}
}

// A container gets the parts that it asks for of its volumes, with its own variables put in, and of images that are brought for it.
func TestPartsAndImages(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		asked := r.asked()
		pod := podmilltest.Pod("shop/cart", podmilltest.Volume("data", corev1.VolumeSource{}),
			podmilltest.Volume("tools", corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "tools:1"}}),
			podmilltest.Container("web", "img:1", podmilltest.Env("WHO", "me"), subPath("data", "/a", "a/b", ""), subPath("data", "/me", "", "of/$(WHO)"),
				subPath("tools", "/tools", "", ""), subPath("tools", "/bin", "bin", "")),
			podmilltest.Container("plain", "img:1"))
		if _, err := r.SyncPod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		image, err := r.rt.InspectImage(t.Context(), "tools:1")
		if err != nil {
			t.Fatal(err)
		}
		data := filepath.Join(r.root, "volumes", string(pod.UID), "data")
		want := []podmill.Mount{
			{ContainerPath: "/a", HostPath: data + "/a/b"}, {ContainerPath: "/me", HostPath: data + "/of/me"},
			{ContainerPath: "/tools", Image: image.ID, ReadOnly: true}, {ContainerPath: "/bin", Image: image.ID, ImageSubPath: "bin", ReadOnly: true},
		}
		for _, spec := range asked.containers {
			if spec.Container.Name != "web" {
				continue
			}
			if diff := cmp.Diff(want, spec.Mounts[:len(want)]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		if n := len(asked.containers); n != 2 {
			t.Errorf("%d containers were created", n)
		}
	})
}

// What a container waits for is said of it, and of no other.
func TestPartsAndImagesThatCannotBeHad(t *testing.T) {
	for name, tt := range map[string]struct {
		mount   podmilltest.ContainerOption
		reason  string
		message string
	}{
		"image":    {subPath("tools", "/tools", "", ""), "ErrImagePull", "no such image"},
		"variable": {subPath("data", "/data", "", "of/$(WHO)"), "CreateContainerConfigError", `volumeMounts of volume "data": subPathExpr "of/$(WHO)": missing value for WHO`},
		"part": {subPath("data", "/data", "broken", ""), "CreateContainerConfigError",
			`volumeMounts of volume "data": failed to prepare subPath for volumeMount "data" of container "web": mount subPath "broken" of volume data`},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				pod := podmilltest.Pod("shop/cart", podmilltest.Volume("data", corev1.VolumeSource{}),
					podmilltest.Volume("tools", corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "tools:1"}}),
					podmilltest.Container("web", "img:1", tt.mount), podmilltest.Container("plain", "img:1"))
				r.faulty.Add(podmilltest.Fault{On: podmilltest.OpPullImage, Effect: podmilltest.Fail(errors.New("no such image"))})
				calls := 0
				r.volumes.Fail(func(_ types.UID, volume string) error {
					if volume != "data" {
						return nil
					}
					if calls++; calls == 2 && name == "part" { // the first makes the volume ready
						return errors.New("it cannot be mounted")
					}
					return nil
				})
				_, err := r.SyncPod(t.Context(), pod)
				w := r.progress.Waiting["web"]
				if err == nil || w.Reason != tt.reason || !strings.Contains(w.Message, tt.message) {
					t.Errorf("error %v, web waits with %+v", err, w)
				}
				if tt.reason == "ErrImagePull" && strings.Count(r.rt.Log().String(), "Error: ErrImagePull") != 1 {
					t.Errorf("people are not told once that an image is missing:\n%s", r.rt.Log())
				}
				if _, waits := r.progress.Waiting["plain"]; waits {
					t.Error("plain waits, too")
				}
			})
		})
	}
}
