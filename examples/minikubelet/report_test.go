package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/internal/testenv"
)

const reported = `
apiVersion: v1
kind: ConfigMap
metadata: {name: report}
data: {KEY: from the map}
---
apiVersion: v1
kind: Pod
metadata: {name: report, labels: {app: report}}
spec:
  hostname: front
  subdomain: shops
  hostAliases: [{ip: 10.1.2.3, hostnames: [db, db.example.com]}]
  dnsPolicy: None
  dnsConfig: {nameservers: [192.0.2.1], searches: [a.example, b.example], options: [{name: ndots, value: "2"}, {name: edns0}]}
  terminationGracePeriodSeconds: 0
  securityContext:
    runAsUser: 1000
    runAsGroup: 2000
    runAsNonRoot: true
    fsGroup: 3000
    supplementalGroups: [4000]
    seccompProfile: {type: RuntimeDefault}
    sysctls: [{name: net.ipv4.ip_unprivileged_port_start, value: "80"}]
  initContainers:
  - name: init
    image: podmill.test/busybox:1
    command: [sh, -c, "echo \"TOKEN='from init'\" > /data/app.env"]
    volumeMounts: [{name: data, mountPath: /data}]
  containers:
  - name: main
    image: podmill.test/busybox:1
    command: [sh, -c, 'exec sleep "$0"', $(SECONDS_TO_SLEEP)]
    args: []
    workingDir: /data
    env:
    - {name: SECONDS_TO_SLEEP, value: "100000"}
    - {name: PLAIN, value: "$(KEY) and $$(KEY)"}
    - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: NODE_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}
    - {name: MEMORY, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
    - {name: TOKEN, valueFrom: {fileKeyRef: {volumeName: data, path: app.env, key: TOKEN}}}
    envFrom: [{configMapRef: {name: report}}]
    resources: {requests: {cpu: 100m, memory: 32Mi}, limits: {cpu: 500m, memory: 64Mi}}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}
    volumeMounts:
    - {name: data, mountPath: /data}
    - {name: report, mountPath: /report}
    - {name: memory, mountPath: /memory}
    - {name: data, mountPath: /same, readOnly: true}
  - {name: other, image: "podmill.test/busybox:1", command: [sleep, "100000"], securityContext: {runAsNonRoot: false, runAsUser: 0, seccompProfile: {type: Unconfined}}}
  volumes:
  - {name: data, emptyDir: {}}
  - {name: report, configMap: {name: report}}
  - {name: memory, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
`

// TestReportFromInside asks a container what it has of all that its pod says.
func TestReportFromInside(t *testing.T) {
	testenv.EachContainerd(t, func(t *testing.T, endpoint string) {
		n := newNode(t, endpoint)
		n.args = []string{"--node-ip", "192.0.2.7", "--cluster-domain", "cluster.local"}
		n.write("report.yaml", reported)
		n.start()
		pod := n.reaches("report", "is ready", ready)
		n.eventually("its command has its expanded argument", func() bool { return n.sh("report", "main", "tr '\\0' ' ' < /proc/1/cmdline") == "sleep 100000" })
		for _, want := range inside(pod, n) {
			if got := n.sh("report", "main", want.script); got != want.out {
				t.Errorf("%s:\n%s\nwant\n%s", want.script, got, want.out)
			}
		}
		status := "grep -E '^(Uid|Seccomp|NoNewPrivs):' /proc/1/status | tr -s '\\t\\n' ' '"
		if got := n.sh("report", "other", status); got != "Uid: 0 0 0 0 NoNewPrivs: 0 Seccomp: 0" {
			t.Errorf("the container of its own says %s", got)
		}
		n.limits(pod)
	})
}

type said struct{ script, out string }

// inside is what the first process of the container has to say.
func inside(pod *corev1.Pod, n *node) []said {
	field := func(names string) string {
		return "grep -E '^(" + names + "):' /proc/1/status | sed 's/[[:space:]]*$//' | tr '\\t' ' '"
	}
	all := []said{
		{"tr '\\0' '\\n' < /proc/1/environ | grep -E '^(PLAIN|IP|NODE_IP|MEMORY|TOKEN|KEY|SECONDS_TO_SLEEP)=' | sort", strings.Join([]string{
			"IP=" + pod.Status.PodIP, "KEY=from the map", "MEMORY=64", "NODE_IP=192.0.2.7", "PLAIN=from the map and $(KEY)", "SECONDS_TO_SLEEP=100000", "TOKEN=from init",
		}, "\n")},
		{"readlink /proc/1/cwd", "/data"},
		{field("Uid|Gid"), "Uid: 1000 1000 1000 1000\nGid: 2000 2000 2000 2000"},
		{"for g in 2000 3000 4000; do grep -q \"^Groups:.*\\b$g\\b\" /proc/1/status && echo $g; done", "2000\n3000\n4000"},
		{field("CapInh|CapPrm|CapEff|CapBnd|CapAmb"), "CapInh: 0000000000000000\nCapPrm: 0000000000000000\nCapEff: 0000000000000000\nCapBnd: 0000000000000400\nCapAmb: 0000000000000000"},
		{field("NoNewPrivs|Seccomp"), "NoNewPrivs: 1\nSeccomp: 2"},
		{"hostname; cat /proc/sys/net/ipv4/ip_unprivileged_port_start", "front\n80"},
		{"cat /etc/resolv.conf", "search a.example b.example\nnameserver 192.0.2.1\noptions ndots:2 edns0"},
		{"grep -v ip6- /etc/hosts", "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n" +
			pod.Status.PodIP + "\tfront.shops.default.svc.cluster.local\tfront\n\n# Entries added by HostAliases.\n10.1.2.3\tdb\tdb.example.com"},
		{"touch /x /report/x /same/x /etc/hosts 2>&1 | grep -c 'Read-only file system'", "4"},
		{"touch /data/x /memory/x && stat -c '%u:%g %n' /data/x /memory/x", "1000:3000 /data/x\n1000:3000 /memory/x"},
		{"grep ' /memory ' /proc/mounts | grep -o 'size=[0-9]*k'", "size=1024k"},
		{"stat -c '%a %g' /data /report/..data/KEY", "2777 3000\n644 3000"},
		{"cat /report/KEY", "from the map"},
		{"wc -c < /proc/timer_list 2>&1 | grep -v -e '^0$' -e denied; ls /sys/firmware | wc -l", "0"},
		{"echo bye > /dev/termination-log; stat -c %a /dev/termination-log", "666"},
	}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return append(all, said{"cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/memory.max", "50000 100000\n67108864"})
	}
	return append(all, said{"cd /sys/fs/cgroup; cat cpu/cpu.shares cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us memory/memory.limit_in_bytes", "102\n50000\n100000\n67108864"})
}

// limits checks that a container has the runtime's ulimits, of which a pod says nothing, and the OOM score of its share of the memory.
func (n *node) limits(pod *corev1.Pod) {
	n.Helper()
	process := n.processes(pod, "main")[0]
	read := func(pid any, file string) string {
		data, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), file))
		if err != nil {
			n.Fatal(err)
		}
		return string(data)
	}
	_, rest, _ := strings.Cut(read(process, "status"), "PPid:")
	shim := strings.Fields(rest)[0]
	for _, limit := range []string{"Max open files", "Max processes", "Max core file size", "Max locked memory"} {
		line := func(pid any) string {
			_, rest, _ := strings.Cut(read(pid, "limits"), limit)
			return strings.Join(strings.Fields(strings.SplitN(rest, "\n", 2)[0])[:2], " ")
		}
		if got, want := line(process), line(shim); got != want {
			n.Errorf("%s is %s, and %s of the runtime's shim", limit, got, want)
		}
	}
	// A burstable pod goes before a guaranteed one and after one of best effort.
	if score := strings.TrimSpace(read(process, "oom_score_adj")); len(score) != 3 || score < "900" {
		n.Errorf("its OOM score is %s", score)
	}
}
