package podmilltest

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/podmill/podmill"
)

// Image is an image of the in-memory runtime.
type Image struct {
	// Ref is its name, such as "web:1"; docker.io/library/ and :latest are added where they are missing.
	Ref string
	// Entrypoint and Cmd are what a container runs that says nothing else. Where both are empty it runs until it is stopped.
	Entrypoint []string
	Cmd        []string
	// Files are what "cat" finds, by absolute path.
	Files map[string]string
	// User is the image's user: a number, a name or, for root, empty.
	User string
	// Size is in bytes.
	Size uint64
}

// ScriptImage returns an image whose containers run a script.
func ScriptImage(ref, script string) Image {
	return Image{Ref: ref, Entrypoint: Script(script)}
}

// Script returns the command line that runs a script.
func Script(script string) []string { return []string{"sh", "-c", script} }

// RemoteImage is an image in a registry, and what pulling it is like.
type RemoteImage struct {
	Image
	// Takes is how long a pull takes, also one that fails.
	Takes time.Duration
	// Err is what a pull returns; nil succeeds.
	Err error
	// Username and Password are what a pull must come with; empty asks for nothing.
	Username, Password string
}

// storedImage is a local image: what it does and what is seen of it.
type storedImage struct {
	Image
	seen podmill.Image
}

// called returns the name by which an image is known that a container was given as name.
func (s *storedImage) called(name string) string {
	if name == s.seen.ID && len(s.seen.RepoTags) > 0 {
		return s.seen.RepoTags[0]
	}
	return name
}

// PullImage implements [podmill.ImageStore]. It returns the image's ID.
func (r *Runtime) PullImage(ctx context.Context, pull *podmill.ImagePull) (string, error) {
	remote, known := r.remote[normalize(pull.Image)]
	if !known {
		remote.Image = Image{Ref: pull.Image, Size: 1 << 20}
	}
	var id string
	end := r.log.begin(OpPullImage, pull.Image)
	err := pause(ctx, remote.Takes)
	if err == nil {
		err = remote.refuse(pull.Auth)
	}
	if err == nil {
		err = r.delayed(ctx, OpPullImage, func() error {
			id = r.store(remote.Image).seen.ID
			return nil
		})
	}
	if err != nil {
		err = fmt.Errorf("pull image %q: %w", pull.Image, err)
	}
	end(err)
	return id, err
}

// refuse returns why a pull with these credentials fails.
func (i *RemoteImage) refuse(auth *podmill.ImageAuth) error {
	if i.Err != nil || i.Username == "" {
		return i.Err
	}
	if auth == nil {
		return errors.New("authorization failed: no basic auth credentials")
	}
	pair := auth.Username + ":" + auth.Password
	if decoded, err := base64.StdEncoding.DecodeString(auth.Auth); auth.Username == "" && err == nil {
		pair = string(decoded)
	}
	if pair != i.Username+":"+i.Password {
		return errors.New("authorization failed: 401 Unauthorized")
	}
	return nil
}

// InspectImage implements [podmill.ImageStore].
func (r *Runtime) InspectImage(ctx context.Context, image string) (*podmill.Image, error) {
	var seen podmill.Image
	err := r.call(ctx, OpInspectImage, image, func() error {
		s, err := r.findImage(image)
		if err == nil {
			seen = cloneImage(s.seen)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &seen, nil
}

// ListImages implements [podmill.ImageStore]. Images are ordered by ID.
func (r *Runtime) ListImages(ctx context.Context) ([]podmill.Image, error) {
	var images []podmill.Image
	err := r.call(ctx, OpListImages, "", func() error {
		for name, s := range r.images {
			if name == s.seen.ID {
				images = append(images, cloneImage(s.seen))
			}
		}
		return nil
	})
	slices.SortFunc(images, func(a, b podmill.Image) int { return strings.Compare(a.ID, b.ID) })
	return images, err
}

// RemoveImage implements [podmill.ImageStore].
func (r *Runtime) RemoveImage(ctx context.Context, image string) error {
	return r.call(ctx, OpRemoveImage, image, func() error {
		if s := r.images[normalize(image)]; s != nil {
			maps.DeleteFunc(r.images, func(_ string, other *storedImage) bool { return other == s })
		}
		return nil
	})
}

func (r *Runtime) findImage(image string) (*storedImage, error) {
	if s := r.images[normalize(image)]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("image %q: %w", image, podmill.ErrNotFound)
}

// store makes an image local. A name that another image had moves to it, as a tag does.
func (r *Runtime) store(image Image) *storedImage {
	name := normalize(image.Ref)
	id := "sha256:" + digest(fmt.Sprintf("%+v", image))
	if s := r.images[id]; s != nil && r.images[name] == s {
		return s
	}
	if old := r.images[name]; old != nil {
		old.seen.RepoTags = slices.DeleteFunc(old.seen.RepoTags, func(tag string) bool { return tag == name })
	}
	s := &storedImage{Image: image, seen: podmill.Image{ID: id, Size: image.Size}}
	repo, _, byDigest := strings.Cut(name, "@")
	if byDigest {
		s.seen.RepoDigests = []string{name}
	} else {
		repo = repo[:strings.LastIndex(repo, ":")]
		s.seen.RepoTags = []string{name}
		s.seen.RepoDigests = []string{repo + "@sha256:" + digest("manifest "+id)}
	}
	if uid, err := strconv.ParseInt(image.User, 10, 64); err == nil {
		s.seen.UID = &uid
	} else {
		s.seen.Username = image.User
	}
	for _, key := range []string{id, name, s.seen.RepoDigests[0]} {
		r.images[key] = s
	}
	return s
}

func cloneImage(i podmill.Image) podmill.Image {
	i.RepoTags, i.RepoDigests = slices.Clone(i.RepoTags), slices.Clone(i.RepoDigests)
	return i
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// normalize completes a reference as container runtimes do.
func normalize(ref string) string {
	if strings.HasPrefix(ref, "sha256:") {
		return ref
	}
	host, _, slash := strings.Cut(ref, "/")
	switch {
	case !slash:
		ref = "docker.io/library/" + ref
	case !strings.ContainsAny(host, ".:") && host != "localhost":
		ref = "docker.io/" + ref
	}
	if !strings.Contains(ref, "@") && !strings.Contains(ref[strings.LastIndex(ref, "/"):], ":") {
		ref += ":latest"
	}
	return ref
}
