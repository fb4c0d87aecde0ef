package probe

import (
	"maps"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/feature"
)

// Features says which fields of a PodSpec this package serves, with what it was given.
func (m *Manager) Features() podmill.Features {
	const probe = `containers.{livenessProbe,readinessProbe,startupProbe}`
	all := feature.Parse(probe + `: initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold terminationGracePeriodSeconds
` + probe + `: exec.command tcpSocket.port tcpSocket.host grpc.port grpc.service
` + probe + `.httpGet: path port host scheme httpHeaders.name httpHeaders.value
containers.readinessProbe: terminationGracePeriodSeconds ~ the API takes it of no pod: such a probe stops nothing
` + probe + `: httpGet.protocol ! only HTTP/1.1 is spoken
` + probe + `: grpc.mode ! only plaintext is spoken`)
	if m.opts.grpc == nil {
		maps.Copy(all, feature.Parse(probe+`: grpc ! nothing here speaks gRPC`))
	}
	return all
}
