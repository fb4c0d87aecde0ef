package sandbox

import (
	"maps"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/feature"
)

// Features says which fields of a PodSpec this package has a part in serving, with what it was given.
func (m *Manager) Features() podmill.Features {
	all := feature.Parse(`
hostNetwork hostname subdomain setHostnameAsFQDN hostnameOverride
hostAliases: ip hostnames
dnsPolicy dnsConfig.nameservers dnsConfig.searches dnsConfig.options.name dnsConfig.options.value
runtimeClassName
`)
	if m.opts.handlers == nil {
		maps.Copy(all, feature.Parse(`runtimeClassName ! this agent knows no runtime classes`))
	}
	return all
}
