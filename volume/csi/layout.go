package csi

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill/internal/atomicfile"
)

// layout says where things are below the root directory: where the kubelet has them.
type layout struct{ root string }

// The names of files and directories that are the kubelet's.
const (
	recordFile = "vol_data.json"
	mountDir   = "mount"
	devicesDir = "volumeDevices"
)

func (l layout) registrations() string { return filepath.Join(l.root, "plugins_registry") }

func (l layout) plugin(names ...string) string {
	return filepath.Join(append([]string{l.root, "plugins", filepath.FromSlash(pluginName)}, names...)...)
}

// stage is where a volume is staged: in a directory's record is what it takes to unstage it.
type stage struct{ dir, path string }

// stage returns where the volume of a record is staged.
func (l layout) stage(r record) stage {
	if r.isBlock() {
		return stage{l.plugin(devicesDir, r.SpecVolID, "data"), l.plugin(devicesDir, "staging", r.SpecVolID)}
	}
	dir := l.plugin(r.DriverName, fmt.Sprintf("%x", sha256.Sum256([]byte(r.VolumeHandle))))
	return stage{dir, filepath.Join(dir, "globalmount")}
}

// device returns where a block device is published for a pod.
func (l layout) device(r record, uid string) string {
	return l.plugin(devicesDir, "publish", r.SpecVolID, uid)
}

// eachStage calls do for all that is staged, with the directory that its record is in.
func (l layout) eachStage(do func(dir string, r record, err error)) error {
	drivers, err := list(l.plugin()) // and volumeDevices, whose records lie a level deeper
	devices, err2 := list(l.plugin(devicesDir))
	return errors.Join(err, err2, each(append(drivers, devices...), do))
}

// eachRecord calls do for what is on disk of all pods' volumes, with the directory that it is in.
func (l layout) eachRecord(do func(dir string, r record, err error)) error {
	pods, err := list(filepath.Join(l.root, "pods"))
	var dirs []string
	for _, pod := range pods {
		dirs = append(dirs, filepath.Join(pod, "volumes", strings.ReplaceAll(pluginName, "/", "~")))
	}
	return errors.Join(err, each(dirs, do))
}

// each calls do for each record in the directories in dirs, with an error for one that cannot be read. It returns an error where a directory cannot be: there may be any number
// of records in it.
func each(dirs []string, do func(dir string, r record, err error)) error {
	var errs []error
	for _, dir := range dirs {
		all, err := list(dir)
		errs = append(errs, err)
		for _, own := range all {
			if r, err := readRecord(own); !errors.Is(err, fs.ErrNotExist) {
				do(own, r, err)
			}
		}
	}
	return errors.Join(errs...)
}

// list returns the paths of the directories in a directory, none if there is no such directory, or something else in its place: that is of one pod and hinders no other.
func list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	var dirs []string
	for _, entry := range entries {
		if entry.IsDir() {
			dirs = append(dirs, filepath.Join(dir, entry.Name()))
		}
	}
	return dirs, err
}

// record is what is on disk of a volume, as the kubelet writes it and with two keys more.
type record struct {
	SpecVolID           string `json:"specVolID"`
	VolumeHandle        string `json:"volumeHandle"`
	DriverName          string `json:"driverName"`
	NodeName            string `json:"nodeName"`
	AttachmentID        string `json:"attachmentID"` // empty if nobody attaches it
	VolumeLifecycleMode string `json:"volumeLifecycleMode"`
	VolumeMode          string `json:"podmill.io/volumeMode,omitempty"` // Block, or empty
	State               state  `json:"podmill.io/state,omitempty"`
}

// state is how far a volume of a pod has come.
type state string

const (
	// asked says that the driver may have published it, for all that is known: the kubelet's records say no more.
	asked state = ""
	// waiting says that the driver was not asked yet.
	waiting state = "waiting"
	// ready says that all is done.
	ready state = "ready"
)

const block = "Block"

// isOf reports that a record is of the same volume as another. Block devices of one PersistentVolume's name are staged in one place, one after the other.
func (r record) isOf(other record) bool {
	return r.DriverName == other.DriverName && r.VolumeHandle == other.VolumeHandle
}

// uniqueName is a volume's name in the status of a Node.
func (r record) uniqueName() corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName(pluginName + "/" + r.DriverName + "^" + r.VolumeHandle)
}

func (r record) isBlock() bool { return r.VolumeMode == block }

// readRecord returns the record in a directory.
func readRecord(dir string) (record, error) {
	var r record
	data, err := os.ReadFile(filepath.Join(dir, recordFile)) //nolint:gosec // the agent's own
	if err != nil {
		return r, err
	}
	if err = json.Unmarshal(data, &r); err == nil && (r.DriverName == "" || r.VolumeHandle == "") {
		err = errors.New("it names no driver or no volume")
	}
	if err != nil {
		err = fmt.Errorf("%s cannot be read, by which the volume could be unpublished: %w", filepath.Join(dir, recordFile), err)
	}
	return r, err
}

// write puts a record into a directory. A loss of power may take it away again, with all that was mounted, but leaves no part of it.
func (r record) write(dir string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(dir, recordFile), data, true)
}

// removeRecord removes a record with its directory, in which there is nothing else.
func removeRecord(dir string) error {
	for _, name := range []string{recordFile + atomicfile.Unfinished, recordFile, ""} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
