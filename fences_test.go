package podmill_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/podmill/podmill"

// pkg is what `go list` tells of a package. Deps is transitive.
type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// within returns the path of a package of this module below the module's root, and whether it is one.
func within(importPath string) (string, bool) {
	if importPath == module {
		return "", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// top returns the first element of a path: the room of the house that a package is in.
func top(path string) string {
	first, _, _ := strings.Cut(path, "/")
	return first
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports,Deps", "./...").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Skipf("the fences are not checked: go list cannot run: %v", err)
	}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if _, ok := within(p.ImportPath); ok {
			all = append(all, p)
		}
	}
}

// TestFences holds the arrows of the design: examples -> agent -> blocks -> the contract -> the Kubernetes API.
func TestFences(t *testing.T) {
	// composers may import blocks; everything else that is neither internal nor the contract is a block.
	composers := []string{"agent", "examples"}
	// A leaf is a pure function of Kubernetes' types, like those below internal, that users want too.
	leaves := []string{"podspec"}
	// keepers are the rooms that may reach a dependency. Whatever else reaches it drags it into every agent.
	keepers := map[string][]string{
		"k8s.io/client-go":                            {"apiserver", "internal/testenv/testapi", "examples"},
		"google.golang.org/grpc":                      {"cri", "probe/grpcprobe", "volume/csi", "internal/testenv/testcsi/driver", "examples"},
		"k8s.io/cri-api":                              {"cri", "examples"},
		"k8s.io/kubelet":                              {"volume/csi", "internal/testenv/testcsi/driver", "examples"},
		"github.com/container-storage-interface/spec": {"volume/csi", "internal/testenv/testcsi/driver", "examples"},
		"github.com/containerd/cgroups":               {"cgroup", "examples"},
		"github.com/fsnotify/fsnotify":                {"staticpod", "examples"},
		"k8s.io/kubernetes":                           {},
		"github.com/onsi/gomega":                      {},
		"github.com/stretchr/testify":                 {},
		"github.com/google/go-cmp":                    {"podmilltest", "examples"},
		"pgregory.net/rapid":                          {},
		"github.com/spf13/cobra":                      {},
		"github.com/prometheus/client_golang":         {},
	}
	for _, p := range packages(t) {
		path, _ := within(p.ImportPath)
		room := top(path)
		for dep, rooms := range keepers {
			if slices.Contains(rooms, room) || slices.Contains(rooms, path) {
				continue
			}
			if i := slices.IndexFunc(p.Deps, func(d string) bool { return d == dep || strings.HasPrefix(d, dep+"/") }); i >= 0 {
				t.Errorf("%s reaches %s, which only %v may", p.ImportPath, p.Deps[i], rooms)
			}
		}
		for _, imp := range p.Imports {
			target, ours := within(imp)
			if !ours || slices.Contains(composers, room) {
				continue
			}
			switch other := top(target); {
			case path == "":
				t.Errorf("the contract imports %s; it stands on Kubernetes' types alone", imp)
			case room == "internal" && other != "internal" && other != "":
				t.Errorf("%s imports the block %s", p.ImportPath, imp)
			case other != "" && other != "internal" && other != room && !slices.Contains(leaves, other):
				t.Errorf("the block %s imports %s; blocks are joined by whoever composes them", p.ImportPath, imp)
			}
		}
	}
}

// TestNoReplace holds that importing the library needs no replace line, and bumps nobody: k8s.io/* stays at the lowest patch.
func TestNoReplace(t *testing.T) {
	file, err := os.Open("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "replace") || strings.Contains(line, "=>") {
			t.Errorf("go.mod has a replace: %s", line)
		}
		for _, m := range []string{"k8s.io/api ", "k8s.io/apimachinery ", "k8s.io/cri-api ", "k8s.io/client-go ", "k8s.io/kubelet "} {
			if strings.HasPrefix(line, m) && !strings.HasSuffix(line, ".0") {
				t.Errorf("go.mod asks for more than the lowest patch: %s", line)
			}
		}
	}
}
