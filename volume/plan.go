package volume

import (
	"encoding/json"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// What a pod wants and what is on disk, and what follows. All here is pure.

// wanted is a volume that a pod needs, and who makes it: nil is nobody.
type wanted struct {
	*corev1.Volume
	plugin Plugin
	refs   []podmill.ObjectRef // what it is made of
}

// desired returns the volumes that a pod's containers use. One that none of them uses is not made, as in the kubelet: what it refers
// to need not exist.
func desired(pod *corev1.Pod, plugins []Plugin) []wanted {
	used := usedBy(&pod.Spec)
	var all []wanted
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if !used[v.Name] {
			continue
		}
		w := wanted{Volume: v, refs: references(v, pod.Namespace)}
		if i := slices.IndexFunc(plugins, func(p Plugin) bool { return p.Handles(v) }); i >= 0 {
			w.plugin = plugins[i]
		}
		all = append(all, w)
	}
	return all
}

func usedBy(spec *corev1.PodSpec) map[string]bool {
	used := map[string]bool{}
	use := func(mounts []corev1.VolumeMount, devices []corev1.VolumeDevice) {
		for i := range mounts {
			used[mounts[i].Name] = true
		}
		for i := range devices {
			used[devices[i].Name] = true
		}
	}
	for i := range spec.InitContainers {
		use(spec.InitContainers[i].VolumeMounts, spec.InitContainers[i].VolumeDevices)
	}
	for i := range spec.Containers {
		use(spec.Containers[i].VolumeMounts, spec.Containers[i].VolumeDevices)
	}
	for i := range spec.EphemeralContainers {
		use(spec.EphemeralContainers[i].VolumeMounts, spec.EphemeralContainers[i].VolumeDevices)
	}
	return used
}

// kindOf returns what a union of sources is, by the name of the field that is set.
func kindOf(source any) string {
	var fields map[string]any
	if data, err := json.Marshal(source); err != nil || json.Unmarshal(data, &fields) != nil || len(fields) == 0 {
		return "unknown"
	}
	return slices.Min(slices.Collect(maps.Keys(fields)))
}

// found is something on disk below a pod's directory.
type found struct {
	path    string // relative to the pod's directory, with slashes
	kind    kind
	mounted bool // something is mounted there
}

type kind uint8

const (
	aDirectory kind = iota
	aLink
	aFile
)

// removal is one step of taking a pod's volumes away.
type removal struct {
	path   string
	plugin Plugin // who takes the volume away; nil removes a link or an empty directory, and nothing else
}

// problem is what stays, and why.
type problem struct {
	path string
	err  error
}

// Why something stays.
var (
	errStrangeMount = errors.New("something is mounted there that no volume plugin here knows")
	errStrangeFile  = errors.New("it is a file, and no volume has one there")
)

// planRemoval returns how to take all away that was found, listed after what is in it. Volumes of known plugins are theirs to take away; of all
// else only links and empty directories are removed. A mount that nobody knows may have anything behind it, and be in use: then
// nothing of the pod is touched. owner returns the plugin of that name, nil if there is none.
func planRemoval(all []found, owner func(name string) Plugin) (steps []removal, stays []problem) {
	strangeMount := false
	for _, f := range all {
		plugin, isVolume := owningPlugin(f, owner)
		switch {
		case f.kind == aDirectory && isVolume:
			steps = append(steps, removal{f.path, plugin})
		case f.mounted:
			strangeMount = true
			stays = append(stays, problem{f.path, errStrangeMount})
		case f.kind == aFile:
			stays = append(stays, problem{f.path, errStrangeFile})
		default:
			steps = append(steps, removal{path: f.path})
		}
	}
	if strangeMount {
		return nil, stays
	}
	return steps, stays
}

// owningPlugin returns the plugin whose volume a path is.
func owningPlugin(f found, owner func(name string) Plugin) (Plugin, bool) {
	dir, _ := path.Split(f.path)
	elements := strings.Split(dir, "/")
	if len(elements) != 3 || elements[0] != volumesDir { // volumes/plugin/ and the empty rest
		return nil, false
	}
	plugin := owner(unescape(elements[1]))
	return plugin, plugin != nil
}

// keeps reports whether something that stays is below a directory, so that the directory has to stay too.
func keeps(dir string, stays []problem) bool {
	return slices.ContainsFunc(stays, func(p problem) bool { return strings.HasPrefix(p.path, dir+"/") })
}
