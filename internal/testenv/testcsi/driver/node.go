package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// NodeGetInfo implements the node.
func (d *driver) NodeGetInfo(context.Context, *csipb.NodeGetInfoRequest) (*csipb.NodeGetInfoResponse, error) {
	info := &csipb.NodeGetInfoResponse{NodeId: d.nodeID, MaxVolumesPerNode: d.most}
	if key, value, ok := strings.Cut(d.topology, "="); ok {
		info.AccessibleTopology = &csipb.Topology{Segments: map[string]string{key: value}}
	}
	return info, nil
}

// NodeGetCapabilities implements the node.
func (d *driver) NodeGetCapabilities(context.Context, *csipb.NodeGetCapabilitiesRequest) (*csipb.NodeGetCapabilitiesResponse, error) {
	answer := &csipb.NodeGetCapabilitiesResponse{}
	for _, name := range d.can {
		t, ok := map[string]csipb.NodeServiceCapability_RPC_Type{
			"stage": csipb.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, "expand": csipb.NodeServiceCapability_RPC_EXPAND_VOLUME,
			"group": csipb.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP,
		}[name]
		if ok {
			answer.Capabilities = append(answer.Capabilities, &csipb.NodeServiceCapability{Type: &csipb.NodeServiceCapability_Rpc{Rpc: &csipb.NodeServiceCapability_RPC{Type: t}}})
		}
	}
	return answer, nil
}

// NodeStageVolume implements the node.
func (d *driver) NodeStageVolume(_ context.Context, r *csipb.NodeStageVolumeRequest) (*csipb.NodeStageVolumeResponse, error) {
	switch {
	case r.VolumeId == "", r.StagingTargetPath == "", r.VolumeCapability == nil:
		return nil, status.Error(codes.InvalidArgument, "volume ID, staging path or capability is missing")
	}
	v, err := d.need(r.VolumeId)
	if err == nil && r.VolumeCapability.GetBlock() == nil {
		err = bind(v.data(), r.StagingTargetPath, false)
	}
	return &csipb.NodeStageVolumeResponse{}, err
}

// NodeUnstageVolume implements the node.
func (d *driver) NodeUnstageVolume(_ context.Context, r *csipb.NodeUnstageVolumeRequest) (*csipb.NodeUnstageVolumeResponse, error) {
	if r.VolumeId == "" || r.StagingTargetPath == "" {
		return nil, status.Error(codes.InvalidArgument, "volume ID or staging path is missing")
	}
	return &csipb.NodeUnstageVolumeResponse{}, unmount(r.StagingTargetPath)
}

// NodePublishVolume implements the node.
func (d *driver) NodePublishVolume(_ context.Context, r *csipb.NodePublishVolumeRequest) (*csipb.NodePublishVolumeResponse, error) {
	if r.VolumeId == "" || r.TargetPath == "" || r.VolumeCapability == nil {
		return nil, status.Error(codes.InvalidArgument, "volume ID, target path or capability is missing")
	}
	if r.VolumeContext["csi.storage.k8s.io/ephemeral"] == "true" {
		if err := d.write(r.VolumeId, &volume{Ephemeral: true}); err != nil {
			return nil, err
		}
	}
	v, err := d.need(r.VolumeId)
	if err != nil {
		return nil, err
	}
	if r.VolumeCapability.GetBlock() != nil {
		err := unix.Mknod(r.TargetPath, unix.S_IFBLK|0o600, int(unix.Mkdev(7, 77))) // nobody opens it
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
		return &csipb.NodePublishVolumeResponse{}, err
	}
	source := v.data()
	if slices.Contains(d.can, "stage") && r.StagingTargetPath != "" {
		source = r.StagingTargetPath
	}
	if group := r.VolumeCapability.GetMount().GetVolumeMountGroup(); group != "" {
		gid, err := strconv.Atoi(group)
		if err == nil {
			err = os.Chown(v.data(), -1, gid)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(r.TargetPath, 0o750); err != nil {
		return nil, err
	}
	return &csipb.NodePublishVolumeResponse{}, bind(source, r.TargetPath, r.Readonly)
}

// NodeUnpublishVolume implements the node.
func (d *driver) NodeUnpublishVolume(_ context.Context, r *csipb.NodeUnpublishVolumeRequest) (*csipb.NodeUnpublishVolumeResponse, error) {
	if r.VolumeId == "" || r.TargetPath == "" {
		return nil, status.Error(codes.InvalidArgument, "volume ID or target path is missing")
	}
	err := unmount(r.TargetPath)
	if err == nil {
		if err = os.Remove(r.TargetPath); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	v, err := d.find(r.VolumeId)
	if v != nil && v.Ephemeral {
		err = os.RemoveAll(v.dir)
	}
	return &csipb.NodeUnpublishVolumeResponse{}, err
}

// NodeExpandVolume implements the node.
func (d *driver) NodeExpandVolume(_ context.Context, r *csipb.NodeExpandVolumeRequest) (*csipb.NodeExpandVolumeResponse, error) {
	v, err := d.need(r.VolumeId)
	if err != nil {
		return nil, err
	}
	if r.VolumePath == "" {
		return nil, status.Error(codes.InvalidArgument, "no volume path")
	}
	v.Size = r.GetCapacityRange().GetRequiredBytes()
	return &csipb.NodeExpandVolumeResponse{CapacityBytes: v.Size}, d.write(r.VolumeId, v)
}

// bind mounts a directory on another, unless something is mounted there.
func bind(from, at string, readOnly bool) error {
	if mounted, err := isMount(at); err != nil || mounted {
		return err
	}
	err := unix.Mount(from, at, "", unix.MS_BIND, "")
	if err == nil && readOnly {
		err = unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
	}
	return err
}

func unmount(at string) error {
	for {
		mounted, err := isMount(at)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !mounted {
			return nil
		}
		if err == nil {
			err = unix.Unmount(at, unix.UMOUNT_NOFOLLOW)
		}
		if err != nil {
			return err
		}
	}
}

func isMount(path string) (bool, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_TYPE, &st); err != nil {
		return false, &fs.PathError{Op: "statx", Path: filepath.Clean(path), Err: err}
	}
	return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
}
