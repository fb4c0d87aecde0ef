package node_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/node"
)

func TestTheFiftyLargestImagesAreTold(t *testing.T) {
	var images []podmill.Image
	for i := range 60 {
		images = append(images, podmill.Image{ID: fmt.Sprint(i), RepoTags: []string{fmt.Sprint("image:", i)}, Size: uint64(i % 55)})
	}
	images[54].RepoTags = []string{"a:1", "a:2", "a:3", "a:4"}
	images[54].RepoDigests = []string{"a@sha256:1", "b@sha256:1"}
	said := node.Images(images)
	if len(said) != 50 || said[0].SizeBytes != 54 || said[49].SizeBytes <= 4 {
		t.Fatalf("said %d images, from %+v to %+v", len(said), said[0], said[len(said)-1])
	}
	if diff := cmp.Diff([]string{"a@sha256:1", "b@sha256:1", "a:1", "a:2", "a:3"}, said[0].Names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	slices.Reverse(images)
	if diff := cmp.Diff(said, node.Images(images)); diff != "" {
		t.Errorf("another order of the list is another list:\n%s", diff)
	}
}
