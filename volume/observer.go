package volume

import (
	"time"

	"github.com/podmill/podmill"
)

// Observer is told of what a manager does. A nil func is not called; each returns at once.
type Observer struct {
	// SetUp follows each attempt to make a volume ready, or to bring it up to date.
	SetUp func(pod podmill.PodRef, volume string, took time.Duration, err error)
	// TearDown follows each attempt to take a volume away.
	TearDown func(p Place, took time.Duration, err error)
}

func (o Observer) setUp(pod podmill.PodRef, volume string, took time.Duration, err error) {
	if o.SetUp != nil {
		o.SetUp(pod, volume, took, err)
	}
}

func (o Observer) tearDown(p Place, took time.Duration, err error) {
	if o.TearDown != nil {
		o.TearDown(p, took, err)
	}
}
