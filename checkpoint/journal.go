package checkpoint

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/podmill/podmill/internal/atomicfile"
)

// journal keeps values under keys in a file: a line for each change, the newest line of a key holds. It is appended to, and written anew when most of it
// is stale or something stale in it must not stay.
type journal struct {
	path   string
	secret func(key string) bool // whose old values must not stay in the file

	mu      sync.Mutex
	live    map[string][]byte // the line of each key, with its end
	bytes   int               // of all of them
	changed map[string]bool   // keys of which the file does not know the line yet
	wake    chan struct{}     // holds one token when something has changed

	writing sync.Mutex // guards what follows, and the file
	file    *os.File   // nil: write it anew
	size    int64
}

// slack is how many stale bytes a file may have, beside as many as there are live ones.
const slack = 256 << 10

// entry is a line. Without a value the key is gone.
type entry struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value,omitempty"`
}

// openJournal reads a journal. What cannot be read of it is set aside, under the name with .damaged, and named in damage.
func openJournal(path string, secret func(string) bool) (j *journal, damage, err error) {
	j = &journal{path: path, secret: secret, live: map[string][]byte{}, changed: map[string]bool{}, wake: make(chan struct{}, 1)}
	file, err := os.Open(path) //nolint:gosec // the composer's choice
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	damaged, damage, err := j.read(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", path, err)
	}
	if damage != nil {
		damage = errors.Join(damage, os.WriteFile(path+".damaged", damaged, 0o600))
	}
	for key := range j.live { // the first write is of all, into a new file: the end of this one may be torn
		j.changed[key] = true
	}
	return j, damage, nil
}

// read takes in the lines of a file, and returns those that it cannot.
func (j *journal) read(from io.Reader) (damaged []byte, damage, err error) {
	reader := bufio.NewReader(from)
	for n := 1; ; n++ {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return damaged, damage, nil // a line without an end was being written when its writer died
		}
		if err != nil {
			return nil, nil, err
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil || e.Key == "" {
			damage = errors.Join(damage, fmt.Errorf("line %d of %s is not what was written", n, j.path))
			damaged = append(damaged, line...)
			continue
		}
		if e.Value == nil {
			line = nil
		}
		j.set(e.Key, line)
	}
}

// set makes a line that of a key; nil takes the key away.
func (j *journal) set(key string, line []byte) {
	j.bytes += len(line) - len(j.live[key])
	if line == nil {
		delete(j.live, key)
	} else {
		j.live[key] = line
	}
}

// put keeps a value. It is on disk after the next commit.
func (j *journal) put(key string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode %s: %w", key, err)
	}
	line, err := json.Marshal(entry{Key: key, Value: data})
	if err != nil {
		return fmt.Errorf("encode %s: %w", key, err)
	}
	j.change(key, append(line, '\n'))
	return nil
}

// drop forgets the values of the keys that go.
func (j *journal) drop(goes func(key string) bool) {
	for _, key := range j.keys("") {
		if goes(key) {
			j.change(key, nil)
		}
	}
}

func (j *journal) change(key string, line []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if bytes.Equal(j.live[key], line) {
		return
	}
	j.set(key, line)
	j.changed[key] = true
	j.poke()
}

// poke lets who writes know that there is something to write.
func (j *journal) poke() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// get reads the value of a key into a pointer, and reports whether there is one.
func (j *journal) get(key string, into any) bool {
	j.mu.Lock()
	line, ok := j.live[key]
	j.mu.Unlock()
	var e entry
	return ok && json.Unmarshal(line, &e) == nil && json.Unmarshal(e.Value, into) == nil
}

// keys returns the keys that begin with prefix, in order.
func (j *journal) keys(prefix string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(j.live)), func(key string) bool { return !strings.HasPrefix(key, prefix) })
}

// commit brings to disk what has changed, and returns how many values and bytes that were. Those who come meanwhile wait, and find that theirs is there. The last one
// closes the file; one after it begins a new one.
func (j *journal) commit(last bool) (values, size int, err error) {
	j.writing.Lock()
	defer j.writing.Unlock()
	if last {
		defer func() { err = errors.Join(err, j.close()) }()
	}
	j.mu.Lock()
	changed := j.changed
	j.changed = map[string]bool{}
	anew := j.file == nil
	for key := range changed {
		anew = anew || j.secret(key)
	}
	keys := slices.Sorted(maps.Keys(changed))
	if anew = anew || j.size > int64(2*j.bytes+slack); anew {
		keys = slices.Sorted(maps.Keys(j.live))
	}
	var lines []byte
	for _, key := range keys {
		lines = append(lines, j.lineOf(key)...)
	}
	j.mu.Unlock()
	switch {
	case len(changed) == 0:
		return 0, 0, nil
	case anew:
		err = j.replace(lines)
	default:
		err = j.append(lines)
	}
	if err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		maps.Copy(j.changed, changed)
		return 0, 0, fmt.Errorf("write %s: %w", j.path, err)
	}
	return len(keys), len(lines), nil
}

// lineOf returns the line of a key, or that it is gone.
func (j *journal) lineOf(key string) []byte {
	if line, ok := j.live[key]; ok {
		return line
	}
	line, _ := json.Marshal(entry{Key: key}) // a string can be encoded
	return append(line, '\n')
}

// append writes lines behind the others. After an error nobody knows what is in the file, so the next write is a new one.
func (j *journal) append(lines []byte) error {
	_, err := j.file.WriteAt(lines, j.size)
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		return errors.Join(err, j.close())
	}
	j.size += int64(len(lines))
	return nil
}

// replace puts a file with lines in the place of the file, in one step.
func (j *journal) replace(lines []byte) error {
	file, err := os.OpenFile(j.path+".new", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(lines)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(file.Name(), j.path)
	}
	if err != nil {
		return errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	err = j.close()
	j.file, j.size = file, int64(len(lines))
	return errors.Join(err, atomicfile.SyncDirectory(filepath.Dir(j.path)))
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}
