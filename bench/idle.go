package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// atRest takes what an agent uses while nothing happens, at each number of pods, and in the end how it comes back from a kill.
func (b *bench) atRest(ctx context.Context, p *process, counts []int) error {
	if err := p.up(ctx); err != nil {
		return err
	}
	defer p.down()
	most := counts[len(counts)-1]
	began := b.tap.mark()
	have := 0
	for _, n := range counts {
		more := names("idle", have, n)
		if err := p.start(ctx, more, false); err != nil {
			return err
		}
		if _, err := b.tap.each(ctx, began, "StartContainer", more); err != nil {
			return err
		}
		if _, err := p.ready(ctx, n); err != nil {
			return err
		}
		have = n
		if err := b.rest(ctx, p, n); err != nil {
			return err
		}
	}
	if err := b.comeBack(ctx, p, most); err != nil {
		return err
	}
	mark := b.tap.mark()
	if err := p.remove(ctx, names("idle", 0, most)); err != nil {
		return err
	}
	if _, err := b.tap.each(ctx, mark, "StopPodSandbox", names("idle", 0, most)); err != nil {
		return err
	}
	return b.gone(ctx, p, mark, names("idle", 0, most))
}

func (b *bench) rest(ctx context.Context, p *process, n int) error {
	time.Sleep(5 * time.Second)
	busy := b.quiet(ctx)
	mark, began, before := b.tap.mark(), time.Now(), cpuOf(p.command.Process.Pid)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(b.idle):
	}
	took := time.Since(began)
	at := fmt.Sprintf(", %d pods", n)
	b.results.add("idle CPU"+at, p.as, "% of a core", 100*(cpuOf(p.command.Process.Pid)-before).Seconds()/took.Seconds(), busy)
	b.results.add("idle RSS"+at, p.as, "MiB", rssOf(p.command.Process.Pid), busy)
	calls := b.tap.since(mark)
	b.results.add("idle calls"+at, p.as, "/s", float64(len(calls))/took.Seconds(), busy)
	looks := 0
	for i := range calls {
		if calls[i].pod != "" {
			looks++
		}
	}
	b.results.add(atRestName(n), p.as, "calls", float64(looks), busy)
	return nil
}

// comeBack kills the agent and takes the time from its next start until it says of all pods that they are ready.
func (b *bench) comeBack(ctx context.Context, p *process, n int) error {
	for range 3 {
		busy := b.quiet(ctx)
		p.signal(syscall.SIGKILL)
		mark, began := b.tap.mark(), time.Now()
		if err := p.up(ctx); err != nil {
			return err
		}
		known, err := p.ready(ctx, n)
		if err != nil {
			return err
		}
		b.results.add(fmt.Sprintf("agent restart, %d pods", n), p.as, "ms", ms(known.Sub(began)), busy)
		time.Sleep(3 * time.Second)
		for _, c := range b.tap.since(mark) {
			if c.read() != nil && p.as == minikubelet {
				return fmt.Errorf("a restart of %s made the call %s for pod %s", p.as, c.method, c.pod)
			}
		}
	}
	return nil
}

// cpuOf is the time that a process has used.
func cpuOf(pid int) (used time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, thread := range threads {
		text, _ := os.ReadFile(thread)
		ran, _, _ := strings.Cut(string(text), " ")
		n, _ := strconv.ParseInt(ran, 10, 64)
		used += time.Duration(n)
	}
	return used
}

func rssOf(pid int) float64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	fields := strings.Fields(after)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.Atoi(fields[0])
	return float64(kib) / 1024
}

// busyness is the share of the machine that is in use, over a second.
func busyness() float64 {
	read := func() (busy, all float64) {
		stat, _ := os.ReadFile("/proc/stat")
		line, _, _ := strings.Cut(string(stat), "\n")
		for i, field := range strings.Fields(line)[1:] {
			n, _ := strconv.ParseFloat(field, 64)
			all += n
			if i != 3 && i != 4 { // idle, and waiting for a disk
				busy += n
			}
		}
		return busy, all
	}
	busy, all := read()
	time.Sleep(time.Second)
	busy2, all2 := read()
	return (busy2 - busy) / max(1, all2-all)
}

// quietWindow waits until little else happens on the machine, for a while at most, and returns how much does.
func quietWindow(patience time.Duration) func(context.Context) float64 {
	return func(ctx context.Context) float64 {
		over := time.Now().Add(patience)
		for {
			busy := busyness()
			if busy < 0.15 || time.Now().After(over) || ctx.Err() != nil {
				return busy
			}
		}
	}
}
