package image

import (
	"context"
	"testing"

	"github.com/distribution/reference"

	"github.com/podmill/podmill"
)

// BenchmarkPresent is what the start of a container whose image is here costs beside the runtime's one call, and what reading the name
// costs of it.
func BenchmarkPresent(b *testing.B) {
	s := &present{podmill.Image{ID: "sha256:1"}}
	pod, ctr := newPod("web"), container("registry.example/shop/web:1")
	auths := []podmill.ImageAuth{{Username: "u", Password: "p", ServerAddress: "registry.example"}}
	b.Run("baseline=ParseNormalizedNamed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := reference.ParseNormalizedNamed(ctr.Image); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("EnsureImage", func(b *testing.B) {
		p := New(s)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := p.EnsureImage(b.Context(), pod, ctr, nil, auths); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// present is a store that has every image.
type present struct{ image podmill.Image }

func (s *present) PullImage(context.Context, *podmill.ImagePull) (string, error) {
	return s.image.ID, nil
}
func (s *present) InspectImage(context.Context, string) (*podmill.Image, error) { return &s.image, nil }
