package node

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Signal names something that a node may run out of, as the kubelet's --eviction-hard does.
type Signal string

// The signals. What is below nodefs is the file system of the pods' directories, what is below imagefs that of the images.
const (
	MemoryAvailable   Signal = "memory.available"
	NodefsAvailable   Signal = "nodefs.available"
	NodefsInodesFree  Signal = "nodefs.inodesFree"
	ImagefsAvailable  Signal = "imagefs.available"
	ImagefsInodesFree Signal = "imagefs.inodesFree"
	PIDAvailable      Signal = "pid.available"
)

// signals returns what condition each signal is about.
func signals() map[Signal]corev1.NodeConditionType {
	return map[Signal]corev1.NodeConditionType{
		MemoryAvailable: corev1.NodeMemoryPressure,
		NodefsAvailable: corev1.NodeDiskPressure, NodefsInodesFree: corev1.NodeDiskPressure,
		ImagefsAvailable: corev1.NodeDiskPressure, ImagefsInodesFree: corev1.NodeDiskPressure,
		PIDAvailable: corev1.NodePIDPressure,
	}
}

// Reading is how much there is of what a signal names: bytes, inodes or processes.
type Reading struct {
	Available int64
	Capacity  int64
}

// Threshold is the least that has to be available: a number or, where Percent is not zero, a part of the capacity.
type Threshold struct {
	Value   int64
	Percent float64 // of the capacity, 0 to 100
}

// met reports whether less is available than has to be.
func (t Threshold) met(r Reading) bool {
	least := t.Value
	if t.Percent > 0 {
		least = int64(float64(r.Capacity) * t.Percent / 100)
	}
	return r.Available < least
}

// Thresholds are the thresholds of signals. A signal without one puts a node under no pressure.
type Thresholds map[Signal]Threshold

// DefaultThresholds are the kubelet's on Linux.
func DefaultThresholds() Thresholds {
	return Thresholds{
		MemoryAvailable: {Value: 100 << 20}, NodefsAvailable: {Percent: 10}, NodefsInodesFree: {Percent: 5},
		ImagefsAvailable: {Percent: 15}, ImagefsInodesFree: {Percent: 5},
	}
}

// ParseThresholds reads what the kubelet's --eviction-hard says, such as memory.available<100Mi,nodefs.available<10%. As there, 0% and 100% are no threshold.
func ParseThresholds(text string) (Thresholds, error) {
	all, known := Thresholds{}, signals()
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, least, ok := strings.Cut(part, "<")
		signal := Signal(strings.TrimSpace(name))
		if _, twice := all[signal]; !ok || known[signal] == "" || twice {
			return nil, fmt.Errorf("threshold %q: write each of %v at most once, as in memory.available<100Mi", part, slices.Sorted(maps.Keys(known)))
		}
		threshold, err := parseThreshold(strings.TrimSpace(least))
		if err != nil {
			return nil, fmt.Errorf("threshold %q: %w", part, err)
		}
		all[signal] = threshold
	}
	maps.DeleteFunc(all, func(_ Signal, t Threshold) bool { return t.Value == 0 && (t.Percent == 0 || t.Percent == 100) })
	return all, nil
}

func parseThreshold(text string) (Threshold, error) {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		value, err := strconv.ParseFloat(percent, 64)
		if err != nil || !(value >= 0 && value <= 100) {
			return Threshold{}, fmt.Errorf("%s is not between 0%% and 100%%", text)
		}
		return Threshold{Percent: value}, nil
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Sign() <= 0 {
		return Threshold{}, fmt.Errorf("%q is no quantity greater than zero, such as 100Mi", text)
	}
	return Threshold{Value: quantity.Value()}, nil
}

// Pressures makes the conditions MemoryPressure, DiskPressure and PIDPressure of what was measured. They are not safe for concurrent use.
//
// A condition turns True at once, and back when its thresholds have not been met for the transition period: one that flips has the scheduler send pods and
// keep them away in turns.
type Pressures struct {
	thresholds Thresholds
	transition time.Duration
	met        map[corev1.NodeConditionType]time.Time // when a threshold was met last
}

// NewPressures returns the conditions of a node by thresholds. The kubelet's transition period is 5 min.
func NewPressures(thresholds Thresholds, transition time.Duration) *Pressures {
	return &Pressures{thresholds: thresholds, transition: transition, met: map[corev1.NodeConditionType]time.Time{}}
}

// Conditions returns the three conditions. What was not measured puts the node under no pressure.
func (p *Pressures) Conditions(readings map[Signal]Reading, now time.Time) []corev1.NodeCondition {
	about := signals()
	for signal, threshold := range p.thresholds {
		if reading, measured := readings[signal]; measured && threshold.met(reading) {
			p.met[about[signal]] = now
		}
	}
	var all []corev1.NodeCondition
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		last, ever := p.met[kind]
		all = append(all, Pressure(kind, ever && (now.Equal(last) || now.Sub(last) < p.transition)))
	}
	return all
}
