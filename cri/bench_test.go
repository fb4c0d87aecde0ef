package cri

import (
	"fmt"
	"os"
	"testing"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podspec"
)

// startOfThree returns what the start of a pod of three containers takes: whether all that it asks for is served, and what CRI is told.
func startOfThree(t testing.TB) func() []proto.Message {
	t.Helper()
	data, err := os.ReadFile("testdata/security.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := yaml.Unmarshal(data, &pod); err != nil {
		t.Fatal(err)
	}
	tr, sandbox := translator(false), sandboxSpec(&pod)
	specs := []*podmill.ContainerSpec{containerSpec(sandbox, 0), containerSpec(sandbox, 1), containerSpec(sandbox, 2)}
	served := Features()
	for _, field := range podspec.Fields() { // what other blocks serve
		if _, said := served.Of(field); !said {
			served[field] = podmill.Feature{}
		}
	}
	checker := podspec.NewChecker(served)
	return func() (messages []proto.Message) {
		if refused := checker.Refused(&pod); len(refused) > 0 {
			t.Fatal(refused)
		}
		config, err := tr.sandbox(sandbox)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, config)
		for _, spec := range specs {
			config, err := tr.sandbox(sandbox) // goes with each container
			if err != nil {
				t.Fatal(err)
			}
			container, err := tr.container(spec)
			if err != nil {
				t.Fatal(err)
			}
			messages = append(messages, config, container)
		}
		return messages
	}
}

// marshal is what gRPC pays to write messages.
func marshal(t testing.TB, messages []proto.Message) {
	t.Helper()
	for _, m := range messages {
		if _, err := proto.Marshal(m); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkTranslation is the start of a pod of three containers, beside what gRPC pays to write the same messages. The goal is 50 µs.
func BenchmarkTranslation(b *testing.B) {
	translate := startOfThree(b)
	b.Run("translate", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			translate()
		}
	})
	b.Run("baseline=Marshal", func(b *testing.B) {
		messages := translate()
		b.ReportAllocs()
		for b.Loop() {
			marshal(b, messages)
		}
	})
}

// BenchmarkListing is what reading a listing of which nothing has changed costs, beside protobuf's own reader.
func BenchmarkListing(b *testing.B) {
	for _, pods := range []int{333, 3333} {
		items := 3 * pods
		sandboxes, containers := node(pods)
		messages := wire(b, sandboxes, containers)
		perItem := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*items), "ns/item")
		}
		b.Run(fmt.Sprintf("items=%d/read", items), func(b *testing.B) {
			var snap podmill.Snapshot
			if err := fill(&snap, messages); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := fill(&snap, messages); err != nil {
					b.Fatal(err)
				}
			}
			perItem(b)
		})
		b.Run(fmt.Sprintf("items=%d/baseline=Unmarshal", items), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var s runtimeapi.ListPodSandboxResponse
				var c runtimeapi.ListContainersResponse
				if proto.Unmarshal(messages[0], &s) != nil || proto.Unmarshal(messages[1], &c) != nil {
					b.Fatal("unreadable")
				}
			}
			perItem(b)
		})
	}
}

// BenchmarkListPods is the same with the calls, on a socket.
func BenchmarkListPods(b *testing.B) {
	sandboxes, containers := node(100)
	s := newServer(b).on("ListPodSandbox", says(&runtimeapi.ListPodSandboxResponse{Items: sandboxes})).
		on("ListContainers", says(&runtimeapi.ListContainersResponse{Containers: containers}))
	c := s.start(b).dial(b)
	perItem := func(b *testing.B) { b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/300, "ns/item") }
	b.Run("ListPods", func(b *testing.B) {
		var snap podmill.Snapshot
		b.ReportAllocs()
		for b.Loop() {
			if err := c.ListPods(b.Context(), &snap); err != nil {
				b.Fatal(err)
			}
		}
		perItem(b)
	})
	b.Run("baseline=calls", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.runtime.ListPodSandbox(b.Context(), &runtimeapi.ListPodSandboxRequest{}); err != nil {
				b.Fatal(err)
			}
			if _, err := c.runtime.ListContainers(b.Context(), &runtimeapi.ListContainersRequest{}); err != nil {
				b.Fatal(err)
			}
		}
		perItem(b)
	})
}
