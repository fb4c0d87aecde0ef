package main

import (
	"context"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// intercept writes a call down, and does to it what the file of faults says.
func (d *driver) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	name := path.Base(info.FullMethod)
	if err := d.note(name, request); err != nil {
		return nil, err
	}
	fault, argument, _ := strings.Cut(d.fault(name), " ")
	switch fault {
	case "hang":
		<-ctx.Done()
		return nil, ctx.Err()
	case "crash":
		os.Exit(3)
	case "fail":
		code, message, _ := strings.Cut(argument, " ")
		return nil, status.Error(codeOf(code), message)
	case "nothing":
		return nothing(name), nil
	case "file", "link", "elsewhere":
		return d.misplace(ctx, fault, request, handle)
	}
	answer, err := handle(ctx, request)
	switch fault {
	case "hang-after":
		<-ctx.Done()
		return nil, ctx.Err()
	case "crash-after":
		os.Exit(3)
	case "fail-after":
		code, message, _ := strings.Cut(argument, " ")
		return nil, status.Error(codeOf(code), message)
	}
	return answer, err
}

// nothing is the answer of a driver that does nothing.
func nothing(name string) proto.Message {
	switch name {
	case "NodeStageVolume":
		return &csipb.NodeStageVolumeResponse{}
	case "NodeUnstageVolume":
		return &csipb.NodeUnstageVolumeResponse{}
	case "NodeUnpublishVolume":
		return &csipb.NodeUnpublishVolumeResponse{}
	}
	return &csipb.NodePublishVolumeResponse{}
}

// misplace publishes a volume where it should not be, or something else than a directory.
func (d *driver) misplace(ctx context.Context, how string, request any, handle grpc.UnaryHandler) (any, error) {
	publish, ok := request.(*csipb.NodePublishVolumeRequest)
	if !ok {
		return handle(ctx, request)
	}
	switch how {
	case "file":
		return &csipb.NodePublishVolumeResponse{}, os.WriteFile(publish.TargetPath, nil, 0o600)
	case "link":
		_ = os.Symlink("/", publish.TargetPath) // it may be there
		return &csipb.NodePublishVolumeResponse{}, nil
	}
	publish.TargetPath += "-elsewhere"
	return handle(ctx, publish)
}

func codeOf(name string) codes.Code {
	for code := range codes.Unauthenticated + 1 {
		if code.String() == name {
			return code
		}
	}
	return codes.Unknown
}

// fault returns what is to be done to calls of that name.
func (d *driver) fault(name string) string {
	data, err := os.ReadFile(filepath.Join(d.dir, "faults.json"))
	faults := map[string]string{}
	if err == nil {
		_ = json.Unmarshal(data, &faults)
	}
	return faults[name]
}

// note appends a call to the log.
func (d *driver) note(name string, request any) error {
	data, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(request.(proto.Message))
	if err != nil {
		return err
	}
	line, err := json.Marshal(map[string]any{"name": name, "request": json.RawMessage(data)})
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	file, err := os.OpenFile(filepath.Join(d.dir, "calls.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Write(append(line, '\n'))
	return err
}
