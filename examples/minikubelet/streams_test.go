package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/podmill/podmill/internal/testenv"
)

const streamsManifest = `
apiVersion: v1
kind: Pod
metadata: {name: streams}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: closed, image: "podmill.test/busybox:1", command: [sh, -c, 'read x; echo "read: $?"; tty; exec sleep 100000']}
  - {name: open, image: "podmill.test/busybox:1", stdin: true, command: [sh, -c, 'read x; echo "read: $?"; exec sleep 100000']}
  - {name: terminal, image: "podmill.test/busybox:1", stdin: true, tty: true, command: [sh, -c, 'test -t 0 && test -t 1 && echo a terminal; exec sleep 100000']}
`

// What a container reads from where nobody writes: the end at once, unless it asks for a stream that stays open. Who asks for a terminal has one.
func TestStreamsFromInside(t *testing.T) {
	testenv.EachContainerd(t, func(t *testing.T, endpoint string) {
		n := newNode(t, endpoint)
		n.write("streams.yaml", streamsManifest)
		n.start()
		pod := n.reaches("streams", "is ready", ready)
		said := func(container string) string {
			out, err := n.ask("logs", "streams", container)
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(strings.ReplaceAll(out, "\r", ""))
		}
		n.eventually("two have said something", func() bool { return said("closed") == "read: 1\nnot a tty" && said("terminal") == "a terminal" })
		if got := said("open"); got != "" || len(n.processes(pod, "open")) != 1 {
			t.Errorf("the one that waits says %q", got)
		}
	})
}

// A port of the node leads to the pod that has it, and to nobody when the pod has gone.
func TestAPortOfTheNodeLeadsToThePod(t *testing.T) {
	testenv.EachContainerd(t, func(t *testing.T, endpoint string) {
		const port = 47283
		n := newNode(t, endpoint)
		n.write("web.yaml", fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: podmill.test/busybox:2
    command: [httpd, -f, -p, "80", -h, /]
    ports: [{containerPort: 80, hostPort: %d}]
    readinessProbe: {httpGet: {port: 80, path: /version}, periodSeconds: 1}
`, port))
		n.start()
		pod := n.reaches("web", "is ready", ready)
		version := func(address string) string {
			response, err := http.Get("http://" + address + "/version")
			if err != nil {
				return err.Error()
			}
			defer response.Body.Close()
			data, _ := io.ReadAll(response.Body)
			return string(data)
		}
		for _, address := range []string{pod.Status.PodIP, fmt.Sprint("127.0.0.1:", port)} {
			if got := version(address); got != "2\n" {
				t.Errorf("at %s: %q", address, got)
			}
		}
		n.remove("web.yaml")
		n.gone(pod)
		if got := version(fmt.Sprint("127.0.0.1:", port)); !strings.Contains(got, "refused") {
			t.Errorf("when the pod has gone: %q", got)
		}
	})
}

// In a user namespace of its own a pod may see all of /proc that its users may; in any other, what is the machine's is masked.
func TestProcFromInside(t *testing.T) {
	n := newNode(t, testenv.Containerd(t))
	pod := func(name, mount string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec:\n  hostUsers: false\n  terminationGracePeriodSeconds: 0\n  containers:\n" +
			"  - {name: main, image: \"podmill.test/busybox:1\", command: [sleep, \"100000\"], securityContext: {procMount: " + mount + "}}\n"
	}
	n.write("masked.yaml", pod("masked", "Default"))
	n.write("unmasked.yaml", pod("unmasked", "Unmasked"))
	n.start()
	for name, masked := range map[string]bool{"masked": true, "unmasked": false} {
		n.reaches(name, "is ready", ready)
		if got := n.sh(name, "main", "grep -c ' /proc/' /proc/mounts || true"); (got != "0") != masked {
			t.Errorf("in pod %s %s places of /proc are masked", name, got)
		}
	}
}
