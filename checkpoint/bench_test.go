package checkpoint

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// BenchmarkCommit writes a burst of statuses, each of another pod, with one fsync.
// The baseline is a file for each that is written, synced and renamed.
func BenchmarkCommit(b *testing.B) {
	for _, pods := range []int{1, 30} {
		say := func(i, pod int) *corev1.PodStatus {
			return status(fmt.Sprint(i, pod, strings.Repeat(" and so on", 200)))
		}
		b.Run(fmt.Sprintf("pods=%d/journal", pods), func(b *testing.B) {
			j, _ := open(b, filepath.Join(b.TempDir(), "journal"))
			for i := range b.N {
				for pod := range pods {
					if err := j.put(fmt.Sprint("status/", pod), say(i, pod)); err != nil {
						b.Fatal(err)
					}
				}
				commit(b, j)
			}
		})
		b.Run(fmt.Sprintf("pods=%d/baseline=files", pods), func(b *testing.B) {
			dir := b.TempDir()
			for i := range b.N {
				for pod := range pods {
					data, err := json.Marshal(say(i, pod))
					if err != nil {
						b.Fatal(err)
					}
					if err := writeFile(filepath.Join(dir, fmt.Sprint(pod)), data); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func writeFile(path string, data []byte) error {
	file, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(data); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
