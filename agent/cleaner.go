package agent

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill/syncloop"
)

// cleaner is a function that cleans up.
type cleaner func(ctx context.Context, keep func(types.UID) bool) error

// Cleanup calls the function.
func (c cleaner) Cleanup(ctx context.Context, keep func(types.UID) bool) error { return c(ctx, keep) }

// afterALook has c keep what a pod left behind also where the runtime holds something of the pod that no listing has shown, or cannot say.
// What is on disk may be in use, and is not removed on a listing's word.
func (a *Agent) afterALook(c syncloop.Cleaner) syncloop.Cleaner {
	return cleaner(func(ctx context.Context, keep func(types.UID) bool) error {
		return c.Cleanup(ctx, func(uid types.UID) bool {
			if keep(uid) {
				return true
			}
			seen, err := a.eyes.Observe(ctx, uid, true)
			return err != nil || !seen.Empty()
		})
	})
}
