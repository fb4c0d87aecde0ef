package volume

import (
	"encoding/json"
	"errors"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/references"
)

// What a pod wants and what is on disk, and what follows. All here is pure.

// wanted is a volume that a pod needs, and who makes it: nil is nobody.
type wanted struct {
	*corev1.Volume
	plugin Plugin
	claim  string              // the claim that it is, where no plugin makes it
	refs   []podmill.ObjectRef // what it is made of
	used   use
}

// use is how containers use a volume.
type use struct{ mounted, device bool }

// desired returns the volumes that a pod's containers use. One that none of them uses is not made, as in the kubelet: what it refers
// to need not exist. An image is left to the runtime, unless there is a plugin for it.
func desired(pod *corev1.Pod, plugins []Plugin) []wanted {
	used := usedBy(&pod.Spec)
	var all []wanted
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if used[v.Name] == (use{}) {
			continue
		}
		w := wanted{Volume: v, refs: references.OfVolume(pod, v), used: used[v.Name]}
		if i := slices.IndexFunc(plugins, func(p Plugin) bool { return p.Handles(v) }); i >= 0 {
			w.plugin = plugins[i]
		} else if v.Image != nil {
			continue
		} else {
			w.claim = references.Claim(pod, v)
		}
		all = append(all, w)
	}
	return all
}

func usedBy(spec *corev1.PodSpec) map[string]use {
	used := map[string]use{}
	uses := func(mounts []corev1.VolumeMount, devices []corev1.VolumeDevice) {
		for i := range mounts {
			name := mounts[i].Name
			used[name] = use{mounted: true, device: used[name].device}
		}
		for i := range devices {
			name := devices[i].Name
			used[name] = use{mounted: used[name].mounted, device: true}
		}
	}
	for i := range spec.InitContainers {
		uses(spec.InitContainers[i].VolumeMounts, spec.InitContainers[i].VolumeDevices)
	}
	for i := range spec.Containers {
		uses(spec.Containers[i].VolumeMounts, spec.Containers[i].VolumeDevices)
	}
	for i := range spec.EphemeralContainers {
		uses(spec.EphemeralContainers[i].VolumeMounts, spec.EphemeralContainers[i].VolumeDevices)
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

// removal is one step of taking a pod's volumes away. Without more than a path it removes a link or an empty directory, and nothing else.
type removal struct {
	path   string
	plugin Plugin // who takes the volume away
	part   bool   // a part of a volume that was mounted for a container
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

// planRemoval returns how to take all away that was found, listed after what is in it. Volumes of known plugins are theirs to take away, and with them
// what is mounted of their parts; of all else only links and empty directories are removed. A mount that nobody knows may have anything behind it, and be in
// use: then nothing of the pod is touched. owner returns the plugin of that name, nil if there is none.
func planRemoval(all []found, owner func(name string) Plugin) (steps []removal, stays []problem) {
	known := map[string]bool{}
	for _, f := range all {
		if _, isVolume := owningPlugin(f, owner); isVolume && f.kind == aDirectory {
			known[path.Base(f.path)] = true
		}
	}
	strangeMount := false
	for _, f := range all {
		plugin, isVolume := owningPlugin(f, owner)
		switch {
		case f.kind == aDirectory && isVolume:
			steps = append(steps, removal{path: f.path, plugin: plugin})
		case isPart(f, known):
			steps = append(steps, removal{path: f.path, part: true})
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

// isPart reports whether something is where a part of a known volume is mounted.
func isPart(f found, known map[string]bool) bool {
	elements := strings.Split(f.path, "/")
	if len(elements) != 4 || elements[0] != subPathsDir || !known[elements[1]] || f.kind == aLink {
		return false
	}
	_, err := strconv.ParseUint(elements[3], 10, 31)
	return err == nil
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
