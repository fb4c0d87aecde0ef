package staticpod

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// BenchmarkDecode compares a manifest's way to a pod with what only reads it.
func BenchmarkDecode(b *testing.B) {
	b.Run("baseline=sigs.k8s.io/yaml", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := yaml.UnmarshalStrict([]byte(web), &corev1.Pod{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, problems := fromFile().decode("web.yaml", []byte(web), start); len(problems) > 0 {
				b.Fatal(problems)
			}
		}
	})
}

// BenchmarkScan compares a look at a directory of 110 manifests in which nothing has changed with reading the files.
func BenchmarkScan(b *testing.B) {
	dir := b.TempDir()
	for i := range 110 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("pod%d.yaml", i)), []byte(manifest(fmt.Sprintf("pod%d", i), "web:1")), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("baseline=ReadFile", func(b *testing.B) {
		for b.Loop() {
			entries, err := os.ReadDir(dir)
			if err != nil {
				b.Fatal(err)
			}
			for _, entry := range entries {
				if _, err := os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("scan", func(b *testing.B) {
		d := NewDirectory(dir, "node1")
		for b.Loop() {
			if now := d.scan(logr.Discard()); len(now.pods) != 110 {
				b.Fatal("not all pods")
			}
		}
	})
}
