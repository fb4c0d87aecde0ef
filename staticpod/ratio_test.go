//go:build !race

package staticpod

import (
	"testing"

	"github.com/go-logr/logr"

	"github.com/podmill/podmill/internal/ratio"
)

// A look at a directory in which nothing has changed costs little more than to read its files.
func TestAScanBesideItsBaseline(t *testing.T) {
	dir := manifestDir(t, 30)
	d := NewDirectory(dir, "node1")
	ratio.AtMost(t, 2, func() {
		if now := d.scan(logr.Discard()); len(now.pods) != 30 {
			t.Fatal("not all pods")
		}
	}, func() { readFiles(t, dir) })
}
