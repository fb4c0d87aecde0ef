// Driver is a CSI driver for tests: its volumes are directories below one of its own, which it binds where it is asked to. It passes csi-test's sanity suite, writes down
// what it is asked, and does what it should not where a file says so:
//
//	{"NodePublishVolume": "hang", "NodeStageVolume": "fail ResourceExhausted no space left"}
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// driver is all services in one.
type driver struct {
	csipb.UnimplementedIdentityServer
	csipb.UnimplementedControllerServer
	csipb.UnimplementedNodeServer
	registerapi.UnimplementedRegistrationServer

	dir, name, endpoint, nodeID string
	topology                    string
	most                        int64
	can                         []string

	mu sync.Mutex // of files in dir
}

func main() {
	d := &driver{}
	var registry, can string
	flag.StringVar(&d.dir, "dir", "", "the `directory` of volumes, faults and the log of calls")
	flag.StringVar(&d.name, "name", "csi.test", "the driver's `name`")
	flag.StringVar(&d.nodeID, "node-id", "node", "the `ID` of the node")
	flag.StringVar(&registry, "registry", "", "the `directory` of sockets to register in; empty does not")
	flag.StringVar(&d.topology, "topology", "", "where the node lies, as `key=value`")
	flag.Int64Var(&d.most, "max-volumes", 0, "how many volumes the node may have")
	flag.StringVar(&can, "can", "stage,expand", "what it can: some of stage, expand, group")
	flag.Parse()
	d.can = strings.Split(can, ",")
	if err := d.run(registry); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "driver:", err)
		os.Exit(1)
	}
}

func (d *driver) run(registry string) error {
	if err := os.MkdirAll(filepath.Join(d.dir, "volumes"), 0o750); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d.endpoint = filepath.Join(d.dir, "csi.sock")
	sockets := []string{d.endpoint}
	if registry != "" {
		sockets = append(sockets, filepath.Join(registry, d.name+"-reg.sock"))
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(d.intercept))
	csipb.RegisterIdentityServer(server, d)
	csipb.RegisterControllerServer(server, d)
	csipb.RegisterNodeServer(server, d)
	registerapi.RegisterRegistrationServer(server, d)
	var serving sync.WaitGroup
	failed := make([]error, len(sockets))
	for i, socket := range sockets {
		if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		listener, err := net.Listen("unix", socket)
		if err != nil {
			return err
		}
		serving.Go(func() { failed[i] = server.Serve(listener) })
	}
	<-ctx.Done()
	server.Stop()
	serving.Wait()
	return errors.Join(failed...)
}

// GetInfo implements the registration.
func (d *driver) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: registerapi.CSIPlugin, Name: d.name, Endpoint: d.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus implements the registration.
func (d *driver) NotifyRegistrationStatus(context.Context, *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	return &registerapi.RegistrationStatusResponse{}, nil
}

// GetPluginInfo implements the identity.
func (d *driver) GetPluginInfo(context.Context, *csipb.GetPluginInfoRequest) (*csipb.GetPluginInfoResponse, error) {
	return &csipb.GetPluginInfoResponse{Name: d.name, VendorVersion: "1"}, nil
}

// GetPluginCapabilities implements the identity.
func (d *driver) GetPluginCapabilities(context.Context, *csipb.GetPluginCapabilitiesRequest) (*csipb.GetPluginCapabilitiesResponse, error) {
	return &csipb.GetPluginCapabilitiesResponse{Capabilities: []*csipb.PluginCapability{{Type: &csipb.PluginCapability_Service_{
		Service: &csipb.PluginCapability_Service{Type: csipb.PluginCapability_Service_CONTROLLER_SERVICE},
	}}}}, nil
}

// Probe implements the identity.
func (d *driver) Probe(context.Context, *csipb.ProbeRequest) (*csipb.ProbeResponse, error) {
	return &csipb.ProbeResponse{}, nil
}
