//go:build !race

package hostdir

import (
	"os"
	"testing"

	"github.com/podmill/podmill/internal/ratio"
	"github.com/podmill/podmill/internal/testenv"
)

// Whether a directory is a mount costs the same on a node with few mounts and with thousands.
func TestIsMountCostsTheSameWithManyMounts(t *testing.T) {
	testenv.Root(t)
	few, many := elsewhere(t, 10), elsewhere(t, 4000)
	ask := func(root *os.Root, name string) func() {
		return func() {
			if mounted, err := IsMount(root, name); err != nil || !mounted {
				t.Fatal(mounted, err)
			}
		}
	}
	ratio.AtMost(t, 2, ask(many, "3999"), ask(few, "9"))
}

// elsewhere is manyMounts on a thread of its own, which is there until the test ends.
func elsewhere(t *testing.T, n int) *os.Root {
	t.Helper()
	made, over, gone := make(chan *os.Root, 1), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		defer close(made)
		made <- manyMounts(t, n)
		<-over
	}()
	t.Cleanup(func() { close(over); <-gone })
	root := <-made
	if root == nil {
		t.FailNow()
	}
	return root
}
