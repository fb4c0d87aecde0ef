package csi

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	storagev1 "k8s.io/api/storage/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/utils/ptr"
)

// A driver registers, and the cluster is told; it goes when its socket does, and another in its place is another registration.
func TestADriverRegisters(t *testing.T) {
	r := joined(t, []string{"-node-id", "machine-7", "-topology", "zone=a", "-max-volumes", "3"}, storagev1.CSIDriverSpec{})
	want := []storagev1.CSINodeDriver{{Name: "csi.test", NodeID: "machine-7", TopologyKeys: []string{"zone"}, Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To(int32(3))}}}
	published := func(want []storagev1.CSINodeDriver, gone string) func() bool {
		return func() (is bool) {
			r.cluster.with(func() { is = cmp.Equal(want, r.cluster.published) && strings.Join(r.cluster.gone, " ") == gone })
			return is
		}
	}
	r.eventually("the cluster knows the driver", published(want, ""))
	r.cluster.with(func() {
		if r.cluster.topology["zone"] != "a" {
			t.Errorf("topology %v", r.cluster.topology)
		}
	})
	r.driver.Stop()
	r.eventually("the cluster is told that it has gone", published([]storagev1.CSINodeDriver{}, "csi.test"))
	r.driver.Start()
	r.eventually("the cluster knows it again", published(want, ""))
	before, _ := r.drivers.registry.find("csi.test")
	r.driver.Kill() // its socket stays
	r.driver.Start()
	r.eventually("the driver has registered anew", func() bool { d, _ := r.drivers.registry.find("csi.test"); return d != nil && d != before })
}

// The cluster is told of a driver as soon as it can be.
func TestAClusterThatIsAway(t *testing.T) {
	r := joined(t, nil, storagev1.CSIDriverSpec{})
	r.cluster.with(func() { r.cluster.fail = errAway })
	r.driver.Stop()
	r.driver.Start()
	r.registered()
	r.cluster.with(func() { r.cluster.fail, r.cluster.published = nil, nil })
	r.eventually("the cluster knows the driver", func() (is bool) {
		r.cluster.with(func() { is = len(r.cluster.published) == 1 })
		return is
	})
}

// plugin registers as it is told.
type plugin struct {
	registerapi.UnimplementedRegistrationServer
	info *registerapi.PluginInfo // nil hangs

	mu   sync.Mutex
	told []*registerapi.RegistrationStatus
}

func (p *plugin) GetInfo(ctx context.Context, _ *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	if p.info == nil {
		<-ctx.Done()
	}
	return p.info, ctx.Err()
}

func (p *plugin) NotifyRegistrationStatus(_ context.Context, s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, s)
	return &registerapi.RegistrationStatusResponse{}, nil
}

func (p *plugin) serve(t *testing.T, socket string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(socket), 0o750))
	listener, err := net.Listen("unix", socket)
	must(t, err)
	s := grpc.NewServer()
	registerapi.RegisterRegistrationServer(s, p)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(listener) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// What cannot be registered is told why, and keeps no other from registering; what is no socket is let be.
func TestPluginsThatCannotRegister(t *testing.T) {
	r := newRig(t, nil)
	registry := filepath.Join(r.root, "plugins_registry")
	good := func(change func(*registerapi.PluginInfo)) *registerapi.PluginInfo {
		info := &registerapi.PluginInfo{Type: registerapi.CSIPlugin, Name: "other.test", Endpoint: "/nowhere/csi.sock", SupportedVersions: []string{"1.0.0"}}
		change(info)
		return info
	}
	plugins := map[string]*plugin{
		`a plugin of type "DevicePlugin" is not served here`:  {info: good(func(i *registerapi.PluginInfo) { i.Type = registerapi.DevicePlugin })},
		`"../../etc" is no name of a CSI driver`:              {info: good(func(i *registerapi.PluginInfo) { i.Name = "../../etc" })},
		`"" is no name of a CSI driver`:                       {info: good(func(i *registerapi.PluginInfo) { i.Name = "" })},
		`its endpoint "csi.sock" is not an absolute path`:     {info: good(func(i *registerapi.PluginInfo) { i.Endpoint = "csi.sock" })},
		`of the versions ["0.3.0" "x"] none is served here`:   {info: good(func(i *registerapi.PluginInfo) { i.SupportedVersions = []string{"0.3.0", "x"} })},
		`cannot be reached for NodeGetInfo at /nowhere/csi.s`: {info: good(func(*registerapi.PluginInfo) {})},
	}
	n := 'a'
	for _, p := range plugins {
		p.serve(t, filepath.Join(registry, string(n)))
		n++
	}
	(&plugin{}).serve(t, filepath.Join(registry, "hangs"))
	must(t, os.WriteFile(filepath.Join(registry, "file"), nil, 0o600), os.Mkdir(filepath.Join(registry, "dir"), 0o750), os.Symlink("/", filepath.Join(registry, "link")))
	nobody, err := net.Listen("unix", filepath.Join(registry, "nobody"))
	must(t, err)
	nobody.(*net.UnixListener).SetUnlinkOnClose(false)
	must(t, nobody.Close())
	r.driver.Start()
	r.registered()
	for why, p := range plugins {
		r.eventually("a plugin is told: "+why, func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.told) > 0 && !p.told[0].PluginRegistered && strings.Contains(p.told[0].Error, why)
		})
	}
	if all, _ := r.drivers.registry.all(); len(all) != 1 {
		t.Errorf("%d drivers have registered", len(all))
	}
}

// While a driver is exchanged for its next version both are registered. The newest is asked, and when it goes the one before it.
func TestTheNewestOfANameIsAsked(t *testing.T) {
	var r registry
	a, b := &driver{name: "d", endpoint: "a"}, &driver{name: "d", endpoint: "b"}
	_, changed := r.find("d")
	r.add(a)
	select {
	case <-changed:
	default:
		t.Error("nobody is told of a driver")
	}
	r.add(b)
	if d, _ := r.find("d"); d != b {
		t.Error("the newest is not asked")
	}
	r.remove(b)
	if d, _ := r.find("d"); d != a {
		t.Error("the one before it is not asked")
	}
	r.remove(a)
	if all, _ := r.all(); len(all) != 0 {
		t.Error("a driver that has gone is asked")
	}
}

// ending is a cluster during whose first call the agent ends, and with it its drivers.
type ending struct {
	Cluster
	during func()
	calls  int
}

func (e *ending) PublishDrivers(context.Context, []storagev1.CSINodeDriver, []string, map[string]string) error {
	e.calls++
	e.during()
	return nil
}

// The cluster is not told that all drivers have gone when it is the agent that ends.
func TestDriversOfAnAgentThatEnds(t *testing.T) {
	for range 50 { // what comes first is chance
		c := &ending{}
		d, err := New("/root", "node1", WithCluster(c))
		must(t, err)
		own := &driver{name: "d"}
		d.registry.add(own)
		ctx, end := context.WithCancel(t.Context())
		c.during = func() { end(); d.registry.remove(own) }
		d.publishDrivers(ctx)
		if c.calls != 1 {
			t.Fatalf("it was told %d times", c.calls)
		}
	}
}
