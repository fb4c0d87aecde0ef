package machine

import (
	"context"
	"errors"
	"flag"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parse(args string) (*Flags, error) {
	f := &Flags{}
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	f.Define(flags)
	if err := flags.Parse(strings.Fields(args)); err != nil {
		return nil, err
	}
	return f, f.Complete(flags)
}

func TestFlags(t *testing.T) {
	f, err := parse("--root-dir /r --hostname-override n --node-ip 10.0.0.1,fd00::1 --cluster-dns 10.96.0.10")
	if err != nil {
		t.Fatal(err)
	}
	if f.LogRoot != "/r/log" || !slices.Equal(f.NodeIPs, []string{"10.0.0.1", "fd00::1"}) || len(f.ClusterDNS) != 1 {
		t.Errorf("%+v", f)
	}
	for args, want := range map[string]string{
		"--hostname-override Bad_Node": `"Bad_Node"`, "--node-ip 1.2.3": "-node-ip", "--cluster-dns dns": "-cluster-dns", "more": `"more"`,
	} {
		if _, err := parse(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that says %s", args, err, want)
		}
	}
}

// Two agents do not share a directory.
func TestLock(t *testing.T) {
	f := &Flags{Root: t.TempDir()}
	unlock, err := f.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Lock(); err == nil || !strings.Contains(err.Error(), f.Root) {
		t.Errorf("it is locked twice: %v", err)
	}
	unlock()
	unlock, err = f.Lock()
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

// Parts end in their order, each when the one before it has; one that fails ends the others.
func TestTogether(t *testing.T) {
	failure := errors.New("it is broken")
	var mu sync.Mutex
	var ended []string
	part := func(name string) Part {
		return func(ctx context.Context) error {
			<-ctx.Done()
			mu.Lock()
			defer mu.Unlock()
			ended = append(ended, name)
			return nil
		}
	}
	fails := func(context.Context) error { return failure }
	if err := Together(t.Context(), part("a"), part("b"), fails, part("c")); !errors.Is(err, failure) {
		t.Errorf("%v, want %v", err, failure)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, ended); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended = nil
	cancel()
	if err := Together(ctx, part("a"), part("b")); err != nil || len(ended) != 2 {
		t.Errorf("%v, %v", ended, err)
	}
}
