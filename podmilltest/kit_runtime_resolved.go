package podmilltest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// What an agent has resolved wins over the pod's own words. Each test gives both, and the unresolved one is wrong.

func testResolvedCommandWins(k *runtimeKit) {
	spec := k.pod()
	sandbox := k.runSandbox(spec)
	unresolved := *spec.Pod.Spec.Containers[0].DeepCopy()
	unresolved.Command, unresolved.Args = k.Commands.Exit(98), nil
	withArgs := *unresolved.DeepCopy()
	withArgs.Command, withArgs.Args = nil, k.Commands.Exit(97)[1:]
	for attempt, wrong := range []*corev1.Container{&unresolved, &withArgs} {
		line := k.Commands.Exit(5)
		for _, split := range []int{1, len(line)} { // with arguments, and with a command alone
			c := k.container(spec, sandbox, line)
			c.Container, c.Attempt = wrong, uint32(10*attempt+split)
			c.Command, c.Args = line[:split], line[split:]
			if seen := k.exited(spec.Pod, k.start(c)); seen.ExitCode != 5 {
				k.Errorf("exit code %d with command %q and arguments %q, want 5", seen.ExitCode, c.Command, c.Args)
			}
		}
	}
}

func testResolvedEnvironmentWins(k *runtimeKit) {
	k.given("Commands.PrintEnv", k.Commands.PrintEnv != nil)
	spec := k.pod()
	sandbox := k.runSandbox(spec)
	c := k.container(spec, sandbox, k.Commands.Sleep(time.Hour))
	c.Container.Env = []corev1.EnvVar{{Name: "A", Value: "unresolved"}, {Name: "ONLY_IN_THE_POD", Value: "unresolved"}}
	c.Env = []podmill.EnvVar{{Name: "A", Value: "earlier"}, {Name: "B", Value: "two words, $A and \"quotes\""}, {Name: "A", Value: "resolved"}}
	c.Container.WorkingDir, c.WorkingDir = "/unresolved", "/resolved"
	container := k.start(c)
	for name, want := range map[string]string{"A": "resolved", "B": "two words, $A and \"quotes\"", "ONLY_IN_THE_POD": ""} {
		if got := k.output(container, k.Commands.PrintEnv(name)); got != want+"\n" {
			k.Errorf("variable %s is %q, want %q", name, got, want)
		}
	}
	if k.Commands.PrintWorkingDir != nil {
		if got := k.output(container, k.Commands.PrintWorkingDir()); got != "/resolved\n" {
			k.Errorf("working directory %q, want /resolved", got)
		}
	}
}

func testResolvedImageWins(k *runtimeKit) {
	image, err := k.Runtime.InspectImage(k.ctx, k.Image)
	k.ok("InspectImage", err)
	spec := k.pod() // its container's own image does not exist
	sandbox := k.runSandbox(spec)
	names := append([]string{image.ID, k.Image}, image.RepoDigests...)
	for attempt, name := range []string{image.ID, k.Image} {
		c := k.container(spec, sandbox, k.Commands.Exit(0))
		c.Image, c.Attempt = name, uint32(attempt)
		seen := k.see(spec.Pod, k.start(c))
		if !slices.Contains(names, seen.ImageID) {
			k.Errorf("the image's ID is %q, want one of %q", seen.ImageID, names)
		}
		if seen.Image == "" || strings.Contains(seen.Image, "unresolved") {
			k.Errorf("the image is %q, want a name of %s", seen.Image, name)
		}
	}
}

func testResolvedUserWins(k *runtimeKit) {
	k.given("Commands.PrintUser", k.Commands.PrintUser != nil)
	spec := k.pod()
	sandbox := k.runSandbox(spec)
	unresolved, resolved, group := int64(4321), int64(1234), int64(1235)
	for want, user := range map[string]*podmill.User{"0\n": nil, "1234\n": {UID: &resolved, GID: &group}} {
		c := k.container(spec, sandbox, k.Commands.Sleep(time.Hour))
		c.Container.SecurityContext = &corev1.SecurityContext{RunAsUser: &unresolved}
		c.User = user
		if user != nil {
			c.Attempt = 1
		}
		if got := k.output(k.start(c), k.Commands.PrintUser()); got != want {
			k.Errorf("it runs as %q with the resolved user %+v, want %q", got, user, want)
		}
	}
}

func testResolvedMountsWin(k *runtimeKit) {
	k.given("Dir", k.Dir != "")
	k.given("Commands.Read and Write", k.Commands.Read != nil && k.Commands.Write != nil)
	spec := k.pod()
	sandbox := k.runSandbox(spec)
	dir := filepath.Join(k.Dir, "volumes", string(spec.Pod.UID))
	k.ok("make a volume", os.MkdirAll(filepath.Join(dir, "sub"), 0o755))
	k.ok("write into the volume", os.WriteFile(filepath.Join(dir, "sub", "file"), []byte("content"), 0o644))

	c := k.container(spec, sandbox, k.Commands.Sleep(time.Hour))
	c.Container.VolumeMounts = []corev1.VolumeMount{{Name: "nowhere", MountPath: "/unresolved"}}
	c.Mounts = []podmill.Mount{
		{ContainerPath: "/data", HostPath: dir},
		{ContainerPath: "/data/sub", HostPath: filepath.Join(dir, "sub"), ReadOnly: true},
	}
	container := k.start(c)
	if got := k.output(container, k.Commands.Read("/data/sub/file")); got != "content" {
		k.Errorf("the file is %q, want %q", got, "content")
	}
	k.output(container, k.Commands.Write("/data/new", "from the container"))
	if got, err := os.ReadFile(filepath.Join(dir, "new")); err != nil || string(got) != "from the container\n" {
		k.Errorf("what the container wrote is %q, %v", got, err)
	}
	result, err := k.Runtime.Exec(k.ctx, container, k.Commands.Write("/data/sub/new", "no"))
	k.ok("Exec", err)
	if result.ExitCode == 0 {
		k.Error("a write to a read-only mount succeeded")
	}
}

func testResolvedHostnameAndDNSWin(k *runtimeKit) {
	k.given("Commands.PrintHostname", k.Commands.PrintHostname != nil)
	spec := k.pod(func(pod *corev1.Pod) { pod.Spec.Hostname = "unresolved" })
	spec.Hostname = "resolved"
	spec.DNS = &podmill.DNS{Servers: []string{"192.0.2.53"}, Searches: []string{"ns.svc.example", "svc.example"}, Options: []string{"ndots:5"}}
	container := k.start(k.container(spec, k.runSandbox(spec), k.Commands.Sleep(time.Hour)))
	if got := k.output(container, k.Commands.PrintHostname()); got != "resolved\n" {
		k.Errorf("hostname %q, want resolved", got)
	}
	if k.Commands.Read == nil {
		return
	}
	got := strings.Fields(k.output(container, k.Commands.Read("/etc/resolv.conf")))
	want := strings.Fields("search ns.svc.example svc.example nameserver 192.0.2.53 options ndots:5")
	if !slices.Equal(sorted(got), sorted(want)) {
		k.Errorf("resolv.conf holds %q, want %q", got, want)
	}
}

func sorted(words []string) []string { return slices.Sorted(slices.Values(words)) }
