package image

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/podmill/podmill"
)

// pullID is what makes two pulls one. The credentials are in it as a hash, so that they are not kept longer than they are used.
type pullID struct {
	image   string
	handler string
	auths   [sha256.Size]byte
}

func hashOf(auths []podmill.ImageAuth) (sum [sha256.Size]byte) {
	h := sha256.New()
	for i := range auths {
		a := &auths[i]
		for _, s := range []string{a.Username, a.Password, a.Auth, a.IdentityToken, a.RegistryToken} {
			_, _ = io.WriteString(h, fmt.Sprintf("%d:%s", len(s), s)) // a hash does not fail
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// outcome is what came of a pull.
type outcome struct {
	image *podmill.Image
	took  time.Duration
	err   error
}

// shared holds the pulls that are under way.
type shared struct {
	mu    sync.Mutex
	pulls map[pullID]*sharedPull
}

// sharedPull is a pull that several may wait for. waiters is guarded by the mutex of shared, outcome by done.
type sharedPull struct {
	waiters int
	cancel  context.CancelFunc
	done    chan struct{}
	outcome outcome
}

// do waits for the pull of that ID, which is started if it is not under way, and returns what came of it. It returns ctx's error at once when ctx
// ends. The pull goes on for as long as anyone waits for it, and is cancelled when nobody does.
func (s *shared) do(ctx context.Context, id pullID, pull func(context.Context) outcome) (outcome, error) {
	if err := ctx.Err(); err != nil {
		return outcome{}, err
	}
	s.mu.Lock()
	p := s.pulls[id]
	if p == nil {
		p = &sharedPull{done: make(chan struct{})}
		var pullCtx context.Context
		pullCtx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
		s.pulls[id] = p
		go func() {
			p.outcome = pull(pullCtx)
			s.forget(id, p)
			p.cancel()
			close(p.done)
		}()
	}
	p.waiters++
	s.mu.Unlock()
	select {
	case <-p.done:
		return p.outcome, nil
	case <-ctx.Done():
		s.leave(id, p)
		return outcome{}, ctx.Err()
	}
}

// leave is for who waits no more.
func (s *shared) leave(id pullID, p *sharedPull) {
	s.mu.Lock()
	p.waiters--
	last := p.waiters == 0
	if last && s.pulls[id] == p {
		delete(s.pulls, id) // who comes now must not wait for what is cancelled
	}
	s.mu.Unlock()
	if last {
		p.cancel()
	}
}

func (s *shared) forget(id pullID, p *sharedPull) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pulls[id] == p {
		delete(s.pulls, id)
	}
}
