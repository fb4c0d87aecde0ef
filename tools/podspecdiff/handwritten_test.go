package podspecdiff

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestHandwritten goes through rules that the other tests do not reach.
func TestHandwritten(t *testing.T) {
	f := newForm()
	for _, c := range handwritten {
		t.Run(c.name, func(t *testing.T) {
			pod := &corev1.Pod{}
			pod.Name, pod.Namespace = "web", "default"
			if err := yaml.UnmarshalStrict([]byte(c.pod), pod); err != nil {
				t.Fatal(err)
			}
			if len(pod.Spec.Containers) == 0 {
				pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "web"}}
			}
			if f.check(t, pod) != c.valid {
				t.Errorf("valid: %v, want %v", !c.valid, c.valid)
			}
			f.checkBare(t, pod)
		})
	}
}

func volume(source string) string { return "spec: {volumes: [{name: v, " + source + "}]}" }

func projected(source string) string { return volume("projected: {sources: [" + source + "]}") }

func claim(spec string) string {
	return volume("ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, " + spec + "}}}")
}

func container(fields string) string {
	return "spec: {containers: [{name: main, image: web, " + fields + "}]}"
}

func fields(format string, names ...string) (list []string) {
	for _, name := range names {
		list = append(list, fmt.Sprintf(format, name))
	}
	return list
}

const (
	seccompOfPod = corev1.SeccompPodAnnotationKey
	appArmorOf   = corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix
)

var handwritten = []struct {
	name  string
	valid bool
	pod   string
}{
	{"nothing", true, "{}"},
	{"grace period is negative", true, "spec: {terminationGracePeriodSeconds: -5}"},
	{"service accounts differ", true, "spec: {serviceAccount: other, serviceAccountName: web}"},
	{"ephemeral containers", false, "spec: {ephemeralContainers: [{name: debug, image: '', targetContainerName: nobody}]}"},
	{"scheduling gates and a node", false, "spec: {nodeName: n, schedulingGates: [{name: a}, {name: a}]}"},
	{"scheduling group", true, "spec: {schedulingGroup: {podGroupName: g}}"},
	{"scheduling group without a name", false, "spec: {schedulingGroup: {}, evictionResponders: [{name: a}]}"},
	{"mirror pod with claims", false, "{metadata: {annotations: {kubernetes.io/config.mirror: x}}, spec: {nodeName: n, resourceClaims: [{name: a, resourceClaimName: a}]}}"},
	{"mirror pod without a node", false, "metadata: {annotations: {kubernetes.io/config.mirror: x}}"},
	{"finalizers", false, "metadata: {finalizers: [orphan, example.com/a, mine]}"},
	{"owner that is not whole", false, "metadata: {ownerReferences: [{kind: ReplicaSet, name: a}]}"},
	{"annotations are too long", false, "metadata: {annotations: {a: " + strings.Repeat("x", 300000) + "}}"},

	{"seccomp in annotation and field", true, "{metadata: {annotations: {" + seccompOfPod + ": localhost/a}}, spec: {securityContext: {seccompProfile: {type: Localhost, localhostProfile: a}}}}"},
	{"seccomp of another file", false, "{metadata: {annotations: {" + seccompOfPod + ": localhost/b}}, spec: {securityContext: {seccompProfile: {type: Localhost, localhostProfile: a}}}}"},
	{"seccomp default", true, "{metadata: {annotations: {" + seccompOfPod + ": docker/default}}, spec: {securityContext: {seccompProfile: {type: RuntimeDefault}}}}"},
	{"AppArmor in annotation and field", true, "{metadata: {annotations: {" + appArmorOf + "main: localhost/a}}, spec: {securityContext: {appArmorProfile: {type: Localhost, localhostProfile: a}}}}"},
	{"AppArmor of another name", false, "{metadata: {annotations: {" + appArmorOf + "main: localhost/b}}, spec: {securityContext: {appArmorProfile: {type: Localhost, localhostProfile: a}}}}"},
	{"AppArmor default in the field", false, "{metadata: {annotations: {" + appArmorOf + "main: unconfined}}, spec: {securityContext: {appArmorProfile: {type: RuntimeDefault}}}}"},
	{"AppArmor unconfined in the field", false, "{metadata: {annotations: {" + appArmorOf + "main: localhost/a}}, spec: {securityContext: {appArmorProfile: {type: Unconfined}}}}"},
	{"AppArmor of the container wins", true, "{metadata: {annotations: {" + appArmorOf + "main: unconfined}}, spec: {securityContext: {appArmorProfile: {type: RuntimeDefault}}, containers: [{name: main, image: a, securityContext: {appArmorProfile: {type: Unconfined}}}]}}"},
	{"AppArmor differs on Windows", false, "{metadata: {annotations: {" + appArmorOf + "main: unconfined}}, spec: {os: {name: windows}, securityContext: {appArmorProfile: {type: RuntimeDefault}}}}"},

	{"sysctls of the host's network", false, "spec: {hostNetwork: true, securityContext: {sysctls: [{name: net.core.somaxconn}]}}"},
	{"sysctls of the host's network, with slashes", false, "spec: {hostNetwork: true, securityContext: {sysctls: [{name: net/ipv4/conf/eno2.100/rp_filter}]}}"},
	{"sysctls of the host's IPC", false, "spec: {hostIPC: true, securityContext: {sysctls: [{name: fs.mqueue.msg_max}, {name: kernel.shmall}, {name: kernel.other}]}}"},
	{"sysctl with a star", false, "spec: {hostIPC: true, securityContext: {sysctls: [{name: kernel.shm*}]}}"},
	{"Windows domain that is none", false, `spec: {securityContext: {windowsOptions: {runAsUserName: 'a:b\user'}}}`},
	{"Windows domain of DNS", true, `spec: {securityContext: {windowsOptions: {runAsUserName: 'long-name-of-a-domain.example.com\user'}}}`},
	{"Windows domain without a user", false, `spec: {securityContext: {windowsOptions: {runAsUserName: 'domain\'}}}`},
	{"Windows domain that is long", false, `spec: {securityContext: {windowsOptions: {runAsUserName: '` + strings.Repeat("a.", 128) + `a\user'}}}`},
	{"Windows user of dots", false, `spec: {securityContext: {windowsOptions: {runAsUserName: '. .'}}}`},
	{"Windows user that is long", false, `spec: {securityContext: {windowsOptions: {runAsUserName: '` + strings.Repeat("a", 105) + `'}}}`},
	{"group account specification that is long", false, "spec: {securityContext: {windowsOptions: {gmsaCredentialSpec: " + strings.Repeat("a", 65537) + "}}}"},
	{"only one is a process of the host", false, "spec: {hostNetwork: true, containers: [{name: a, image: a, securityContext: {windowsOptions: {hostProcess: true}}}, {name: b, image: b}]}"},

	{"port of the host twice", false, "spec: {containers: [{name: a, image: a, ports: [{containerPort: 1, hostPort: 80}]}, {name: b, image: b, ports: [{containerPort: 2, hostPort: 80}]}]}"},
	{"port of the host in init containers one after another", true, "spec: {initContainers: [{name: a, image: a, ports: [{containerPort: 1, hostPort: 80}]}, {name: b, image: b, ports: [{containerPort: 2, hostPort: 80}]}]}"},
	{"port of the host twice in an init container", false, "spec: {initContainers: [{name: i, image: a}, {name: a, image: a, ports: [{containerPort: 1, hostPort: 80}, {containerPort: 2, hostPort: 80}]}]}"},
	{"init container of a container's name", false, "spec: {initContainers: [{name: main, image: a}]}"},
	{"two handlers", false, container("livenessProbe: {exec: {command: [a]}, tcpSocket: {port: 1}, grpc: {port: 0}}")},
	{"two handlers of a hook", false, container("lifecycle: {preStop: {exec: {}, httpGet: {port: 1}, sleep: {seconds: -1}}}")},
	{"HTTP 2 with TLS", false, container("livenessProbe: {httpGet: {port: 1, scheme: HTTPS, protocol: HTTP2}}")},
	{"HTTP 2 with a host", false, container("livenessProbe: {httpGet: {port: 1, host: a, protocol: HTTP2}}")},
	{"HTTP 2", true, container("livenessProbe: {httpGet: {port: 1, protocol: HTTP2}}")},
	{"stop signal without a system", false, container("lifecycle: {stopSignal: SIGTERM}")},
	{"fields that a variable can have", true, container("env: [" + strings.Join(fields("{name: a, valueFrom: {fieldRef: {fieldPath: %s}}}", "metadata.name", "metadata.namespace",
		"metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"), ",") + "]")},
	{"fields that a file can have", true, volume("downwardAPI: {items: [" + strings.Join(fields("{path: a, fieldRef: {fieldPath: %s}}", "metadata.name", "metadata.namespace",
		"metadata.uid", "metadata.labels", "metadata.annotations"), ",") + "]}")},
	{"field that a file cannot have", false, volume("downwardAPI: {items: [{path: a, fieldRef: {fieldPath: spec.nodeName}}]}")},
	{"resources that a variable can have", true, container("env: [" + strings.Join(fields("{name: a, valueFrom: {resourceFieldRef: {resource: %s, divisor: 1}}}", "limits.cpu", "limits.memory",
		"limits.ephemeral-storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage", "requests.hugepages-1Gi"), ",") + "]")},
	{"fields that a variable cannot have", false, container("env: [{name: a, valueFrom: {fieldRef: {fieldPath: metadata.labels}}}, {name: b, valueFrom: {fieldRef: {fieldPath: \"spec.nodeName['a']\"}}}]")},
	{"field of another version", false, container("env: [{name: a, valueFrom: {fieldRef: {apiVersion: v2, fieldPath: metadata.name}}}]")},
	{"field of old", true, container("env: [{name: a, valueFrom: {fieldRef: {fieldPath: spec.host}}}]")},
	{"divisors", false, container("env: [{name: a, valueFrom: {resourceFieldRef: {resource: limits.ephemeral-storage, divisor: 3}}}, {name: b, valueFrom: {resourceFieldRef: {resource: limits.hugepages-2Mi, divisor: 1m}}}]")},
	{"object whose name ends with a dash", true, container("envFrom: [{configMapRef: {name: a-}}]")},
	{"claims that overlap", false, "spec: {resourceClaims: [{name: a, resourceClaimName: a}, {name: b, resourceClaimName: b}], containers: [{name: main, image: web, resources: {claims: [{name: a}, {name: a, request: x}, {name: b, request: x}, {name: b}]}}]}"},
	{"claims of several requests", true, "spec: {resourceClaims: [{name: a, resourceClaimName: a}], containers: [{name: main, image: web, resources: {claims: [{name: a, request: x}, {name: a, request: z}]}}]}"},
	{"claims of the pod", false, "spec: {resourceClaims: [{name: a, resourceClaimName: a}], resources: {claims: [{name: a}]}}"},
	{"claim without anything", false, "spec: {resourceClaims: [{name: a}, {name: a, resourceClaimName: a, resourceClaimTemplateName: A}]}"},
	{"resources of a pod are not enough", false, "spec: {resources: {requests: {cpu: 1}, limits: {cpu: 1}}, containers: [{name: a, image: a, resources: {requests: {cpu: 2}, limits: {cpu: 3}}}]}"},
	{"huge pages of a pod are not enough", false, "spec: {resources: {requests: {memory: 1Gi}, limits: {hugepages-2Mi: 2Mi}}, containers: [{name: a, image: a, resources: {limits: {cpu: 1, hugepages-2Mi: 4Mi}}}]}"},
	{"resources of a pod are completed", true, "spec: {resources: {requests: {memory: 1Gi}}, initContainers: [{name: i, image: i, resources: {limits: {cpu: 4, memory: 1Mi}}}, {name: s, image: s, restartPolicy: Always, resources: {limits: {cpu: 1, memory: 1Mi}}}], containers: [{name: a, image: a, resources: {limits: {cpu: 1, memory: 1Mi, hugepages-2Mi: 4Mi}}}]}"},
	{"resources of a Windows pod", false, "spec: {os: {name: windows}, resources: {limits: {cpu: 1}}}"},
	{"huge pages alone", false, container("resources: {limits: {hugepages-2Mi: 2Mi}}")},
	{"extended resource without a limit", false, container("resources: {requests: {example.com/gpu: 1}}")},
	{"extended resource with a lower request", false, container("resources: {requests: {example.com/gpu: 1}, limits: {example.com/gpu: 2}}")},
	{"huge pages in the overhead", false, "spec: {overhead: {hugepages-2Mi: 2Mi}}"},
	{"resize when nothing restarts", false, "spec: {restartPolicy: Never, containers: [{name: a, image: a, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]}"},
	{"resize of an init container", false, "spec: {initContainers: [{name: a, image: a, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]}"},
	{"rules without a policy", false, "spec: {initContainers: [{name: a, image: a, restartPolicyRules: [{action: x}]}], containers: [{name: b, image: b, restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [1]}}]}]}"},

	{"mount and device in one place", false, "spec: {volumes: [{name: a, persistentVolumeClaim: {claimName: a}}, {name: b, emptyDir: {}}], containers: [{name: main, image: web, volumeDevices: [{name: a, devicePath: /a}], volumeMounts: [{name: b, mountPath: /a}]}]}"},
	{"mount and device of one volume", false, "spec: {volumes: [{name: a, persistentVolumeClaim: {claimName: a}}], containers: [{name: main, image: web, volumeDevices: [{name: a, devicePath: /a}], volumeMounts: [{name: a, mountPath: /b}]}]}"},
	{"devices in a user namespace", false, "spec: {hostUsers: false, volumes: [{name: a, persistentVolumeClaim: {claimName: a}}], containers: [{name: main, image: web, volumeDevices: [{name: a, devicePath: /a}]}]}"},
	{"options for the volume of an image", false, "spec: {volumes: [{name: a, image: {reference: a}}], containers: [{name: main, image: web, volumeMounts: [{name: a, mountPath: /a, bindMountOptions: [noexec]}]}]}"},
	{"options twice", false, "spec: {volumes: [{name: a}], containers: [{name: main, image: web, volumeMounts: [{name: a, mountPath: /a, bindMountOptions: [noexec, noexec]}]}]}"},
	{"subPath and subPathExpr", false, "spec: {volumes: [{name: a}], containers: [{name: main, image: web, volumeMounts: [{name: a, mountPath: /a, subPath: a, subPathExpr: b}]}]}"},
	{"recursively read-only, but not read-only", false, "spec: {volumes: [{name: a}], containers: [{name: main, image: web, volumeMounts: [{name: a, mountPath: /a, recursiveReadOnly: Enabled, mountPropagation: HostToContainer}]}]}"},

	{"volume of two kinds", false, volume("emptyDir: {}, hostPath: {path: /a}, downwardAPI: {items: [{}]}, cephfs: {monitors: []}, gcePersistentDisk: {pdName: ''}")},
	{"emptyDir's size and mode", false, volume("emptyDir: {sizeLimit: -1, mode: 01778}")},
	{"emptyDir's sticky bit", true, volume("emptyDir: {mode: 01777}")},
	{"file that is a field and a resource", false, volume("downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.uid}, resourceFieldRef: {resource: limits.cpu}}]}")},
	{"file's mode", false, volume("configMap: {name: a, defaultMode: 512, defaultUser: -1, items: [{key: a, path: a, mode: 512, user: -1}]}")},
	{"file twice, of two objects", false, projected("{configMap: {name: a, items: [{key: a, path: x}]}}, {secret: {name: a, items: [{key: a, path: x}]}}")},
	{"file twice, of the pod", false, projected("{downwardAPI: {items: [{path: x, fieldRef: {fieldPath: metadata.uid}}, {path: x, fieldRef: {fieldPath: metadata.uid}}]}}")},
	{"file twice, of certificates", false, projected("{podCertificate: {signerName: a.b/c, keyType: ED25519, keyPath: x, certificateChainPath: x}}, {podCertificate: {signerName: a.b/c, keyType: ED25519, credentialBundlePath: x}}")},
	{"source of two kinds", false, projected("{configMap: {name: a}, secret: {name: a}}")},
	{"source of no kind", true, projected("{}")},
	{"token without an account", false, projected("{serviceAccountToken: {path: a}}")},
	{"token for too short a time", false, "spec: {serviceAccountName: a, volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: a, expirationSeconds: 599}}, {serviceAccountToken: {path: /a, expirationSeconds: 4294967297}}]}}]}"},
	{"trust bundle of a name and a signer", false, projected("{clusterTrustBundle: {name: a, signerName: a.b/c, path: x}}")},
	{"trust bundle of a name, with a selector", false, projected("{clusterTrustBundle: {name: a, labelSelector: {}, path: x}}")},
	{"trust bundle of a name with a colon", false, projected("{clusterTrustBundle: {name: ':a', path: x}}")},
	{"certificate for too long", false, projected("{podCertificate: {signerName: a.b/c, keyType: ED25519, keyPath: x, maxExpirationSeconds: 7862401}}")},
	{"certificate of Kubernetes for too long", false, projected("{podCertificate: {signerName: a.kubernetes.io/c, keyType: ED25519, keyPath: x, maxExpirationSeconds: 86401}}")},
	{"certificate's annotations", false, projected("{podCertificate: {signerName: a.b/c, keyType: ED25519, keyPath: x, userAnnotations: {a.b/c: d, e: " + strings.Repeat("x", 300000) + "}}}")},
	{"iSCSI portal that is long", true, volume("iscsi: {targetPortal: " + strings.Repeat("p", 62) + ", iqn: 'iqn.2015-02.a:b', initiatorName: 'iqn.2015-02.a:b'}")},
	{"iSCSI portal that is too long", false, volume("iscsi: {targetPortal: " + strings.Repeat("p", 63) + ", iqn: 'iqn.2015-02.a:b', initiatorName: 'iqn.2015-02.a:b'}")},
	{"iSCSI names", false, "spec: {volumes: [{name: a, iscsi: {targetPortal: p, iqn: iqn.x, initiatorName: naa.x}}, {name: b, iscsi: {targetPortal: p, iqn: eui.x, initiatorName: iqn.x}}, {name: c, iscsi: {targetPortal: p, iqn: naa.x, initiatorName: eui.x}}]}"},
	{"claim of this pod", false, "spec: {volumes: [{name: a, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}, {name: b, persistentVolumeClaim: {claimName: web-a}}]}"},
	{"claim's metadata", false, volume("ephemeral: {volumeClaimTemplate: {metadata: {name: a, labels: {a: a/}, annotations: {/: a}}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}")},
	{"claim for one pod and others", false, volume("ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOncePod, ReadOnlyMany], resources: {requests: {storage: 0}}}}}")},
	{"claim's data", true, claim("dataSource: {kind: VolumeSnapshot, name: a, apiGroup: a.b}, dataSourceRef: {kind: VolumeSnapshot, name: a, apiGroup: a.b}, volumeAttributesClassName: a, selector: {matchLabels: {a: b}}, volumeMode: Block")},
	{"claim's data differ", false, claim("dataSource: {kind: PersistentVolumeClaim, name: a}, dataSourceRef: {kind: PersistentVolumeClaim, name: b}")},
	{"claim's data are not whole", false, claim("dataSource: {kind: '', name: ''}, dataSourceRef: {kind: A, name: '', apiGroup: A}")},
	{"claim's data are elsewhere", false, claim("dataSource: {kind: PersistentVolumeClaim, name: a}, dataSourceRef: {kind: PersistentVolumeClaim, name: a, namespace: A}")},
	{"claim's words", false, claim("volumeMode: Both, volumeAttributesClassName: A, storageClassName: A, selector: {matchExpressions: [{key: a, operator: Like}]}")},

	{"spread twice", false, "spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}"},
	{"spread over few", false, "spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway, minDomains: 0}]}"},
	{"spread by a key that is in the selector already", false, "spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [k], labelSelector: {matchLabels: {k: v}, matchExpressions: [{key: k, operator: Exists}]}}]}"},
	{"pods matched and not", false, "spec: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, matchLabelKeys: [k], mismatchLabelKeys: [k], labelSelector: {}}]}}}"},
	{"toleration of an annotation", false, `metadata: {annotations: {scheduler.alpha.kubernetes.io/tolerations: '[{"key":"a","operator":"Is"}]'}}`},
	{"toleration of an annotation that is none", false, "metadata: {annotations: {scheduler.alpha.kubernetes.io/tolerations: x}}"},
	{"too much of DNS", false, "spec: {dnsConfig: {nameservers: [1.1.1.1, 1.1.1.2, 1.1.1.3, 1.1.1.4], searches: [" + strings.Repeat("a,", 33) + "]}}"},
	{"searches are too long", false, "spec: {dnsConfig: {searches: [" + strings.Repeat(strings.Repeat("a", 60)+"."+strings.Repeat("b", 60)+",", 20) + "]}}"},
}
