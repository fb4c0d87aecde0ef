package cri

import (
	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/feature"
)

// Features says which fields of a PodSpec CRI has words for. What a runtime cannot do of them is refused when it is asked for.
func Features() podmill.Features {
	return feature.Parse(`
hostNetwork hostPID hostIPC shareProcessNamespace
hostUsers
containers: stdin stdinOnce tty
containers.ports: name containerPort hostPort hostIP protocol
containers.lifecycle: stopSignal
containers.securityContext: privileged readOnlyRootFilesystem allowPrivilegeEscalation procMount
containers.securityContext: capabilities.add capabilities.drop
{containers.,}securityContext: runAsUser runAsGroup runAsNonRoot
{containers.,}securityContext.seLinuxOptions: user role type level
{containers.,}securityContext.{seccompProfile,appArmorProfile}: type localhostProfile
{containers.,}securityContext.windowsOptions ! this is for nodes that run Windows
securityContext: supplementalGroups supplementalGroupsPolicy fsGroup
securityContext: seLinuxChangePolicy ! volumes are relabelled by the runtime
securityContext.sysctls: name value
{containers.,}resources: requests limits
{containers.,}resources.claims ! devices cannot be claimed yet
{containers.,}resources.{requests,limits}=ephemeral-storage ~ counted by the scheduler; a container that uses more is not stopped yet
overhead
os.name
os.name=windows ! containers run on Linux here
`)
}

// Features is the func of that name, which an agent asks its runtime for.
func (*Client) Features() podmill.Features { return Features() }
