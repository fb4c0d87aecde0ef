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
	stat        *os.File  // kept open: in a burst, opening it again and again costs six times as much as reading its first line
	line        [256]byte // has room for that
	at          time.Time
	idle, total uint64 // ticks of all processors
}

// processors returns how many had nothing to do since it was asked last, which has to be a moment ago: of longer times an average says nothing.
func (i *idleness) processors() int {
	at, idle, total := i.at, i.idle, i.total
	if !i.look() || i.at.Sub(at) > 5*idleLook || i.total <= total || i.idle < idle {
		return 0
	}
	share := float64(i.idle-idle) / float64(i.total-total)
	return int(math.Round(share * float64(runtime.NumCPU())))
}

func (i *idleness) look() (ok bool) {
	i.at = time.Now()
	n, _ := i.stat.ReadAt(i.line[:], 0)
	i.idle, i.total, ok = ticks(i.line[:n])
	return ok
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
	if n == 0 {
		return nil
	}
	stat, err := os.Open("/proc/stat")
	if err != nil {
		return nil
	}
	i := &idleness{stat: stat}
	if !i.look() {
		_ = stat.Close()
		return nil
	}
	return &turns{idle: i.processors, stat: stat, free: n}
}
