package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// result is all that was taken of one thing.
type result struct {
	What    string    `json:"what"`
	Subject string    `json:"subject"`
	Unit    string    `json:"unit"`
	Values  []float64 `json:"values"`
	Busy    []float64 `json:"busy"` // the share of the machine that others used before each value
	Median  float64   `json:"median"`
	Low     float64   `json:"low"` // quartiles
	High    float64   `json:"high"`
	Ratio   float64   `json:"ratio,omitempty"` // of the median to that of the raw calls
}

type results struct {
	Environment map[string]string `json:"environment"`
	Results     []*result         `json:"results"`
}

func (r *results) find(what, subject string) *result {
	for _, one := range r.Results {
		if one.What == what && one.Subject == subject {
			return one
		}
	}
	return nil
}

func (r *results) add(what, subject, unit string, value, busy float64) {
	one := r.find(what, subject)
	if one == nil {
		one = &result{What: what, Subject: subject, Unit: unit}
		r.Results = append(r.Results, one)
	}
	one.Values, one.Busy = append(one.Values, value), append(one.Busy, busy)
	sorted := slices.Sorted(slices.Values(one.Values))
	at := func(q float64) float64 { // between two values
		i := q * float64(len(sorted)-1)
		low := sorted[int(i)]
		return low + (i-float64(int(i)))*(sorted[min(int(i)+1, len(sorted)-1)]-low)
	}
	one.Low, one.Median, one.High = at(.25), at(.5), at(.75)
	fmt.Fprintf(os.Stderr, "%s  %-12s %-30s %8.2f %s  (others: %.0f %%)\n", time.Now().Format(time.TimeOnly), subject, what, value, unit, 100*busy)
}

// compare sets all beside the raw calls of the same run.
func (r *results) compare() {
	for _, one := range r.Results {
		if base := r.find(one.What, "raw"); base != nil && base.Median > 0 {
			one.Ratio = one.Median / base.Median
		}
	}
}

// order lists what was measured and whom, each once, as they came.
func (r *results) order() (whats, subjects []string) {
	for _, one := range r.Results {
		if !slices.Contains(whats, one.What) {
			whats = append(whats, one.What)
		}
		if !slices.Contains(subjects, one.Subject) {
			subjects = append(subjects, one.Subject)
		}
	}
	slices.Sort(subjects)
	slices.Reverse(subjects) // raw, minikubelet, kubelet
	return whats, subjects
}

// table prints medians, quartiles, and ratios to the raw calls.
func (r *results) table(out io.Writer) {
	for _, key := range slices.Sorted(func(yield func(string) bool) {
		for key := range r.Environment {
			if !yield(key) {
				return
			}
		}
	}) {
		fmt.Fprintf(out, "%s: %s\n", key, r.Environment[key])
	}
	whats, subjects := r.order()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n\tunit\tn\t%s\n", strings.Join(subjects, "\t"))
	for _, what := range whats {
		cells, unit, n := make([]string, len(subjects)), "", 0
		for i, subject := range subjects {
			cells[i] = "-"
			if one := r.find(what, subject); one != nil {
				unit, n = one.Unit, len(one.Values)
				cells[i] = fmt.Sprintf("%s (%s..%s)", figure(one.Median), figure(one.Low), figure(one.High))
				if one.Ratio > 0 && subject != "raw" {
					cells[i] += fmt.Sprintf(" x%.2f", one.Ratio)
				}
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", what, unit, n, strings.Join(cells, "\t"))
	}
	_ = w.Flush()
}

// write writes the results as JSON, and a plot of each unit.
func (r *results) write(dir string) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "results.json"), append(data, '\n'), 0o644); err != nil {
		return err
	}
	for name, unit := range map[string]string{"time.svg": "ms", "cpu.svg": "% of a core", "memory.svg": "MiB", "calls.svg": "/s"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(r.plot(unit)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// figure writes a number to three digits and more, without an exponent.
func figure(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// most is the largest figure of a unit. Times have a scale for each of what was done: that of one pod is nothing beside that of a hundred.
func (r *results) most(what, unit string) float64 {
	most := 1e-9
	for _, one := range r.Results {
		if one.Unit == unit && (unit != "ms" || one.What == what) {
			most = max(most, one.High)
		}
	}
	return most
}

// plot draws the medians of one unit as bars, each with its quartiles as a line.
func (r *results) plot(unit string) string {
	const left, width, bar = 230, 420, 14
	const other = "#c3ccd5"
	colors := map[string]string{"raw": "#9aa5b1", "minikubelet": "#2f7ed8", "kubelet": "#c9722b"}
	whats, subjects := r.order()
	var body strings.Builder
	y := 30
	for _, what := range whats {
		top, most := y, r.most(what, unit)
		for _, subject := range subjects {
			one := r.find(what, subject)
			if one == nil || one.Unit != unit {
				continue
			}
			x := func(v float64) float64 { return left + width*v/most }
			middle := y + bar/2
			fmt.Fprintf(&body, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`, left, y, x(one.Median)-left, bar-2, cmp.Or(colors[subject], other))
			fmt.Fprintf(&body, `<path d="M%.1f %dH%.1f" stroke="#222"/>`, x(one.Low), middle-1, x(one.High))
			fmt.Fprintf(&body, `<text x="%.1f" y="%d">%s %s</text>`+"\n", x(max(one.Median, one.High))+5, middle+4, figure(one.Median), subject)
			y += bar
		}
		if y > top {
			fmt.Fprintf(&body, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", left-8, (top+y)/2+4, what)
			y += bar / 2
		}
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">
<rect width="100%%" height="100%%" fill="#fff"/><text x="%d" y="18" font-weight="bold">%s, median and quartiles</text>
%s</svg>
`, left+width+150, y+10, left, unit, body.String())
}

// environment says where the figures come from.
func environment(version *runtimeapi.VersionResponse, bench string) map[string]string {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	load, _ := os.ReadFile("/proc/loadavg")
	cgroups := "v1"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		cgroups = "v2"
	}
	return map[string]string{
		"kernel": strings.TrimSpace(string(kernel)), "cgroup": cgroups, "cores": fmt.Sprint(runtime.NumCPU()), "go": runtime.Version(),
		"runtime": version.RuntimeName + " " + version.RuntimeVersion, "load at the start": strings.TrimSpace(string(load)),
		"date": time.Now().UTC().Format(time.RFC3339), "bench": bench,
	}
}
