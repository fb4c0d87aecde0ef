package userns_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/userns"
)

// perPod is how many IDs a pod gets.
const perPod = 1 << 16

func manager(t testing.TB, root string, opts ...userns.Option) *userns.Manager {
	t.Helper()
	m, err := userns.New(root, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// host returns the first ID that a pod has on the node.
func host(t testing.TB, m *userns.Manager, pod types.UID) uint32 {
	t.Helper()
	ids, err := m.Allot(pod)
	if err != nil {
		t.Fatal(err)
	}
	return ids.UIDs[0].Host
}

func file(root string, pod types.UID) string {
	return filepath.Join(root, "pods", string(pod), "userns")
}

func TestAllot(t *testing.T) {
	root := t.TempDir()
	ids, err := manager(t, root).Allot("u-1")
	if err != nil {
		t.Fatal(err)
	}
	all := []podmill.IDMapping{{Container: 0, Host: 65536, Length: 65536}}
	if diff := cmp.Diff(&podmill.IDMappings{UIDs: all, GIDs: all}, ids); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	data, err := os.ReadFile(file(root, "u-1"))
	const want = `{"uidMappings":[{"hostId":65536,"containerId":0,"length":65536}],"gidMappings":[{"hostId":65536,"containerId":0,"length":65536}]}`
	if err != nil || string(data) != want {
		t.Errorf("on disk is %s, %v; the kubelet has %s", data, err, want)
	}
}

// Whatever the order of calls, restarts and failures: no two pods have an ID in common, each keeps its own, all are within the bounds, and none is
// refused while one is free.
func TestNoTwoPodsShareAnID(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		root, err := os.MkdirTemp("", "userns")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(root)
		first, blocks := rapid.Uint64Range(1, 3).Draw(t, "first"), rapid.Uint64Range(1, 5).Draw(t, "blocks")
		start := func() *userns.Manager {
			m, err := userns.New(root, userns.WithIDs(first*perPod, blocks*perPod))
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		m, has := start(), map[types.UID]uint32{}
		pod := rapid.Custom(func(t *rapid.T) types.UID { return types.UID(fmt.Sprintf("u-%d", rapid.IntRange(0, 7).Draw(t, "pod"))) })
		t.Repeat(map[string]func(*rapid.T){
			"allot": func(t *rapid.T) {
				pod := pod.Draw(t, "pod")
				ids, err := m.Allot(pod)
				before, known := has[pod]
				switch {
				case err == nil:
					now := ids.UIDs[0].Host
					if known && now != before {
						t.Fatalf("pod %s had %d and has %d", pod, before, now)
					}
					has[pod] = now
				case !errors.Is(err, userns.ErrExhausted) || known || uint64(len(has)) < blocks:
					t.Fatalf("pod %s, of %d, gets none: %v", pod, len(has), err)
				}
			},
			"release": func(t *rapid.T) {
				pod := pod.Draw(t, "pod")
				if err := m.Release(pod); err != nil {
					t.Fatal(err)
				}
				delete(has, pod)
			},
			"restart": func(*rapid.T) { m = start() },
			"the disk is full": func(t *rapid.T) {
				pod := pod.Draw(t, "pod")
				if _, known := has[pod]; known {
					return
				}
				dir := filepath.Dir(file(root, pod))
				_ = os.RemoveAll(dir) // a release leaves it
				if err := errors.Join(os.MkdirAll(filepath.Dir(dir), 0o755), os.WriteFile(dir, nil, 0o600)); err != nil {
					t.Fatal(err)
				}
				if _, err := m.Allot(pod); err == nil {
					t.Fatalf("pod %s has a range of which nothing is on disk", pod)
				}
				_ = os.Remove(dir)
			},
			"": func(t *rapid.T) {
				owners := map[uint32]types.UID{}
				for pod, id := range has {
					if other, taken := owners[id]; taken {
						t.Fatalf("pods %s and %s both have %d", pod, other, id)
					}
					owners[id] = pod
					if b := uint64(id) / perPod; id%perPod != 0 || b < first || b >= first+blocks {
						t.Fatalf("pod %s has %d", pod, id)
					}
				}
			},
		})
	})
}

// Pods start side by side.
func TestConcurrentPods(t *testing.T) {
	m := manager(t, t.TempDir())
	var mu sync.Mutex
	owners := map[uint32]bool{}
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			ids, err := m.Allot(types.UID(fmt.Sprint("u-", i)))
			mu.Lock()
			defer mu.Unlock()
			if err != nil || owners[ids.UIDs[0].Host] {
				t.Errorf("pod %d: %v, %v", i, ids, err)
				return
			}
			owners[ids.UIDs[0].Host] = true
		})
	}
	all.Wait()
}

// A kubelet that ran here before may have been set to give more IDs, from elsewhere. What a pod has, it keeps, and nobody gets a part of it.
func TestWhatAKubeletHasAllottedIsKept(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Dir(file(root, "old")), 0o755); err != nil {
		t.Fatal(err)
	}
	const ids = `[{"hostId":131072,"containerId":0,"length":131072}]`
	if err := os.WriteFile(file(root, "old"), []byte(`{"uidMappings":`+ids+`,"gidMappings":`+ids+`}`), 0o600); err != nil {
		t.Fatal(err)
	}
	m := manager(t, root)
	if a, b := host(t, m, "a"), host(t, m, "b"); a != 65536 || b != 4*65536 {
		t.Errorf("new pods have %d and %d", a, b)
	}
	old, err := m.Allot("old")
	if err != nil || old.GIDs[0] != (podmill.IDMapping{Host: 131072, Length: 131072}) {
		t.Errorf("the old pod has %v, %v", old, err)
	}
	if err := m.Release("old"); err != nil {
		t.Fatal(err)
	}
	if c := host(t, m, "c"); c != 2*65536 {
		t.Errorf("after that the next has %d", c)
	}
}

// A file that says nothing may stand for any range.
func TestNothingIsAllottedBesideAnUnreadableFile(t *testing.T) {
	two := `[{"hostId":65536,"containerId":0,"length":65536},{"hostId":131072,"containerId":65536,"length":65536}]`
	one := `[{"hostId":65536,"containerId":0,"length":65536}]`
	for name, content := range map[string]string{
		"empty": "", "no JSON": "{", "nothing in it": "{}", "two ranges": `{"uidMappings":` + two + `,"gidMappings":` + two + `}`,
		"users only":       `{"uidMappings":` + one + `}`,
		"the host's root":  `{"uidMappings":[{"length":65536}],"gidMappings":[{"length":65536}]}`,
		"a crooked begin":  `{"uidMappings":[{"hostId":65537,"length":65536}],"gidMappings":[{"hostId":65537,"length":65536}]}`,
		"beyond all IDs":   `{"uidMappings":[{"hostId":4294901760,"length":131072}],"gidMappings":[{"hostId":4294901760,"length":131072}]}`,
		"negative numbers": `{"uidMappings":[{"hostId":-65536,"length":65536}],"gidMappings":[{"hostId":-65536,"length":65536}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if err := os.MkdirAll(filepath.Dir(file(root, "bad")), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file(root, "bad"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			m := manager(t, root)
			for _, pod := range []types.UID{"bad", "good"} {
				if _, err := m.Allot(pod); err == nil || !strings.Contains(err.Error(), "remove "+file(root, "bad")) {
					t.Errorf("pod %s: %v", pod, err)
				}
			}
			if err := m.Release("bad"); err != nil { // the pod has ended
				t.Fatal(err)
			}
			host(t, m, "good")
		})
	}
}

// Two files that claim the same IDs: one pod of them would read the other's files.
func TestAnOverlapOnDiskIsAnError(t *testing.T) {
	root := t.TempDir()
	host(t, manager(t, root), "a")
	data, err := os.ReadFile(file(root, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file(root, "b")), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file(root, "b"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := manager(t, root).Allot("c"); err == nil || !strings.Contains(err.Error(), "IDs from 65536 on are those of pod a, too") {
		t.Errorf("error %v", err)
	}
}

func TestUIDsThatAreNoNames(t *testing.T) {
	m := manager(t, t.TempDir())
	for _, pod := range []types.UID{"", ".", "..", "../x", "a/b", "/a"} {
		if _, err := m.Allot(pod); err == nil {
			t.Errorf("pod %q has a range", pod)
		}
		if err := m.Release(pod); err != nil {
			t.Error(err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for want, try := range map[string]func() (*userns.Manager, error){
		"is not an absolute path": func() (*userns.Manager, error) { return userns.New("lib") },
		"multiples of 65536":      func() (*userns.Manager, error) { return userns.New("/lib", userns.WithIDs(65536, 1000)) },
		"100000 and 65536 more":   func() (*userns.Manager, error) { return userns.New("/lib", userns.WithIDs(100000, 65536)) },
		"from 65536 to":           func() (*userns.Manager, error) { return userns.New("/lib", userns.WithIDs(0, 65536)) },
		"65536 and 0 more":        func() (*userns.Manager, error) { return userns.New("/lib", userns.WithIDs(65536, 0)) },
		"to 4294901759":           func() (*userns.Manager, error) { return userns.New("/lib", userns.WithIDs(65536, 1<<32-65536)) },
	} {
		if _, err := try(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func ExampleManager() {
	root, err := os.MkdirTemp("", "agent")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	ids, err := userns.New(root)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, pod := range []types.UID{"web", "db", "web"} {
		mappings, err := ids.Allot(pod)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(pod, mappings.UIDs[0])
	}
	// Output:
	// web {0 65536 65536}
	// db {0 131072 65536}
	// web {0 65536 65536}
}

// BenchmarkAllot is what a sync of a pod that has its range costs, beside a bare look into the file.
func BenchmarkAllot(b *testing.B) {
	root := b.TempDir()
	m := manager(b, root)
	host(b, m, "u-1")
	b.Run("baseline=ReadFile", func(b *testing.B) {
		for b.Loop() {
			_, _ = os.ReadFile(file(root, "u-1"))
		}
	})
	b.Run("Allot", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = m.Allot("u-1")
		}
	})
}
