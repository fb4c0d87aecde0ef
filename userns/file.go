package userns

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/podmill/podmill/internal/atomicfile"
)

// The kubelet's layout: pods/<uid>/userns.
const (
	podsDir  = "pods"
	fileName = "userns"
)

// kept is what the file of a pod holds, as the kubelet has it.
type kept struct {
	UIDs []mapping `json:"uidMappings"`
	GIDs []mapping `json:"gidMappings"`
}

type mapping struct {
	Host      uint32 `json:"hostId"`
	Container uint32 `json:"containerId"`
	Length    uint32 `json:"length"`
}

// read returns what a file holds.
func read(path string) (span, error) {
	data, err := os.ReadFile(path) //nolint:gosec // ours
	if err != nil {
		return span{}, err
	}
	var k kept
	if err := json.Unmarshal(data, &k); err != nil {
		return span{}, err
	}
	return k.span()
}

// span returns the one range that is mapped, for users and groups alike.
func (k kept) span() (span, error) {
	if len(k.UIDs) != 1 || !slices.Equal(k.UIDs, k.GIDs) {
		return span{}, errors.New("the same one range has to be mapped of users and groups")
	}
	m := k.UIDs[0]
	if m.Container != 0 || m.Host == 0 || m.Host%perPod != 0 || m.Length == 0 || m.Length%perPod != 0 || uint64(m.Host)+uint64(m.Length) > 1<<32 {
		return span{}, fmt.Errorf("%d IDs from %d on for those from %d on are no range", m.Length, m.Host, m.Container)
	}
	return span{block(m.Host / perPod), block(m.Length / perPod)}, nil
}

// write puts a file in place as a whole, and on disk: a range must not be somebody else's after a loss of power.
func write(path string, own span) error {
	ids := []mapping{{Host: uint32(own.first) * perPod, Length: uint32(own.count) * perPod}}
	data, err := json.Marshal(kept{ids, ids})
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	if err := atomicfile.Replace(path, data, true); err != nil {
		return err
	}
	return atomicfile.SyncDirectory(dir)
}
