package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/internal/testenv"
)

const namespacesManifest = `
apiVersion: v1
kind: Pod
metadata: {name: own}
spec:
  terminationGracePeriodSeconds: 0
  hostname: front
  subdomain: shops
  setHostnameAsFQDN: true
  containers:
  - {name: main, image: "podmill.test/busybox:1", command: [sleep, "100000"]}
  - {name: other, image: "podmill.test/busybox:1", command: [sleep, "100000"]}
---
apiVersion: v1
kind: Pod
metadata: {name: shared}
spec:
  terminationGracePeriodSeconds: 0
  shareProcessNamespace: true
  hostnameOverride: as.told
  containers:
  - {name: main, image: "podmill.test/busybox:1", command: [sleep, "100000"]}
  - {name: other, image: "podmill.test/busybox:1", command: [sleep, "4711"]}
---
apiVersion: v1
kind: Pod
metadata: {name: host}
spec:
  terminationGracePeriodSeconds: 0
  hostNetwork: true
  hostPID: true
  hostIPC: true
  containers:
  - {name: main, image: "podmill.test/busybox:1", command: [sleep, "100000"]}
`

// Which namespaces containers share with each other and with the node, and what they are called in theirs.
func TestNamespacesFromInside(t *testing.T) {
	testenv.EachContainerd(t, func(t *testing.T, endpoint string) {
		n := newNode(t, endpoint)
		n.args = []string{"--cluster-domain", "cluster.local"}
		n.write("pods.yaml", namespacesManifest)
		n.start()
		of := func(pod, container string) map[string]string {
			all := map[string]string{}
			for line := range strings.Lines(n.sh(pod, container, "cd /proc/self/ns; for n in net pid ipc uts; do echo $n $(readlink $n); done")) {
				name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
				all[name] = id
			}
			return all
		}
		for _, pod := range []string{"own", "shared", "host"} {
			n.reaches(pod, "is ready", ready)
		}
		node := map[string]string{}
		for _, name := range []string{"net", "pid", "ipc"} {
			node[name], _ = os.Readlink("/proc/self/ns/" + name)
		}
		main, other := of("own", "main"), of("own", "other")
		shared, beside := of("shared", "main"), of("shared", "other")
		host := of("host", "main")
		for name := range node {
			if alone := name == "pid"; (main[name] == other[name]) == alone || shared[name] != beside[name] {
				t.Errorf("%s of two containers: %s and %s, where they share processes %s and %s", name, main[name], other[name], shared[name], beside[name])
			}
			if host[name] != node[name] || main[name] == node[name] || shared[name] == node[name] || main[name] == shared[name] {
				t.Errorf("%s of the node: %s, of pods %s, %s and %s", name, node[name], host[name], main[name], shared[name])
			}
		}
		for _, want := range []struct{ pod, script, out string }{
			{"own", "hostname", "front.shops.default.svc.cluster.local"},
			{"own", "tr '\\0' ' ' < /proc/1/cmdline", "sleep 100000"},
			{"shared", "hostname", "as.told"},
			{"shared", "grep -sl '^sleep.4711' /proc/[0-9]*/cmdline | wc -l; grep -c sleep /proc/1/cmdline", "1\n0"},
			{"host", "hostname", hostname(t)},
		} {
			if got := n.sh(want.pod, "main", want.script+" || true"); got != want.out {
				t.Errorf("%s in pod %s: %q, want %q", want.script, want.pod, got, want.out)
			}
		}
	})
}

func hostname(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

const commandsManifest = `
apiVersion: v1
kind: Pod
metadata: {name: commands}
spec:
  restartPolicy: Never
  containers:
  - {name: neither, image: "podmill.test/entrypoint:1"}
  - {name: args, image: "podmill.test/entrypoint:1", args: ["$(WHO)", "$$(WHO)", "$(NOBODY)"], env: [{name: WHO, value: me}]}
  - {name: command, image: "podmill.test/entrypoint:1", command: [echo, own]}
  - {name: both, image: "podmill.test/entrypoint:1", command: [echo, own], args: [words]}
`

// What runs of an image's entrypoint and of what the pod says.
func TestCommandsAgainstTheImage(t *testing.T) {
	testenv.EachContainerd(t, func(t *testing.T, endpoint string) {
		n := newNode(t, endpoint)
		n.write("commands.yaml", commandsManifest)
		n.start()
		n.reaches("commands", "has ended", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded })
		for container, want := range map[string]string{
			"neither": "entrypoint cmd", "args": "entrypoint me $(WHO) $(NOBODY)", "command": "own", "both": "own words",
		} {
			if got, err := n.ask("logs", "commands", container); err != nil || strings.TrimSpace(got) != want {
				t.Errorf("%s says %q, %v, want %q", container, got, err, want)
			}
		}
	})
}

func filesManifest(name, context string) string {
	return `
apiVersion: v1
kind: Pod
metadata: {name: ` + name + `, labels: {app: files}}
spec:
  terminationGracePeriodSeconds: 0
  securityContext: {` + context + `}
  containers:
  - name: main
    image: podmill.test/busybox:1
    command: [sleep, "100000"]
    volumeMounts: [{name: all, mountPath: /all}, {name: secret, mountPath: /secret}, {name: config, mountPath: /config}, {name: own, mountPath: /own}]
  volumes:
  - name: all
    projected:
      defaultMode: 0440
      sources:
      - secret: {name: files, items: [{key: a, path: deep/er/a, mode: 0400}, {key: b, path: b}]}
      - configMap: {name: files, items: [{key: run, path: run, mode: 0755}]}
      - downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}, {path: cpu, mode: 0404, resourceFieldRef: {containerName: main, resource: limits.cpu}}]}
  - name: secret
    secret: {secretName: files, defaultMode: 0400}
  - name: config
    configMap: {name: files}
  - name: own
    downwardAPI: {defaultMode: 0600, items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}
`
}

// Owner and mode of every file that an agent makes, with a group of the pod's and without; and that nobody in the container can write any of them.
func TestFilesFromInside(t *testing.T) {
	const objects = "{apiVersion: v1, kind: Secret, metadata: {name: files}, stringData: {a: secret a, b: secret b}}\n---\n" +
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: files}, data: {run: echo run}}"
	const files = "/all/b /all/cpu /all/deep/er/a /all/labels /all/run /config/run /own/labels /secret/a /secret/b"
	testenv.EachContainerd(t, func(t *testing.T, endpoint string) {
		n := newNode(t, endpoint)
		n.write("objects.yaml", objects)
		n.write("plain.yaml", filesManifest("plain", ""))
		n.write("grouped.yaml", filesManifest("grouped", "runAsUser: 1000, fsGroup: 3000"))
		n.start()
		for pod, want := range map[string]string{
			"plain":   "0:0 440\n0:0 404\n0:0 400\n0:0 440\n0:0 755\n0:0 644\n0:0 600\n0:0 400\n0:0 400",
			"grouped": "0:3000 440\n0:3000 444\n0:3000 440\n0:3000 440\n0:3000 755\n0:3000 644\n0:3000 640\n0:3000 440\n0:3000 440",
		} {
			n.reaches(pod, "is ready", ready)
			if got := n.sh(pod, "main", "stat -L -c '%u:%g %a' "+files); got != want {
				t.Errorf("%s:\n%s\nwant\n%s", pod, got, want)
			}
			content := "secret b" + strconv.Itoa(runtime.NumCPU()) + "secret a" + `app="files"` + "echo runecho run" + `app="files"` + "secret asecret b"
			if got := n.sh(pod, "main", "cat "+files); got != content {
				t.Errorf("%s reads %q, want %q", pod, got, content)
			}
			if got := n.sh(pod, "main", "for f in "+files+"; do (echo x > $f) 2>&1; done | grep -c 'Read-only file system'"); got != "9" {
				t.Errorf("%s cannot write %s of 9", pod, got)
			}
		}
	})
}
