package apifault

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// body is what a watch says, until it falls silent or breaks.
type body struct {
	io.ReadCloser
	faults *Faults
	once   sync.Once
	broken chan struct{}

	mu    sync.Mutex
	muted chan struct{}
}

func (b *body) mute(until chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.muted = until
}

func (b *body) cut() {
	b.once.Do(func() { close(b.broken) })
	_ = b.ReadCloser.Close()
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	muted := b.muted
	b.mu.Unlock()
	if muted != nil {
		select {
		case <-muted:
		case <-b.broken:
		}
	}
	select {
	case <-b.broken:
		return 0, errors.New("injected: connection reset by peer")
	default:
		return n, err
	}
}

// Close implements [io.Closer].
func (b *body) Close() error {
	b.faults.mu.Lock()
	delete(b.faults.bodies, b)
	b.faults.mu.Unlock()
	b.once.Do(func() { close(b.broken) })
	return b.ReadCloser.Close()
}

func rawStatus() runtime.RawExtension {
	data, _ := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired,
		Message: "injected: too old resource version", Code: http.StatusGone,
	})
	return runtime.RawExtension{Raw: data}
}
