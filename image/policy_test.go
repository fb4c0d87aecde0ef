package image

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestPullPolicy shows what an image's name says of when to pull it, and that what the container says wins (B084).
func TestPullPolicy(t *testing.T) {
	const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, tc := range []struct {
		image      string
		explicit   corev1.PullPolicy
		pull       string
		repository string
		policy     corev1.PullPolicy
	}{
		{"img", "", "img:latest", "docker.io/library/img", corev1.PullAlways},
		{"img:latest", "", "img:latest", "docker.io/library/img", corev1.PullAlways},
		{"reg:5000/img", "", "reg:5000/img:latest", "reg:5000/img", corev1.PullAlways},
		{"reg:5000/img:v1", "", "reg:5000/img:v1", "reg:5000/img", corev1.PullIfNotPresent},
		{"img:v1", "", "img:v1", "docker.io/library/img", corev1.PullIfNotPresent},
		{"img:latest-2", "", "img:latest-2", "docker.io/library/img", corev1.PullIfNotPresent},
		{"img" + digest, "", "img" + digest, "docker.io/library/img", corev1.PullIfNotPresent},
		{"img:latest" + digest, "", "img:latest" + digest, "docker.io/library/img", corev1.PullIfNotPresent},
		{"img:latest", corev1.PullIfNotPresent, "img:latest", "docker.io/library/img", corev1.PullIfNotPresent},
		{"img", corev1.PullNever, "img:latest", "docker.io/library/img", corev1.PullNever},
		{"img:v1", corev1.PullAlways, "img:v1", "docker.io/library/img", corev1.PullAlways},
		{"team/img:v1", "", "team/img:v1", "docker.io/team/img", corev1.PullIfNotPresent},
		{"index.docker.io/img:v1", "", "index.docker.io/img:v1", "docker.io/library/img", corev1.PullIfNotPresent},
		{"localhost/img:v1", "", "localhost/img:v1", "localhost/img", corev1.PullIfNotPresent},
		{"[::1]:5000/a/b/c", "", "[::1]:5000/a/b/c:latest", "[::1]:5000/a/b/c", corev1.PullAlways},
	} {
		t.Run(tc.image+" "+string(tc.explicit), func(t *testing.T) {
			n, err := parse(tc.image)
			if err != nil {
				t.Fatal(err)
			}
			policy := policyOf(&corev1.Container{Image: tc.image, ImagePullPolicy: tc.explicit}, n)
			if n.pull != tc.pull || n.repository != tc.repository || policy != tc.policy {
				t.Errorf("got %+v, %s; want %+v", n, policy, tc)
			}
		})
	}
}

// TestInvalidNames shows what is no name of an image.
func TestInvalidNames(t *testing.T) {
	for _, image := range []string{
		"", " ", "img ", "Img", "img:", "img:a b", "img@sha256:12", "/img", "img//b", "http://reg/img", "reg/IMG", "-",
		strings.Repeat("a", 300), strings.Repeat("0", 64), "img:" + strings.Repeat("t", 129), "img\n",
	} {
		if n, err := parse(image); err == nil {
			t.Errorf("%q is taken for %+v", image, n)
		}
	}
}
