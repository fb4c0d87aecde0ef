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
	dir := manifestDir(b, 110)
	b.Run("baseline=ReadFile", func(b *testing.B) {
		for b.Loop() {
			readFiles(b, dir)
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

func manifestDir(tb testing.TB, n int) string {
	dir := tb.TempDir()
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("pod%d.yaml", i)), []byte(manifest(fmt.Sprintf("pod%d", i), "web:1")), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

func readFiles(tb testing.TB, dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	for _, entry := range entries {
		if _, err := os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			tb.Fatal(err)
		}
	}
}
