package syncpod

import (
	"maps"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/feature"
)

// Features says which fields of a PodSpec this package has a part in serving, with what it was given.
func (s *Syncer) Features() podmill.Features {
	all := feature.Parse(`
restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds
containers: name command args workingDir stdin stdinOnce tty restartPolicy terminationMessagePath terminationMessagePolicy
containers.restartPolicyRules: action exitCodes.operator exitCodes.values
containers.env: name value
containers.env.valueFrom.fieldRef: apiVersion fieldPath
containers.env.valueFrom.resourceFieldRef: containerName resource divisor
containers.env.valueFrom.fileKeyRef: volumeName path key optional
containers.envFrom: prefix
containers.lifecycle: stopSignal
containers.lifecycle.{postStart,preStop}: exec.command sleep.seconds
containers.lifecycle.{postStart,preStop}.httpGet: path port host scheme httpHeaders.name httpHeaders.value
containers.lifecycle.{postStart,preStop}.httpGet.protocol ! only HTTP/1.1 is spoken
containers.lifecycle.{postStart,preStop}.tcpSocket ~ Kubernetes has never carried it out; such a hook fails
containers.volumeMounts: name mountPath readOnly recursiveReadOnly mountPropagation bindMountOptions
volumes.image: reference pullPolicy
containers.volumeDevices: name devicePath
ephemeralContainers.targetContainerName
`)
	objects := feature.Parse(`
containers.env.valueFrom.configMapKeyRef: name key optional
containers.envFrom.configMapRef: name optional
containers.env.valueFrom.secretKeyRef: name key optional
containers.envFrom.secretRef: name optional
`)
	if s.configMaps == nil || s.secrets == nil {
		objects = feature.Parse(`containers.env.valueFrom.{configMapKeyRef,secretKeyRef} containers.envFrom.{configMapRef,secretRef} ! nothing provides such objects here`)
	}
	maps.Copy(all, objects)
	policy := `containers.resizePolicy: resourceName restartPolicy`
	if _, ok := podmill.As[podmill.Resizer](s.Runtime); !ok {
		policy = `containers.resizePolicy ~ this runtime cannot resize containers that run, and the condition PodResizePending says so`
	}
	maps.Copy(all, feature.Parse(policy))
	all["enableServiceLinks"] = podmill.Feature{}
	if s.services == nil {
		all["enableServiceLinks"] = podmill.Feature{Why: "there are no Services here"}
	}
	all["containers.volumeMounts.subPath"], all["containers.volumeMounts.subPathExpr"] = podmill.Feature{}, podmill.Feature{}
	if _, ok := s.volumes.(podmill.SubPathMounter); !ok {
		maps.Copy(all, feature.Parse(`containers.volumeMounts: subPath subPathExpr ! nothing mounts parts of volumes here`))
	}
	maps.Copy(all, feature.Parse(`hostUsers`))
	if s.users == nil {
		maps.Copy(all, feature.Parse(`hostUsers=false ! nothing allots user IDs to pods here`))
	}
	if s.devices == nil {
		maps.Copy(all, feature.Parse(`{containers.,}resources.{requests,limits}=*/* ! nothing hands out devices here`))
	}
	if s.prober == nil {
		maps.Copy(all, feature.Parse(`containers.{livenessProbe,readinessProbe,startupProbe} ! nothing probes containers here`))
	}
	return all
}
