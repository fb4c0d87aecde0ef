package cri_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/cri"
	"github.com/podmill/podmill/internal/testenv"
)

// An image that is not there is an answer; one that is denied is none; neither tells the credential.
func TestPullsThatFail(t *testing.T) {
	t.Parallel()
	eachContainerd(t, func(t *testing.T, endpoint string) {
		client := dial(t, endpoint)
		plain, private := testenv.PlainRegistry(t), testenv.AuthRegistry(t)
		name := fmt.Sprintf("cri-pulls-%d-%d", os.Getpid(), time.Now().UnixNano())
		secret := private.Push(t, name+":1", 1000)
		const wrong = "wr0ng-p4ssword"
		for what, tc := range map[string]struct {
			pull podmill.ImagePull
			is   bool // ErrNotFound
			want string
		}{
			"no such image":  {podmill.ImagePull{Image: plain.Addr + "/" + name + "-absent:1"}, true, "not found"},
			"no such tag":    {podmill.ImagePull{Image: plain.Addr + "/busybox:none"}, true, "not found"},
			"no credential":  {podmill.ImagePull{Image: secret}, false, ""},
			"wrong password": {podmill.ImagePull{Image: secret, Auth: &podmill.ImageAuth{Username: private.User, Password: wrong}}, false, ""},
			"unreachable":    {podmill.ImagePull{Image: "127.0.0.1:1/x:1", Auth: &podmill.ImageAuth{Username: "u", Password: wrong}}, false, "refused"},
			"no name":        {podmill.ImagePull{Image: "Not A Name"}, false, "reference"},
		} {
			_, err := client.PullImage(t.Context(), &tc.pull)
			if err == nil || errors.Is(err, podmill.ErrNotFound) != tc.is || errors.Is(err, cri.ErrUnavailable) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v", what, err)
			} else if strings.Contains(err.Error(), wrong) {
				t.Errorf("%s: the password is told: %v", what, err)
			}
		}
		pulled, err := client.PullImage(t.Context(), &podmill.ImagePull{Image: secret, Auth: &podmill.ImageAuth{Username: private.User, Password: private.Password}})
		if err != nil {
			t.Fatal(err)
		}
		if err := client.RemoveImage(t.Context(), pulled); err != nil {
			t.Error(err)
		}
	})
}

// An image is removed with all its names, whichever of them it is removed by.
func TestImageIsRemovedWithAllItsNames(t *testing.T) {
	t.Parallel()
	eachContainerd(t, func(t *testing.T, endpoint string) {
		client, registry := dial(t, endpoint), testenv.PlainRegistry(t)
		name := fmt.Sprintf("cri-names-%d-%d", os.Getpid(), time.Now().UnixNano())
		first := registry.Push(t, name+":1", 1000)
		id, err := client.PullImage(t.Context(), &podmill.ImagePull{Image: first})
		if err != nil {
			t.Fatal(err)
		}
		image, err := client.InspectImage(t.Context(), id)
		if err != nil || len(image.RepoTags) != 1 || image.RepoTags[0] != first || len(image.RepoDigests) != 1 || image.Size == 0 {
			t.Fatalf("%+v, %v", image, err)
		}
		byDigest := image.RepoDigests[0]
		if again, err := client.PullImage(t.Context(), &podmill.ImagePull{Image: byDigest}); err != nil || again != id {
			t.Fatalf("by its digest it is %s, %v", again, err)
		}
		if err := client.RemoveImage(t.Context(), first); err != nil {
			t.Error(err)
		}
		for _, name := range []string{first, byDigest, id} {
			if _, err := client.InspectImage(t.Context(), name); !errors.Is(err, podmill.ErrNotFound) {
				t.Errorf("%s is still there: %v", name, err)
			}
		}
	})
}
