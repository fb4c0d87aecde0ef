// Package issued keeps what pods prove themselves by, tokens and certificates, and has it made anew in time.
package issued

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// Credential is something that ends. From Renew on another is asked for.
type Credential[T any] struct {
	Value          T
	Renew, Expires time.Time
}

// The kubelet's rules for tokens.
const (
	minAge    = time.Second // ours
	maxAge    = 24 * time.Hour
	maxJitter = 10 * time.Second // so that tokens which were made together are not renewed together
)

// RenewAfter returns the age at which a token is renewed: at four fifths of its life, and after a day at the latest. One that has no life, as where the node's clock goes
// wrong, is not good for anything, and is not worth to be renewed in haste.
func RenewAfter(life time.Duration) time.Duration {
	if life <= 0 {
		return 0
	}
	return max(minAge, min(life/5*4, maxAge)-rand.N(min(maxJitter, max(life/20, 1))))
}

// Credentials are those that pods have, by what each is: its pod, and what was asked for. They are lost with the process; then all is made anew. The zero value has none.
type Credentials[K ID, T any] struct {
	mu  sync.Mutex
	all map[K]Credential[T]
}

// ID says which credential it is, to a log as well.
type ID interface {
	comparable
	fmt.Stringer
}

// A credential that is still good is renewed beside the pod's other needs: an attempt may take this long, and after one that failed there is a pause, of a tenth of
// the life that is left and within these bounds.
const (
	renewalTimeout  = 5 * time.Second
	minRenewalPause = 10 * time.Second
	maxRenewalPause = 5 * time.Minute
)

// Get returns a credential, made anew if it is time for that. While that fails, the old one is good until it ends. Calls for one credential come one after another.
func (c *Credentials[K, T]) Get(ctx context.Context, which K, issue func(context.Context) (Credential[T], error)) (Credential[T], error) {
	c.mu.Lock()
	has, ok := c.all[which]
	c.mu.Unlock()
	now := time.Now()
	switch {
	case ok && now.Before(has.Renew):
		return has, nil
	case ok && now.Before(has.Expires):
		return c.renewed(ctx, which, has, issue), nil
	}
	fresh, err := issue(ctx)
	if err == nil {
		c.put(which, fresh)
	}
	return fresh, err
}

// renewed returns a credential in the place of one that is still good, or that one if none is to be had soon.
func (c *Credentials[K, T]) renewed(ctx context.Context, which K, has Credential[T], issue func(context.Context) (Credential[T], error)) Credential[T] {
	attempt, cancel := context.WithTimeout(ctx, renewalTimeout)
	defer cancel()
	fresh, err := issue(attempt)
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "a credential is not renewed yet", "of", which.String(), "expires", has.Expires)
		pause := min(max(time.Until(has.Expires)/10, minRenewalPause), maxRenewalPause)
		fresh = has
		if fresh.Renew = time.Now().Add(pause); fresh.Renew.After(has.Expires) {
			fresh.Renew = has.Expires
		}
	}
	c.put(which, fresh)
	return fresh
}

func (c *Credentials[K, T]) put(which K, own Credential[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[K]Credential[T]{}
	}
	c.all[which] = own
}

// Forget says that nobody has those credentials any more.
func (c *Credentials[K, T]) Forget(those func(K) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for which := range c.all {
		if those(which) {
			delete(c.all, which)
		}
	}
}
