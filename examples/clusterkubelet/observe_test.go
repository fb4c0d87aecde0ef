package main

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/node"
	"github.com/podmill/podmill/podmilltest"
)

// slow is a runtime whose list of images does not come.
type slow struct{ *podmilltest.Runtime }

func (s slow) RuntimeStatus(ctx context.Context) (*podmill.RuntimeStatus, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.Runtime.RuntimeStatus(ctx)
}

func (slow) ListImages(ctx context.Context) ([]podmill.Image, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A node is well whose runtime says so and does not come to list its images.
func TestImagesThatDoNotComeMakeNoNodeIll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &observer{
			config: &config{}, runtime: slow{podmilltest.NewRuntime()}, healthy: func() error { return nil },
			inUse:     func(context.Context) []corev1.UniqueVolumeName { return nil },
			pressures: node.NewPressures(node.DefaultThresholds(), time.Minute),
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		conditions := o.state(ctx).Conditions
		ready := slices.IndexFunc(conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
		if ready < 0 || conditions[ready].Status != corev1.ConditionTrue {
			t.Errorf("conditions %+v, want Ready", conditions)
		}
	})
}
