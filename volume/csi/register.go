package csi

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// answerWithin is how long a plugin may take to say who it is, or to hear what came of it.
const answerWithin = 10 * time.Second

// register asks who is behind a socket, and returns the driver. One that cannot be registered is told why. The name is the driver's, if it has said so.
func (d *Drivers) register(ctx context.Context, socket string) (*driver, string, error) {
	info, err := ask(ctx, socket)
	if err != nil {
		return nil, "", err
	}
	own := &driver{name: info.Name, endpoint: endpointOf(info, socket), socket: socket, timeout: d.opts.timeout, observer: d.opts.observer}
	if err = validate(info, own.endpoint); err == nil {
		err = own.introduce(ctx)
	}
	if err != nil {
		if told := notify(ctx, socket, err); told != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w (and it does not hear of it: %w)", err, told)
		}
		return nil, info.Name, err
	}
	return own, info.Name, nil
}

func ask(ctx context.Context, socket string) (info *registerapi.PluginInfo, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	err = dial(socket, func(conn grpc.ClientConnInterface) error {
		info, err = registerapi.NewRegistrationClient(conn).GetInfo(ctx, &registerapi.InfoRequest{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask the plugin at %s who it is: %w", socket, err)
	}
	return info, nil
}

// notify tells a plugin what came of its registration.
func notify(ctx context.Context, socket string, failed error) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	outcome := &registerapi.RegistrationStatus{PluginRegistered: failed == nil}
	if failed != nil {
		outcome.Error = failed.Error()
	}
	return dial(socket, func(conn grpc.ClientConnInterface) error {
		_, err := registerapi.NewRegistrationClient(conn).NotifyRegistrationStatus(ctx, outcome)
		return err
	})
}

// endpointOf returns where the driver itself listens.
func endpointOf(info *registerapi.PluginInfo, socket string) string {
	if info.Endpoint == "" {
		return socket
	}
	return strings.TrimPrefix(info.Endpoint, "unix://")
}

// maxName is how long the name of a driver may be.
const maxName = 63

// validate reports why a plugin cannot be registered. The name becomes part of paths.
func validate(info *registerapi.PluginInfo, endpoint string) error {
	if info.Type != registerapi.CSIPlugin {
		return fmt.Errorf("a plugin of type %q is not served here, only %s are", info.Type, registerapi.CSIPlugin)
	}
	if msgs := validation.IsDNS1123Subdomain(strings.ToLower(info.Name)); len(msgs) > 0 || len(info.Name) > maxName {
		return fmt.Errorf("%q is no name of a CSI driver: it is a domain of at most %d characters %s", info.Name, maxName, strings.Join(msgs, "; "))
	}
	if !filepath.IsAbs(endpoint) {
		return fmt.Errorf("CSI driver %s: its endpoint %q is not an absolute path", info.Name, endpoint)
	}
	if !slices.ContainsFunc(info.SupportedVersions, isServed) {
		return fmt.Errorf("CSI driver %s: of the versions %q none is served here, 1.x is", info.Name, info.SupportedVersions)
	}
	return nil
}

func isServed(v string) bool {
	parsed, err := version.ParseGeneric(strings.TrimPrefix(v, "v"))
	return err == nil && parsed.Major() == 1
}

// introduce asks a driver what it is on this node, and what it can.
func (d *driver) introduce(ctx context.Context) error {
	var info *csipb.NodeGetInfoResponse
	err := d.call(ctx, "NodeGetInfo", func(ctx context.Context, node csipb.NodeClient) (err error) {
		info, err = node.NodeGetInfo(ctx, &csipb.NodeGetInfoRequest{})
		return err
	})
	if err != nil {
		return err
	}
	if info.NodeId == "" {
		return fmt.Errorf("CSI driver %s: NodeGetInfo gives no ID of the node", d.name)
	}
	d.topology = info.GetAccessibleTopology().GetSegments()
	d.node = storagev1.CSINodeDriver{Name: d.name, NodeID: info.NodeId, TopologyKeys: slices.Sorted(maps.Keys(d.topology))}
	if most := info.MaxVolumesPerNode; most > 0 {
		count := int32(min(most, math.MaxInt32))
		d.node.Allocatable = &storagev1.VolumeNodeResources{Count: &count}
	}
	return d.call(ctx, "NodeGetCapabilities", func(ctx context.Context, node csipb.NodeClient) error {
		answer, err := node.NodeGetCapabilities(ctx, &csipb.NodeGetCapabilitiesRequest{})
		d.can = capabilities{}
		for _, c := range answer.GetCapabilities() {
			d.can[c.GetRpc().GetType()] = true
		}
		return err
	})
}
