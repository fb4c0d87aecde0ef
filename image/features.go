package image

import (
	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/feature"
)

// Features says which fields of a PodSpec this package serves.
func (*Puller) Features() podmill.Features {
	return feature.Parse(`
containers: image imagePullPolicy
imagePullSecrets: name
`)
}
