package cri

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podmill/podmill"
)

// A listing is asked for again and again, holds every label and annotation of the node, and nearly always says what it said before. It is
// read off the wire here, without protobuf's message in between: what is not an item's is skipped, and what the snapshot holds already
// is compared and kept. Tests hold this reader to what protobuf's own reads.

// Tags are numbers of fields, with how the field is written.
const (
	varint    = uint64(protowire.VarintType)
	delimited = uint64(protowire.BytesType)

	tagItems = 1<<3 | delimited // of a listing
	tagID    = 1<<3 | delimited // of a sandbox, and of a container
	tagName  = 1<<3 | delimited // of the metadata of a container
	tagKey   = 1<<3 | delimited // of an entry of a map
	tagValue = 2<<3 | delimited
)

// layout is where sandboxes and containers differ.
type layout struct {
	metadata, state, labels uint64
	attempt                 uint64 // in the metadata
	named                   bool   // by the metadata; a sandbox's name is the pod's
	stateOf                 func(int32) podmill.State
}

func sandboxLayout() layout {
	return layout{
		metadata: 2<<3 | delimited, state: 3<<3 | varint, labels: 5<<3 | delimited, attempt: 4<<3 | varint,
		stateOf: func(s int32) podmill.State { return sandboxState(runtimeapi.PodSandboxState(s)) },
	}
}

func containerLayout() layout {
	return layout{
		metadata: 3<<3 | delimited, state: 6<<3 | varint, labels: 8<<3 | delimited, attempt: 2<<3 | varint, named: true,
		stateOf: func(s int32) podmill.State { return containerState(runtimeapi.ContainerState(s)) },
	}
}

// raw is an item as it lies in a message, which is gone when the reading ends.
type raw struct {
	id, container, uid, namespace, name []byte
	attempt                             uint32
	state                               int32
}

// readItems calls add with each item of a listing. The item is add's until it returns.
func readItems(message []byte, l layout, add func(*raw, layout)) error {
	var item raw // one for all
	f := field{rest: message}
	for f.next() {
		if f.tag != tagItems {
			continue
		}
		item = raw{}
		if err := item.read(f.bytes, l); err != nil {
			return err
		}
		add(&item, l)
	}
	return f.err
}

func (r *raw) read(message []byte, l layout) error {
	f := field{rest: message}
	for f.err == nil && f.next() {
		switch f.tag {
		case tagID:
			r.id = f.bytes
		case l.state:
			r.state = int32(f.number) //nolint:gosec // as protobuf has it
		case l.metadata:
			f.err = r.readMetadata(f.bytes, l)
		case l.labels:
			f.err = r.readLabel(f.bytes)
		}
	}
	return f.err
}

func (r *raw) readMetadata(message []byte, l layout) error {
	f := field{rest: message}
	for f.next() {
		switch {
		case f.tag == l.attempt:
			r.attempt = uint32(f.number) //nolint:gosec // as protobuf has it
		case f.tag == tagName && l.named:
			r.container = f.bytes
		}
	}
	return f.err
}

func (r *raw) readLabel(entry []byte) error {
	var key, value []byte
	f := field{rest: entry}
	for f.next() {
		switch f.tag {
		case tagKey:
			key = f.bytes
		case tagValue:
			value = f.bytes
		}
	}
	switch string(key) {
	case podmill.LabelPodUID:
		r.uid = value
	case podmill.LabelPodNamespace:
		r.namespace = value
	case podmill.LabelPodName:
		r.name = value
	}
	return f.err
}

// field is one field of a message after another.
type field struct {
	rest   []byte
	tag    uint64
	number uint64 // of a varint
	bytes  []byte // of what is delimited
	err    error
}

// next reads a field, and returns false at the end of the message and where it is malformed.
func (f *field) next() bool {
	if len(f.rest) == 0 {
		return false
	}
	number, kind, n := protowire.ConsumeTag(f.rest)
	if n >= 0 {
		f.rest, f.tag = f.rest[n:], protowire.EncodeTag(number, kind)
		switch kind {
		case protowire.VarintType:
			f.number, n = protowire.ConsumeVarint(f.rest)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(f.rest)
		default:
			n = protowire.ConsumeFieldValue(number, kind, f.rest)
		}
	}
	if n < 0 {
		f.err = protowire.ParseError(n)
		return false
	}
	f.rest = f.rest[n:]
	return true
}

// reading is a reply that is read by a func. The bytes are gone when it returns.
type reading func(message []byte) error

// readingCodec is gRPC's, but for replies that are a reading.
type readingCodec struct{ encoding.CodecV2 }

func newReadingCodec() readingCodec { return readingCodec{encoding.GetCodecV2(proto.Name)} }

// Unmarshal hands a reply over as it is.
func (readingCodec) Unmarshal(data mem.BufferSlice, reply any) error {
	message := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer message.Free()
	return reply.(reading)(message.ReadOnlyData())
}
