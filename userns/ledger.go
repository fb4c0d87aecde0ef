package userns

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// block is the number of a range of perPod IDs: block 1 begins with ID 65536.
type block uint32

// span is what a pod has: blocks from first on. What an agent allots is one block; a kubelet before it may have been set to give more.
type span struct{ first, count block }

func (s span) mappings() *podmill.IDMappings {
	ids := []podmill.IDMapping{{Container: 0, Host: uint32(s.first) * perPod, Length: uint32(s.count) * perPod}}
	return &podmill.IDMappings{UIDs: ids, GIDs: ids}
}

// ledger says which pod has which blocks. Everything it decides is pure.
type ledger struct {
	first, end block // what may be allotted, without end
	owners     map[block]types.UID
	pods       map[types.UID]span
}

func newLedger(first, end block) ledger {
	return ledger{first: first, end: end, owners: map[block]types.UID{}, pods: map[types.UID]span{}}
}

// take gives a pod that has none the first block that is free.
func (l *ledger) take(pod types.UID) (span, error) {
	for b := l.first; b < l.end; b++ {
		if _, taken := l.owners[b]; !taken {
			own := span{b, 1}
			l.put(pod, own)
			return own, nil
		}
	}
	return span{}, fmt.Errorf("%w: all %d are allotted", ErrExhausted, l.end-l.first)
}

// record takes over what a pod has. It need not be among what may be allotted now: what a pod has, it keeps.
func (l *ledger) record(pod types.UID, own span) error {
	if before, ok := l.pods[pod]; ok && before != own {
		return errors.New("the file has changed since it was read")
	}
	for b := own.first; b < own.first+own.count; b++ {
		if owner, taken := l.owners[b]; taken && owner != pod {
			return fmt.Errorf("IDs from %d on are those of pod %s, too", uint64(b)*perPod, owner)
		}
	}
	l.put(pod, own)
	return nil
}

func (l *ledger) put(pod types.UID, own span) {
	l.pods[pod] = own
	for b := own.first; b < own.first+own.count; b++ {
		l.owners[b] = pod
	}
}

func (l *ledger) release(pod types.UID) {
	own := l.pods[pod]
	delete(l.pods, pod)
	for b := own.first; b < own.first+own.count; b++ {
		delete(l.owners, b)
	}
}
