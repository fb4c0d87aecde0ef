package podmilltest

import "time"

// Option changes how a [Runtime] is made.
type Option func(*options)

type options struct {
	latency map[Op]time.Duration
	scripts map[string][]string
	local   []Image
	remote  map[string]RemoteImage
	quiet   bool
}

// WithLatency makes an operation take d. The operation takes effect in the middle of it, so that a call that is cancelled may or may
// not have done its work.
func WithLatency(op Op, d time.Duration) Option {
	return func(o *options) {
		if o.latency == nil {
			o.latency = map[Op]time.Duration{}
		}
		o.latency[op] = d
	}
}

// WithScript says what containers of a name run, whatever their image and command. The name is that of the container or, to
// name one pod's, namespace/pod/container. The first attempt runs the first script, and so on; the last script is for all that
// follow. See the package documentation for what a script may contain.
func WithScript(container string, attempts ...string) Option {
	return func(o *options) {
		if o.scripts == nil {
			o.scripts = map[string][]string{}
		}
		o.scripts[container] = attempts
	}
}

// WithImages makes images local from the start, each with what containers of it run.
func WithImages(images ...Image) Option {
	return func(o *options) { o.local = append(o.local, images...) }
}

// WithRegistry says what pulling some images is like. Any other image is there to be pulled at once.
func WithRegistry(images ...RemoteImage) Option {
	return func(o *options) {
		if o.remote == nil {
			o.remote = map[string]RemoteImage{}
		}
		for _, image := range images {
			o.remote[normalize(image.Ref)] = image
		}
	}
}

// WithoutEvents makes a runtime that has no event stream, as containerd 1.6.
func WithoutEvents() Option {
	return func(o *options) { o.quiet = true }
}
