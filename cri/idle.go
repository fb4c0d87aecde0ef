package cri

import (
	"bytes"
	"math"
	"os"
	"runtime"
	"strconv"
	"time"
)

// idleness tells how much of the processors was not used.
type idleness struct {
	at          time.Time
	idle, total uint64 // ticks of all processors
}

// processors returns how many had nothing to do since it was asked last, which has to be a moment ago: of longer times an average says nothing.
func (i *idleness) processors() int {
	before := *i
	i.at = time.Now()
	stat, _ := os.ReadFile("/proc/stat")
	i.idle, i.total, _ = ticks(stat)
	if i.at.Sub(before.at) > 5*idleLook || i.total <= before.total || i.idle < before.idle {
		return 0
	}
	share := float64(i.idle-before.idle) / float64(i.total-before.total)
	return int(math.Round(share * float64(runtime.NumCPU())))
}

// ticks reads the sum of all processors in /proc/stat, see proc_stat(5). Who waits for a disk has not nothing to do.
func ticks(stat []byte) (idle, total uint64, ok bool) {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 5 || string(fields[0]) != "cpu" {
		return 0, 0, false
	}
	for i, field := range fields[1:min(len(fields), 9)] { // the time of guests, which follows, is in the first two
		n, err := strconv.ParseUint(string(field), 10, 64)
		if err != nil {
			return 0, 0, false
		}
		total += n
		if i == 3 {
			idle = n
		}
	}
	return idle, total, true
}

// newTurns bounds the calls under way to n. Where it cannot be known whether processors are idle, nothing is bounded.
func newTurns(n int) *turns {
	stat, _ := os.ReadFile("/proc/stat")
	if _, _, ok := ticks(stat); !ok || n == 0 {
		return nil
	}
	i := &idleness{}
	return &turns{idle: i.processors, free: n}
}
