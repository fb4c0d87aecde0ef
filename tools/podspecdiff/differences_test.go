package podspecdiff

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// difference is something in which podspec is not what Kubernetes is, on purpose.
type difference struct {
	why string
	// path is replaced by to in what both say, which makes it the same.
	path, to string
	// detail chooses errors by their text, where the path does not tell.
	detail string
}

// Podspec's paths are those of the file that a person has before him, whereas Kubernetes' are at times of another field.
var differences = []difference{
	{why: "Kubernetes leaves out which element of the list it is",
		path: `(volumeMounts)\[\d+\]\.(subPath|subPathExpr|mountPropagation|recursiveReadOnly)$`, to: "$1.$2"},
	{why: "likewise", path: `\.envFrom\[\d+\]$`, to: ".envFrom"},
	{why: "likewise", path: `\.resizePolicy.*`, to: ".resizePolicy"},
	{why: "likewise", path: `(httpHeaders)\[\d+\]\.name$`, to: "$1"},
	{why: "likewise", path: `(downwardAPI)\.items\[\d+\]`, to: "$1"},
	{why: "likewise", path: `(accessModes)\[\d+\]$`, to: "$1"},
	{why: "likewise", path: `\.namespaces?(\[\d+\])?$`, to: ".namespace"},
	{why: "likewise", path: `(initContainers)\[\d+\](\.ports\[\d+\]\.hostPort)$`, to: "$1[0]$2", detail: `^$`},
	{why: "likewise", path: `projected\.sources\[\d+\]\.serviceAccountToken\.path$`, to: "projected.path"},
	{why: "likewise", path: `projected(\.sources\[\d+\].*)?$`, to: "projected.path", detail: `another file already|conflicting duplicate`},

	{why: "Kubernetes leaves out which key of the map it is",
		path: `resources\.requests\[.*\]$`, to: "resources.requests", detail: `must be (the limit|less than|equal to)`},
	{why: "likewise", path: `resources\.limits\[.*\]$`, to: "resources.limits", detail: `(?i)the limit|limit must be set`},
	{why: "Kubernetes makes a map a list of one", path: `overhead\.limits`, to: "overhead"},

	{why: "Kubernetes leaves out the field of the element", path: `(claims\[\d+\]|dnsConfig\.options\[\d+\]|schedulingGates\[\d+\])\.name$`, to: "$1"},
	{why: "likewise", path: `(\.sleep)\.seconds$`, to: "$1"},
	{why: "likewise", path: `(\.securityContext)\.allowPrivilegeEscalation$`, to: "$1", detail: `cannot be false`},
	{why: "likewise", path: `\.os\.name$`, to: ".os"},
	{why: "likewise", path: `\.fieldRef(\.fieldPath|\.apiVersion)?$`, to: ".fieldRef"},
	{why: "likewise", path: `downwardAPI\.resourceFieldRef$`, to: "downwardAPI"},
	{why: "likewise", path: `(volumeClaimTemplate\.metadata)\..*`, to: "$1"},
	{why: "likewise", path: `(volumeClaimTemplate\.spec)\.dataSource$`, to: "$1", detail: `left out|may not be specified when|must match dataSourceRef`},

	{why: "Kubernetes names a field that the pod does not have", path: `gcePersistentDisk|persistentDisk`, to: "gcePersistentDisk"},
	{why: "likewise", path: `\.cephFS`, to: ".cephfs"},
	{why: "likewise", path: `\.downwarAPI`, to: ".downwardAPI"},
	{why: "likewise", path: `\.initiatorname`, to: ".initiatorName"},
	{why: "likewise", path: `\.HostPID$`, to: ".hostPID"},
	{why: "likewise", path: `\.HostIPC$`, to: ".hostIPC"},
	{why: "likewise", path: `deprecatedServiceAccount`, to: "serviceAccount"},
	{why: "likewise", path: `\.\{topologyKey, whenUnsatisfiable\}$`, to: ".topologyKey"},
	{why: "likewise", path: `spec\.resources\.containers\[(\d+)\]\[(.*)\]\.limits$`, to: "spec.containers[$1].resources.limits[$2]"},
	{why: "likewise", path: `(volumeClaimTemplate\.spec\.resources)\.requests\[`, to: "$1["},
	{why: "likewise", path: `(\.csi)\.nodePublishSecretRef\.name$`, to: "$1.name"},
	{why: "likewise", path: `(topologySpreadConstraints\[\d+\]|podAffinityTerm|IgnoredDuringExecution\[\d+\])\[(\d+)\]$`, to: "$1.matchLabelKeys[$2]"},
	{why: "likewise", path: `^\[\]$`, to: "spec.resourceClaims", detail: "static pods"},
	{why: "likewise", path: `^\[\]$`, to: "data", detail: "bytes"},

	{why: "Kubernetes names the field beside the one that is wrong", path: `(olerations\]?\[\d+\])\.value$`, to: "$1.operator"},

	{why: "annotations are written in one way for podspec, in several for Kubernetes", path: `metadata\.annotations[.\[].*tolerations\]?`, to: "metadata.annotations"},
	{why: "likewise", path: `metadata\.annotations[.\[](.*seccomp.*?)\]?$`, to: "metadata.annotations[$1]"},

	{why: "podspec says nothing more of ephemeral containers than that they cannot be there", path: `spec\.ephemeralContainers\[.*`, to: "spec.ephemeralContainers"},
	{why: "rules without a policy: podspec checks them nevertheless", path: `(initContainers\[\d+\])\.restartPolicyRules.*`, to: "$1.restartPolicy"},
}

// form finds the form of errors' paths in which both are alike. It remembers them: expressions are slow.
type form struct {
	rules []rule
	known map[[2]string]string
}

type rule struct {
	path, detail *regexp.Regexp
	to           string
}

func newForm() *form {
	f := &form{known: map[[2]string]string{}}
	for _, d := range differences {
		f.rules = append(f.rules, rule{regexp.MustCompile(d.path), regexp.MustCompile(d.detail), d.to})
	}
	return f
}

func (f *form) of(e *field.Error) string {
	key := [2]string{e.Field, e.Detail}
	path, ok := f.known[key]
	if ok {
		return path
	}
	path = e.Field
	for _, r := range f.rules {
		if r.path.MatchString(path) && r.detail.MatchString(e.Detail) {
			path = r.path.ReplaceAllString(path, r.to)
		}
	}
	f.known[key] = path
	return path
}

// paths are the paths that a list complains of, each once.
func (f *form) paths(list field.ErrorList) []string {
	var paths []string
	for _, e := range list {
		paths = append(paths, f.of(e))
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// ofInvalidVolumes takes away what is said of where volumes are mounted, if volumes are wrong themselves: for Kubernetes such a volume
// is not there, and another of its name is not the second, which would lead a person astray.
func ofInvalidVolumes(list field.ErrorList) field.ErrorList {
	if !slices.ContainsFunc(list, func(e *field.Error) bool { return strings.HasPrefix(e.Field, "spec.volumes[") }) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(e *field.Error) bool {
		again := e.Type == field.ErrorTypeDuplicate && strings.HasPrefix(e.Field, "spec.volumes[")
		return again || mounted.MatchString(e.Field)
	})
}

var mounted = regexp.MustCompile(`\.volume(Mounts|Devices)\[\d+\]\.(name|bindMountOptions)$`)
