package cri

import (
	"os"
	"testing"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"

	"github.com/podmill/podmill"
)

// BenchmarkTranslation is the start of a pod of three containers, beside what gRPC pays to write the same messages. The goal is 50 µs.
func BenchmarkTranslation(b *testing.B) {
	data, err := os.ReadFile("testdata/security.yaml")
	if err != nil {
		b.Fatal(err)
	}
	var pod corev1.Pod
	if err := yaml.Unmarshal(data, &pod); err != nil {
		b.Fatal(err)
	}
	tr, sandbox := translator(false), sandboxSpec(&pod)
	specs := []*podmill.ContainerSpec{containerSpec(sandbox, 0), containerSpec(sandbox, 1), containerSpec(sandbox, 2)}
	translate := func() (messages []proto.Message) {
		config, err := tr.sandbox(sandbox)
		if err != nil {
			b.Fatal(err)
		}
		messages = append(messages, config)
		for _, spec := range specs {
			config, err := tr.sandbox(sandbox) // goes with each container
			if err != nil {
				b.Fatal(err)
			}
			container, err := tr.container(spec)
			if err != nil {
				b.Fatal(err)
			}
			messages = append(messages, config, container)
		}
		return messages
	}
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
			for _, m := range messages {
				if _, err := proto.Marshal(m); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// BenchmarkListing is what a listing of 300 items costs beside reading the message that it comes in.
func BenchmarkListing(b *testing.B) {
	sandboxes, containers := node(100)
	messages := []proto.Message{&runtimeapi.ListPodSandboxResponse{Items: sandboxes}, &runtimeapi.ListContainersResponse{Containers: containers}}
	var wire [2][]byte
	for i, m := range messages {
		var err error
		if wire[i], err = proto.Marshal(m); err != nil {
			b.Fatal(err)
		}
	}
	read := func(b *testing.B) ([]*runtimeapi.PodSandbox, []*runtimeapi.Container) {
		var s runtimeapi.ListPodSandboxResponse
		var c runtimeapi.ListContainersResponse
		if proto.Unmarshal(wire[0], &s) != nil || proto.Unmarshal(wire[1], &c) != nil {
			b.Fatal("unreadable")
		}
		return s.Items, c.Containers
	}
	perItem := func(b *testing.B) { b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/300, "ns/item") }
	b.Run("fill", func(b *testing.B) {
		var snap podmill.Snapshot
		fill(&snap, sandboxes, containers)
		b.ReportAllocs()
		for b.Loop() {
			l := begin(&snap)
			for _, s := range sandboxes {
				l.add(sandboxItem(s))
			}
			for _, c := range containers {
				l.add(containerItem(c))
			}
			l.end()
		}
		perItem(b)
	})
	b.Run("baseline=Unmarshal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			read(b)
		}
		perItem(b)
	})
}
