package syncpod_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/syncpod"
)

// size asks for CPU and memory, and limits both to twice that.
func size(cpu, memory string) podmilltest.ContainerOption {
	return func(c *corev1.Container) {
		twice := func(s string) resource.Quantity {
			q := resource.MustParse(s)
			q.Add(q)
			return q
		}
		c.Resources = corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)},
			Limits:   corev1.ResourceList{"cpu": twice(cpu), "memory": twice(memory)},
		}
	}
}

// resized is the next version of a pod, with other resources of a container.
func resized(pod *corev1.Pod, container, cpu, memory string) *corev1.Pod {
	return podmilltest.Edit(pod, func(pod *corev1.Pod) {
		pod.Generation++
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				if list[i].Name == container {
					size(cpu, memory)(&list[i])
				}
			}
		}
	})
}

// groups notes what a pod's cgroup is to hold, beside what the runtime does.
type groups struct{ r *rig }

func (g groups) EnsureCgroup(_ context.Context, pod *corev1.Pod) (string, error) {
	limit := resource.Quantity{}
	for i := range pod.Spec.Containers {
		limit.Add(*pod.Spec.Containers[i].Resources.Limits.Memory())
	}
	g.r.rt.Log().Note("cgroup memory=%s", limit.String())
	return "", nil
}
func (groups) RemoveCgroup(context.Context, types.UID) error { return nil }

// story returns what was done since the log was that long, without times and what starts a pod.
func (r *rig) since(n int) (story []string, length int) {
	entries := r.rt.Log().Entries()
	for _, e := range entries[n:] {
		_, line, _ := strings.Cut(e.String(), " ")
		for _, about := range []string{"ResizeContainer", "cgroup", "StopContainer", "CreateContainer", "event", "{"} {
			if strings.HasPrefix(line, about) && !strings.Contains(line, "Pulled") && !strings.Contains(line, "Created") && !strings.Contains(line, "Container started") {
				story = append(story, line)
			}
		}
	}
	return story, len(entries)
}

func (r *rig) sync(pod *corev1.Pod) error {
	r.t.Helper()
	_, err := r.SyncPod(r.t.Context(), pod)
	return err
}

func (r *rig) mustSync(pod *corev1.Pod) {
	r.t.Helper()
	if err := r.sync(pod); err != nil {
		r.t.Fatalf("%v\n%s", err, r.rt.Log())
	}
}

// holds returns what a container has in the runtime, and which instance it is.
func (r *rig) holds(pod *corev1.Pod, container string) string {
	r.t.Helper()
	seen, err := r.rt.InspectPod(r.t.Context(), pod.UID)
	if err != nil {
		r.t.Fatal(err)
	}
	c := seen.Container(container)
	return fmt.Sprintf("#%d %d..%d %dMi", c.Attempt, c.Resources.CPURequest, c.Resources.CPULimit, c.Resources.MemoryLimit>>20)
}

func (r *rig) want(what, got, want string) {
	r.t.Helper()
	if got != want {
		r.t.Errorf("%s: %s, want %s\n%s", what, got, want, r.rt.Log())
	}
}

// The cgroup grows first and shrinks last, and nothing is restarted. The pod says that it is under way, and then no more.
func TestAContainerIsResizedWhileItRuns(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.restart(syncpod.WithCgroups(groups{r}))
		pod := podmilltest.Pod("shop/cart", podmilltest.Sidecar("side", "img:1", size("10m", "8Mi")),
			podmilltest.Container("web", "img:1", size("100m", "32Mi")), podmilltest.Container("db", "img:1", size("100m", "32Mi")))
		r.mustSync(pod)
		_, n := r.since(0)
		if r.progress.Resize != nil {
			t.Errorf("a pod that was never resized says %+v", r.progress.Resize)
		}
		pod = resized(resized(pod, "web", "200m", "64Mi"), "db", "50m", "16Mi")
		r.mustSync(pod)
		story, n := r.since(n)
		order := slices.DeleteFunc(story, func(line string) bool { return strings.Contains(line, "Resize") && !strings.HasPrefix(line, "Resize") })
		want := []string{
			"cgroup memory=192Mi",
			"ResizeContainer shop/cart web#0 cpu=200m..400m memory=134217728", "ResizeContainer shop/cart db#0 cpu=50m..100m memory=33554432",
			"cgroup memory=160Mi",
		}
		if !slices.Equal(order, want) {
			t.Errorf("story:\n%s\nwant\n%s", strings.Join(order, "\n"), strings.Join(want, "\n"))
		}
		r.want("web", r.holds(pod, "web"), "#0 200..400 128Mi")
		r.want("db", r.holds(pod, "db"), "#0 50..100 32Mi")
		r.mustSync(resized(pod, "side", "20m", "16Mi"))
		r.want("the sidecar", r.holds(pod, "side"), "#0 20..40 32Mi")
		_, n = r.since(n)
		p := r.progress.Resize
		if web := p.Allocated["web"]; p.InProgress || p.Pending != "" || p.Error != "" || web.Requests.Cpu().String() != "200m" || len(p.Actual) != 3 {
			t.Errorf("at the end: %+v", p)
		}
		r.mustSync(resized(pod, "side", "20m", "16Mi"))
		if story, _ := r.since(n); len(story) > 0 {
			t.Errorf("it goes on: %q", story)
		}
		for _, told := range []string{"ResizeStarted", "ResizeCompleted"} {
			if got := strings.Count(r.rt.Log().String(), told); got != 2 {
				t.Errorf("%s was told %d times, want 2\n%s", told, got, r.rt.Log())
			}
		}
	})
}

// A policy that wants it starts the container anew, for the resource that it is about and no other.
func TestAResizePolicyRestartsItsContainer(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.restart(syncpod.WithCgroups(groups{r}))
		restart := func(c *corev1.Container) {
			c.ResizePolicy = []corev1.ContainerResizePolicy{
				{ResourceName: "cpu", RestartPolicy: corev1.NotRequired}, {ResourceName: "memory", RestartPolicy: corev1.RestartContainer},
			}
		}
		pod := podmilltest.Pod("shop/cart", podmilltest.Grace(time.Second), podmilltest.Container("web", "img:1", size("100m", "32Mi"), restart))
		r.mustSync(pod)
		pod = resized(pod, "web", "200m", "32Mi")
		r.mustSync(pod)
		r.want("more CPU", r.holds(pod, "web"), "#0 200..400 64Mi")
		_, n := r.since(0)
		pod = resized(pod, "web", "100m", "16Mi")
		r.mustSync(pod)
		r.want("less memory", r.holds(pod, "web"), "#1 100..200 32Mi")
		story, _ := r.since(n)
		cgroups := strings.Join(slices.DeleteFunc(story, func(line string) bool { return !strings.HasPrefix(line, "cgroup") }), ", ")
		if first, last := strings.HasPrefix(cgroups, "cgroup memory=64Mi"), strings.HasSuffix(cgroups, "cgroup memory=32Mi"); !first || !last {
			t.Errorf("the cgroup shrank before the old container had gone: %s", cgroups)
		}
		if !strings.Contains(r.rt.Log().String(), "Container web resize requires restart") || r.progress.Resize.InProgress {
			t.Errorf("%+v\n%s", r.progress.Resize, r.rt.Log())
		}
	})
}

// What there is no room for waits with what it has, restarts with that, and is given what it wants when there is room.
func TestAResizeWaitsForRoom(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		reason, message := corev1.PodReasonDeferred, "there is none"
		asked := ""
		r.opts = append(r.opts, syncpod.WithRoom(func(has, wants *corev1.Pod) (string, string) {
			asked = has.Spec.Containers[0].Resources.Requests.Cpu().String() + " " + wants.Spec.Containers[0].Resources.Requests.Cpu().String()
			return reason, message
		}))
		r.restart()
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", size("100m", "32Mi")))
		r.mustSync(pod)
		r.want("nothing is asked for a start", asked, "")
		pod = resized(pod, "web", "200m", "32Mi")
		for range 2 {
			r.mustSync(pod)
			r.want("asked", asked, "100m 200m")
			if p := r.progress.Resize; p == nil || p.Pending != reason || p.PendingMessage != message || p.InProgress {
				t.Errorf("%+v", p)
			}
			r.restart() // it is known by what the container was started with
		}
		r.rt.KillProcess(pod.UID, "web", 1)
		r.forget(pod.UID)
		r.mustSync(pod)
		r.want("started again", r.holds(pod, "web"), "#1 100..200 64Mi")
		reason, message = corev1.PodReasonInfeasible, "there never will be"
		r.mustSync(pod)
		reason, message = "", ""
		r.mustSync(pod)
		r.want("there is room", r.holds(pod, "web"), "#1 200..400 64Mi")
		for told, times := range map[string]int{"ResizeDeferred": 3, "ResizeInfeasible": 1} { // of two processes, one of them twice
			if got := strings.Count(r.rt.Log().String(), told); got != times {
				t.Errorf("%s was told %d times, want %d\n%s", told, got, times, r.rt.Log())
			}
		}
	})
}

// Whatever fails, and whenever the agent is killed, it ends right: with what was allocated, also where the spec has become another meanwhile.
func TestAResizeIsInterrupted(t *testing.T) {
	for name, effect := range map[string]podmilltest.Effect{
		"fails": podmilltest.Fail(errors.New("no")), "loses its reply": podmilltest.LoseReply(context.DeadlineExceeded),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				full := false
				r.opts = append(r.opts, syncpod.WithCgroups(groups{r}), syncpod.WithRoom(func(*corev1.Pod, *corev1.Pod) (string, string) {
					if full {
						return corev1.PodReasonDeferred, "full"
					}
					return "", ""
				}))
				r.restart()
				pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", size("100m", "32Mi")), podmilltest.Container("db", "img:1", size("100m", "32Mi")))
				r.mustSync(pod)
				r.faulty.Add(podmilltest.Fault{On: podmilltest.OpResizeContainer, Container: "db", Effect: effect})
				two := resized(resized(pod, "web", "200m", "64Mi"), "db", "200m", "16Mi")
				if err := r.sync(two); err == nil || !strings.Contains(err.Error(), "resize container db") {
					t.Fatalf("the sync returned %v", err)
				}
				if p := r.progress.Resize; !p.InProgress || p.Error == "" || p.Generation != two.Generation {
					t.Errorf("after the failure: %+v", p)
				}
				full = true
				three := resized(two, "web", "300m", "64Mi")
				r.restart()
				r.faulty.Clear()
				r.mustSync(three)
				r.want("web", r.holds(pod, "web"), "#0 200..400 128Mi")
				r.want("db", r.holds(pod, "db"), "#0 200..400 32Mi")
				if p := r.progress.Resize; p.InProgress || p.Error != "" || p.Pending != corev1.PodReasonDeferred {
					t.Errorf("at the end: %+v", p)
				}
				cgroups, _ := r.since(0)
				if last := cgroups[len(cgroups)-1]; !slices.Contains(cgroups, "cgroup memory=160Mi") || !strings.Contains(strings.Join(cgroups, "\n"), "cgroup memory=192Mi") {
					t.Errorf("the cgroup at the end: %s\n%s", last, r.rt.Log())
				}
			})
		})
	}
}

// Less memory than a container uses is not forced on it: it is tried again until it can be.
func TestAResizeBelowWhatIsUsed(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", size("100m", "32Mi")))
		r.mustSync(pod)
		r.rt.UseMemory(pod.UID, "web", 48<<20)
		pod = resized(pod, "web", "100m", "16Mi")
		const want = `attempting to set container "web" memory limit (33554432) below current usage (50331648)`
		for range 2 {
			if err := r.sync(pod); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(r.progress.Resize.Error, want) {
				t.Errorf("%v, %+v", err, r.progress.Resize)
			}
		}
		r.rt.UseMemory(pod.UID, "web", 16<<20)
		r.mustSync(pod)
		r.want("web", r.holds(pod, "web"), "#0 100..200 32Mi")
		if r.progress.Resize.InProgress || r.progress.Resize.Error != "" || strings.Count(r.rt.Log().String(), "ResizeError") != 1 {
			t.Errorf("%+v\n%s", r.progress.Resize, r.rt.Log())
		}
	})
}

// What a pod's sandbox needs is part of its cgroup and told to the runtime, where the spec does not say it and somebody else does.
func TestOverheadOfARuntimeClass(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		seen := ""
		r.restart(syncpod.WithOverhead(func(_ context.Context, pod *corev1.Pod) (corev1.ResourceList, error) {
			switch *pod.Spec.RuntimeClassName {
			case "none":
				return nil, nil
			case "away":
				return nil, errors.New("no answer")
			}
			return corev1.ResourceList{"memory": resource.MustParse("64Mi")}, nil
		}), syncpod.WithCgroups(overheads{&seen}))
		class := func(name string) podmilltest.PodOption {
			return func(pod *corev1.Pod) { pod.Spec.RuntimeClassName = &name }
		}
		own := func(pod *corev1.Pod) { pod.Spec.Overhead = corev1.ResourceList{"memory": resource.MustParse("1Mi")} }
		for _, tc := range []struct {
			pod  *corev1.Pod
			want string
		}{
			{podmilltest.Pod("shop/vm", podmilltest.Container("web", "img:1"), class("kata")), "64Mi"},
			{podmilltest.Pod("shop/own", podmilltest.Container("web", "img:1"), class("kata"), own), "1Mi"},
			{podmilltest.Pod("shop/none", podmilltest.Container("web", "img:1"), class("none")), "0"},
			{podmilltest.Pod("shop/plain", podmilltest.Container("web", "img:1")), "0"},
		} {
			r.mustSync(tc.pod)
			r.want(tc.pod.Name, seen, tc.want)
		}
		seen = ""
		if _, err := r.SyncPod(t.Context(), podmilltest.Pod("shop/away", podmilltest.Container("web", "img:1"), class("away"))); err == nil || seen != "" {
			t.Errorf("a pod whose overhead nobody could tell has a cgroup for %q (%v)", seen, err)
		}
	})
}

// overheads notes what a pod's cgroup is to hold for its sandbox.
type overheads struct{ seen *string }

func (o overheads) EnsureCgroup(_ context.Context, pod *corev1.Pod) (string, error) {
	*o.seen = pod.Spec.Overhead.Memory().String()
	return "", nil
}
func (overheads) RemoveCgroup(context.Context, types.UID) error { return nil }

// What can never be says so.
func TestAResizeThatCannotBe(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pod := podmilltest.Pod("shop/cart", podmilltest.Container("web", "img:1", size("100m", "32Mi")))
		r.mustSync(pod)
		best := podmilltest.Edit(pod, func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{} })
		r.mustSync(best)
		if p := r.progress.Resize; p.Pending != corev1.PodReasonInfeasible || p.PendingMessage != "Pod QOS Class may not change as a result of resizing" {
			t.Errorf("%+v", p)
		}
		r.mustSync(pod)
		if p := r.progress.Resize; p != nil {
			t.Errorf("when it is wanted no more: %+v", p)
		}
		r.mustSync(podmilltest.Edit(pod, func(pod *corev1.Pod) {
			pod.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}
		}))
		if p := r.progress.Resize; p == nil || p.Pending != corev1.PodReasonInfeasible || p.PendingMessage != "In-place resize of the pod's own resources is not supported" {
			t.Errorf("%+v", p)
		}
	})
}
