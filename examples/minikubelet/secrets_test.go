package main

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podmill/podmill/internal/testenv"
)

// canary is what nobody may find. wrong is the same where a registry wants a password.
const canary, wrong = "canary-of-a-secret", "canary-of-a-password"

func secretsManifest(registry string) string {
	auth := base64.StdEncoding.EncodeToString([]byte("tester:" + wrong))
	pull := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, registry, auth))
	return `
apiVersion: v1
kind: Secret
metadata: {name: canary}
stringData: {PASSWORD: ` + canary + `, ANNOUNCED: ` + canary + `}
---
apiVersion: v1
kind: Secret
metadata: {name: pull}
type: kubernetes.io/dockerconfigjson
data: {.dockerconfigjson: ` + pull + `}
---
apiVersion: v1
kind: Pod
metadata: {name: canary}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: runs
    image: podmill.test/busybox:1
    command: [sh, -c, 'exec sleep 100000', $(PASSWORD)]
    env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: canary, key: PASSWORD}}}]
    envFrom: [{prefix: ALL_, secretRef: {name: canary}}]
    volumeMounts: [{name: canary, mountPath: /canary}, {name: canary, mountPath: /one, subPath: PASSWORD}]
    lifecycle: {postStart: {exec: {command: [sh, -c, 'test -n "$PASSWORD"']}}}
    livenessProbe: {exec: {command: [sh, -c, 'grep -q canary /canary/PASSWORD']}}
  - name: cannot-start
    image: podmill.test/busybox:1
    command: [/nowhere, $(PASSWORD)]
    env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: canary, key: PASSWORD}}}]
  - {name: lacks-a-key, image: "podmill.test/busybox:1", env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: canary, key: NONE}}}]}
  - {name: may-not-pull, image: "` + registry + `/busybox:1", imagePullPolicy: Always}
  imagePullSecrets: [{name: pull}]
  volumes: [{name: canary, secret: {secretName: canary}}]
`
}

// At the highest verbosity, when all goes well and when it does not, a secret is in its volume and nowhere else: in no log, event, status, record or answer (CVE-2024-3744).
func TestSecretsAreToldNobody(t *testing.T) {
	n := newNode(t, testenv.Containerd(t))
	n.args = []string{"--v", "10"}
	n.write("canary.yaml", secretsManifest(testenv.AuthRegistry(t).Addr))
	n.start()
	for container, reason := range map[string]string{"cannot-start": "RunContainerError", "lacks-a-key": "CreateContainerConfigError", "may-not-pull": "ErrImagePull"} {
		n.eventually(container+" waits", func() bool {
			pod := n.pod("canary")
			if pod == nil {
				return false
			}
			s := statusOf(pod, container)
			return s != nil && (s.State.Waiting != nil && (s.State.Waiting.Reason == reason || strings.HasSuffix(s.State.Waiting.Reason, "BackOff")))
		})
	}
	n.eventually("the other one runs", func() bool { s := statusOf(n.pod("canary"), "runs"); return s.State.Running != nil })
	if got := n.sh("canary", "runs", "cat /canary/PASSWORD /one; echo $PASSWORD $ALL_PASSWORD"); strings.Count(got, canary) != 4 {
		t.Errorf("the container has %q", got)
	}
	n.wantEvents("Failed")
	pod := n.pod("canary")
	answer, err := n.ask("get", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	n.silent("what it answers", answer)
	if err := filepath.WalkDir(n.root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || entry.Name() == "volumes", entry.Name() == "volume-subpaths":
			return fs.SkipDir // where it has to be, or something that has just gone
		case !entry.Type().IsRegular():
			return nil
		}
		if data, err := os.ReadFile(path); err == nil {
			n.silent(path, string(data))
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	n.remove("canary.yaml")
	n.gone(pod)
	n.stop()
	n.silent("its log", n.output.String())
}

// silent fails if there is a secret in what somebody can read, as it is or as a header has it.
func (n *node) silent(what, said string) {
	n.Helper()
	for _, secret := range []string{canary, wrong, base64.StdEncoding.EncodeToString([]byte("tester:" + wrong)), base64.StdEncoding.EncodeToString([]byte(canary))} {
		if i := strings.Index(said, secret); i >= 0 {
			n.Errorf("%s tells a secret: %q", what, said[max(0, i-200):i+len(secret)])
		}
	}
}
