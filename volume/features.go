package volume

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/feature"
	"github.com/podmill/podmill/volume/internal/hostdir"
)

// Features says which fields of a PodSpec this package has a part in serving, with the plugins and providers that it was given. A kind of volume
// that a plugin handles is the plugin's, with all that is in it, unless the plugin has a method Features that says more.
func (m *Manager) Features() podmill.Features {
	all := feature.Parse(`
volumes: name
containers.volumeMounts: name subPath subPathExpr
securityContext: fsGroup fsGroupChangePolicy
volumes.emptyDir: medium sizeLimit
volumes.emptyDir.mode ! it is always 0777
volumes.hostPath: path type
volumes.downwardAPI.defaultMode
volumes.{,projected.sources.}downwardAPI.items: path mode fieldRef.apiVersion fieldRef.fieldPath
volumes.{,projected.sources.}downwardAPI.items.resourceFieldRef: containerName resource divisor
volumes.projected: defaultMode
volumes.{downwardAPI,configMap,secret,projected}.defaultUser ! files belong to the agent's user
volumes.{,projected.sources.}{downwardAPI,configMap,secret}.items.user ! files belong to the agent's user
volumes.projected.sources.{serviceAccountToken,clusterTrustBundle,podCertificate}.user ! a credential belongs to the pod's user
volumes.{configMap,secret}: items.key items.path items.mode defaultMode optional
volumes: configMap.name secret.secretName
volumes.projected.sources.{configMap,secret}: name items.key items.path items.mode optional
volumes.gitRepo ! it runs a program of the repository's on the node (CVE-2024-10220)
`)
	if !hostdir.HasMounts {
		maps.Copy(all, feature.Parse(`containers.volumeMounts: subPath subPathExpr ! parts of volumes are mounted on Linux only`))
	}
	if m.opts.objects.configMaps == nil || m.opts.objects.secrets == nil {
		maps.Copy(all, feature.Parse(`volumes.{,projected.sources.}{configMap,secret} ! nothing provides such objects here`))
	}
	claims := `containers.volumeDevices ! no volume here is a block device`
	if m.opts.claims != nil {
		claims = `
volumes.persistentVolumeClaim: claimName readOnly
volumes.ephemeral ~ an API server makes a claim of it
containers.volumeDevices: name devicePath
`
	}
	maps.Copy(all, feature.Parse(claims))
	m.opts.issuers.features(all)
	for source, v := range sources() {
		handled := func(p Plugin) bool { return p.Handles(v) }
		key := "volumes." + source
		claim := v.PersistentVolumeClaim != nil || v.Ephemeral != nil
		switch {
		case slices.ContainsFunc(m.opts.plugins, handled):
			maps.Copy(all, featuresOf(m.opts.plugins[slices.IndexFunc(m.opts.plugins, handled)], key))
		case slices.ContainsFunc(m.plugins, handled), v.Image != nil, claim && m.opts.claims != nil: // said above, or by others
		default:
			if _, said := all[key]; !said {
				all[key] = podmill.Feature{Refused: true, Why: "no plugin makes such volumes here"}
			}
		}
	}
	return all
}

// featuresOf returns what a plugin serves of the kind of volumes that has this key.
func featuresOf(p Plugin, key string) podmill.Features {
	if says, ok := p.(interface{ Features() podmill.Features }); ok {
		return says.Features()
	}
	return podmill.Features{key: {Why: "made by a plugin"}}
}

func (i issuers) features(all podmill.Features) {
	for _, kind := range []struct {
		known       bool
		name, field string
	}{
		{i.tokens != nil, "serviceAccountToken", "audience expirationSeconds path"},
		{i.bundles != nil, "clusterTrustBundle", "name signerName labelSelector.matchLabels labelSelector.matchExpressions.{key,operator,values} optional path"},
		{i.certificates != nil, "podCertificate", "signerName keyType maxExpirationSeconds credentialBundlePath keyPath certificateChainPath userAnnotations"},
	} {
		if kind.known {
			maps.Copy(all, feature.Parse("volumes.projected.sources."+kind.name+": "+kind.field))
		} else {
			maps.Copy(all, feature.Parse("volumes.projected.sources."+kind.name+" ! nothing provides it here"))
		}
	}
}

// sources returns a volume of every kind that the API has, by the name of the field that makes it one.
func sources() map[string]*corev1.Volume {
	all := map[string]*corev1.Volume{}
	kinds := reflect.TypeFor[corev1.VolumeSource]()
	for i := range kinds.NumField() {
		v := &corev1.Volume{}
		reflect.ValueOf(&v.VolumeSource).Elem().Field(i).Set(reflect.New(kinds.Field(i).Type.Elem()))
		name, _, _ := strings.Cut(kinds.Field(i).Tag.Get("json"), ",")
		all[name] = v
	}
	return all
}
