package staticpod

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

func manifest(name, image string) string {
	return strings.NewReplacer("name: web", "name: "+name, "web:1", image).Replace(web)
}

// rig is a directory that runs, and what it delivers and tells.
type rig struct {
	*testing.T
	dir      string
	source   *Directory
	updates  chan []*corev1.Pod
	problems chan Problem
	stop     context.CancelFunc
}

func newRig(t *testing.T, path string, opts ...Option) *rig {
	t.Helper()
	return newRigWith(t, path, settleQuiet, opts...)
}

func newRigWith(t *testing.T, path string, quiet time.Duration, opts ...Option) *rig {
	t.Helper()
	r := &rig{T: t, dir: path, updates: make(chan []*corev1.Pod, 100), problems: make(chan Problem, 1000)}
	opts = append([]Option{WithPeriod(time.Hour), WithObserver(Observer{Problem: func(p Problem) { r.problems <- p }})}, opts...)
	r.source = NewDirectory(path, "node1", opts...)
	r.source.quiet = quiet
	r.run()
	return r
}

// run runs the source until stop or the end of the test.
func (r *rig) run() {
	ctx, cancel := context.WithCancel(r.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := r.source.Run(ctx, func(u podmill.PodUpdate) {
			if u.Op != podmill.ReplacePods {
				r.Errorf("delivered %v", u.Op)
			}
			r.updates <- u.Pods
		})
		if err != nil {
			r.Errorf("Run: %v", err)
		}
	}()
	r.stop = func() { cancel(); <-ended }
	r.Cleanup(r.stop)
}

// next returns what is delivered next.
func (r *rig) next() []*corev1.Pod {
	r.Helper()
	select {
	case pods := <-r.updates:
		return pods
	case <-time.After(patience):
		r.Fatal("nothing is delivered")
		return nil
	}
}

// gets checks that what is delivered next is this, as name=image.
func (r *rig) gets(want ...string) []*corev1.Pod {
	r.Helper()
	pods := r.next()
	got := []string{}
	for _, pod := range pods {
		got = append(got, strings.TrimSuffix(pod.Name, "-node1")+"="+pod.Spec.Containers[0].Image)
	}
	slices.Sort(got)
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		r.Fatalf("(-want +got):\n%s", diff)
	}
	return pods
}

// says waits for a problem that begins so.
func (r *rig) says(prefix string) {
	r.Helper()
	var seen []string
	timeout := time.After(patience)
	for {
		select {
		case p := <-r.problems:
			if strings.HasPrefix(p.String(), prefix) {
				return
			}
			seen = append(seen, p.String())
		case <-timeout:
			r.Fatalf("it is not said: %s\nbut: %q", prefix, seen)
		}
	}
}

// put writes a file at once.
func (r *rig) put(name, text string) {
	r.Helper()
	tmp := filepath.Join(r.dir, ".tmp")
	r.must(os.WriteFile(tmp, []byte(text), 0o600))
	r.must(os.Rename(tmp, filepath.Join(r.dir, name)))
}

func (r *rig) remove(name string) {
	r.Helper()
	r.must(os.Remove(filepath.Join(r.dir, name)))
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}
