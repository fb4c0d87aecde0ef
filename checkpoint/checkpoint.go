package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/internal/references"
)

// Checkpoint is what is kept in a directory.
type Checkpoint struct {
	opts    options
	journal *journal
	damage  error

	mu      sync.Mutex
	pods    map[types.UID]kept
	writers int       // sources that run
	silent  time.Time // until then it is not waited for objects that are kept
}

// kept is a pod as its source told it last.
type kept struct {
	source string
	pod    *corev1.Pod
}

// Open reads what is kept in a directory, and makes the directory if it is not there. What is damaged is left out and set aside, and is
// an error in the log of the first source.
func Open(dir string, opts ...Option) (*Checkpoint, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make checkpoint directory: %w", err)
	}
	j, damage, err := openJournal(filepath.Join(dir, "journal"), isSecret)
	if err != nil {
		return nil, fmt.Errorf("open checkpoint: %w", err)
	}
	c := &Checkpoint{opts: newOptions(opts), journal: j, damage: damage, pods: map[types.UID]kept{}}
	for _, key := range j.keys(podPrefix) {
		source, uid, _ := strings.Cut(strings.TrimPrefix(key, podPrefix), "/")
		pod := &corev1.Pod{}
		if j.get(key, pod) && string(pod.UID) == uid {
			c.pods[pod.UID] = kept{source: source, pod: pod}
		}
	}
	return c, nil
}

// The keys of what is kept: pod/<source>/<uid>, status/<uid>, <kind>/<namespace>/<name> of an object, services/<namespace>, and token/<uid>/<audience>.
const podPrefix = "pod/"

func podKey(source string, uid types.UID) string { return podPrefix + source + "/" + string(uid) }
func statusKey(uid types.UID) string             { return "status/" + string(uid) }
func objectKey(ref podmill.ObjectRef) string     { return ref.Kind + "/" + ref.Namespace + "/" + ref.Name }
func classKey(name string) string {
	return objectKey(podmill.ObjectRef{Kind: "RuntimeClass", Name: name})
}
func servicesKey(namespace string) string { return "services/" + namespace }
func tokensOf(uid types.UID) string       { return "token/" + string(uid) + "/" }

// isSecret reports whether an old value of a key must not stay on disk.
func isSecret(key string) bool {
	return strings.HasPrefix(key, "Secret/") || strings.HasPrefix(key, "token/")
}

// keep takes in what a source has told.
func (c *Checkpoint) keep(source string, u podmill.PodUpdate) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	named := make(map[types.UID]bool, len(u.Pods))
	for _, pod := range u.Pods {
		if pod != nil {
			named[pod.UID] = true
		}
	}
	dropped := false
	for uid, k := range c.pods {
		if k.source == source && (u.Op == podmill.ReplacePods && !named[uid] || u.Op == podmill.DeletePods && named[uid]) {
			delete(c.pods, uid)
			dropped = true
		}
	}
	var errs []error
	if u.Op != podmill.DeletePods {
		for _, pod := range u.Pods {
			if pod != nil && pod.UID != "" {
				c.pods[pod.UID] = kept{source: source, pod: pod}
				errs = append(errs, c.journal.put(podKey(source, pod.UID), pod))
			}
		}
	}
	if dropped || u.Op == podmill.ReplacePods {
		c.tidy()
	}
	return errors.Join(errs...)
}

// tidy forgets what no pod that is kept has to do with.
func (c *Checkpoint) tidy() {
	needed := map[string]bool{}
	for uid, k := range c.pods {
		needed[podKey(k.source, uid)], needed[statusKey(uid)], needed[servicesKey(k.pod.Namespace)], needed[tokensOf(uid)] = true, true, true, true
		for _, ref := range references.Of(k.pod) {
			needed[objectKey(ref)] = true
		}
		if name := k.pod.Spec.RuntimeClassName; name != nil {
			needed[classKey(*name)] = true
		}
	}
	c.journal.drop(func(key string) bool { return !needed[key] && !needed[key[:strings.LastIndexByte(key, '/')+1]] })
}

// forget takes in that a pod has finished.
func (c *Checkpoint) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.pods[uid]; ok {
		delete(c.pods, uid)
		c.tidy()
	}
}

// pod returns a pod as its source told it last, nil if none does.
func (c *Checkpoint) pod(uid types.UID) *corev1.Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pods[uid].pod
}

// write brings changes to disk until ctx ends, and what is left then.
func (c *Checkpoint) write(ctx context.Context) {
	c.mu.Lock()
	c.writers++
	damage := c.damage
	c.damage = nil
	c.mu.Unlock()
	if damage != nil {
		logr.FromContextOrDiscard(ctx).Error(damage, "a part of the checkpoint is lost; the file was set aside")
	}
	for ctx.Err() == nil {
		select {
		case <-c.journal.wake:
			pause(ctx, gather)
			if c.commit(ctx) != nil {
				pause(ctx, retry)
				c.journal.poke()
			}
		case <-ctx.Done():
		}
	}
	c.mu.Lock()
	c.writers--
	c.mu.Unlock()
	_ = c.commit(ctx) // the log has it
}

// settle brings changes to disk if no source runs that will.
func (c *Checkpoint) settle(ctx context.Context) {
	c.mu.Lock()
	writers := c.writers
	c.mu.Unlock()
	if writers == 0 {
		_ = c.commit(ctx) // the log has it
	}
}

func (c *Checkpoint) commit(ctx context.Context) error {
	c.mu.Lock()
	last := c.writers == 0
	c.mu.Unlock()
	began := time.Now()
	values, size, err := c.journal.commit(last)
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "the checkpoint is not written; a node that boots without its API would start what it knew before")
	}
	if err != nil || values > 0 {
		c.opts.observer.written(values, size, time.Since(began), err)
	}
	return err
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
