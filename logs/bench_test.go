package logs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/podmill/podmill"
)

// BenchmarkLook is a look at the logs of a full node of which none has grown too large, beside a bare one at each file.
func BenchmarkLook(b *testing.B) {
	dir := b.TempDir()
	var pods []*podmill.RuntimePod
	for i := range 110 {
		path := filepath.Join(dir, fmt.Sprint("pod-", i), "web", "0.log")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("a line\n"), 0o600); err != nil {
			b.Fatal(err)
		}
		pods = append(pods, &podmill.RuntimePod{Containers: []podmill.Container{{Name: "web", State: podmill.StateRunning, LogPath: path}}})
	}
	b.Run("baseline=Lstat", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, pod := range pods {
				if _, err := os.Lstat(pod.Containers[0].LogPath); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("look", func(b *testing.B) {
		r := New(dir, nil, nil)
		b.ReportAllocs()
		for b.Loop() {
			if !r.look(b.Context(), pods) {
				b.Fatal("there is no use in looking")
			}
		}
	})
}
