package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// volume is a directory with data, and a file that says what is known of it.
type volume struct {
	dir       string
	Size      int64
	Ephemeral bool
}

func (v *volume) data() string { return filepath.Join(v.dir, "data") }

// find returns a volume, nil if there is none.
func (d *driver) find(id string) (*volume, error) {
	if id == "" {
		return nil, status.Error(codes.InvalidArgument, "no volume ID")
	}
	v := &volume{dir: filepath.Join(d.dir, "volumes", filepath.Base(id))}
	data, err := os.ReadFile(filepath.Join(v.dir, "volume.json"))
	if errors.Is(err, fs.ErrNotExist) || filepath.Base(id) != id || len(id) > 128 {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	return v, err
}

// need is find, and an error where there is none.
func (d *driver) need(id string) (*volume, error) {
	v, err := d.find(id)
	if err == nil && v == nil {
		err = status.Errorf(codes.NotFound, "there is no volume %s", id)
	}
	return v, err
}

func (d *driver) write(id string, v *volume) error {
	v.dir = filepath.Join(d.dir, "volumes", filepath.Base(id))
	data, err := json.Marshal(v)
	if err == nil {
		err = os.MkdirAll(v.data(), 0o750)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(v.dir, "volume.json"), data, 0o600)
	}
	return err
}

// ControllerGetCapabilities implements the controller.
func (d *driver) ControllerGetCapabilities(context.Context, *csipb.ControllerGetCapabilitiesRequest) (*csipb.ControllerGetCapabilitiesResponse, error) {
	answer := &csipb.ControllerGetCapabilitiesResponse{}
	for _, t := range []csipb.ControllerServiceCapability_RPC_Type{
		csipb.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csipb.ControllerServiceCapability_RPC_EXPAND_VOLUME,
	} {
		answer.Capabilities = append(answer.Capabilities, &csipb.ControllerServiceCapability{Type: &csipb.ControllerServiceCapability_Rpc{Rpc: &csipb.ControllerServiceCapability_RPC{Type: t}}})
	}
	return answer, nil
}

// CreateVolume implements the controller.
func (d *driver) CreateVolume(_ context.Context, r *csipb.CreateVolumeRequest) (*csipb.CreateVolumeResponse, error) {
	switch {
	case r.Name == "":
		return nil, status.Error(codes.InvalidArgument, "no name")
	case len(r.VolumeCapabilities) == 0:
		return nil, status.Error(codes.InvalidArgument, "no capabilities")
	}
	id, size := fmt.Sprintf("vol-%x", sha256.Sum256([]byte(r.Name))), r.GetCapacityRange().GetRequiredBytes()
	v, err := d.find(id)
	switch {
	case err != nil:
		return nil, err
	case v == nil:
		err = d.write(id, &volume{Size: size})
	case v.Size != size:
		err = status.Errorf(codes.AlreadyExists, "volume %s is there with %d bytes", r.Name, v.Size)
	}
	return &csipb.CreateVolumeResponse{Volume: &csipb.Volume{VolumeId: id, CapacityBytes: size}}, err
}

// DeleteVolume implements the controller.
func (d *driver) DeleteVolume(_ context.Context, r *csipb.DeleteVolumeRequest) (*csipb.DeleteVolumeResponse, error) {
	v, err := d.find(r.VolumeId)
	if v != nil {
		err = os.RemoveAll(v.dir)
	}
	return &csipb.DeleteVolumeResponse{}, err
}

// ValidateVolumeCapabilities implements the controller.
func (d *driver) ValidateVolumeCapabilities(_ context.Context, r *csipb.ValidateVolumeCapabilitiesRequest) (*csipb.ValidateVolumeCapabilitiesResponse, error) {
	if r.VolumeId != "" && len(r.VolumeCapabilities) == 0 {
		return nil, status.Error(codes.InvalidArgument, "no capabilities")
	}
	if _, err := d.need(r.VolumeId); err != nil {
		return nil, err
	}
	return &csipb.ValidateVolumeCapabilitiesResponse{Confirmed: &csipb.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: r.VolumeCapabilities}}, nil
}

// ControllerExpandVolume implements the controller.
func (d *driver) ControllerExpandVolume(_ context.Context, r *csipb.ControllerExpandVolumeRequest) (*csipb.ControllerExpandVolumeResponse, error) {
	v, err := d.need(r.VolumeId)
	if err != nil {
		return nil, err
	}
	if r.CapacityRange == nil {
		return nil, status.Error(codes.InvalidArgument, "no capacity range")
	}
	v.Size = r.CapacityRange.RequiredBytes
	return &csipb.ControllerExpandVolumeResponse{CapacityBytes: v.Size, NodeExpansionRequired: true}, d.write(r.VolumeId, v)
}
