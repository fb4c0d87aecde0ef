package agent_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/agent"
	. "github.com/podmill/podmill/podmilltest"
	"github.com/podmill/podmill/podspec"
	"github.com/podmill/podmill/podworkers"
	"github.com/podmill/podmill/probe"
)

// story is a world in which a script is acted: an API server that is simple, a directory of manifests, a runtime in memory, and an agent.
type story struct {
	*testing.T
	rt        *Runtime
	faults    *FaultyRuntime
	api, file *PodSource
	versions  map[string][]*corev1.Pod // of each pod, those that are still to come; the first is the one that is wanted
	wanted    map[string]*corev1.Pod
	statuses  map[string]corev1.PodStatus // the newest of each pod
	told      []corev1.PodStatus
	root      string
	web       *storyServer
	objects   *Objects
	agent     *agent.Agent
	end       func()
}

func newStory(t *testing.T, root string, web *storyServer, pods, script string) *story {
	s := &story{T: t, root: root, web: web, objects: NewObjects(), versions: map[string][]*corev1.Pod{}, wanted: map[string]*corev1.Pod{}, statuses: map[string]corev1.PodStatus{}}
	opts := []Option{
		WithLatency(OpRunSandbox, 200*time.Millisecond), WithLatency(OpCreateContainer, 20*time.Millisecond), WithLatency(OpStartContainer, 10*time.Millisecond),
		WithImages(ScriptImage("app:1", "sleep inf"), ScriptImage("app:2", "sleep inf")),
	}
	for line := range strings.Lines(script) {
		if w := words(line); len(w) > 0 && w[0] == "registry" {
			image := RemoteImage{Image: ScriptImage(w[1], "sleep inf")}
			image.Takes, _ = time.ParseDuration(w[2])
			if len(w) > 3 {
				image.Err = errors.New(w[3])
			}
			opts = append(opts, WithRegistry(image))
		}
	}
	s.rt = NewRuntime(opts...)
	s.faults = Faulty(s.rt)
	s.api, s.file = NewPodSource("api"), NewPodSource("file")
	s.api.Replace()
	s.file.Replace()
	for _, doc := range strings.Split(strings.ReplaceAll(pods, "PORT", web.port()), "\n---\n") {
		pod := &corev1.Pod{}
		if err := yaml.UnmarshalStrict([]byte(doc), pod); err != nil {
			t.Fatal(err)
		}
		pod.Namespace = "default"
		if pod.UID == "" {
			pod.UID = types.UID(pod.Name + "-uid")
		}
		if pod.Spec.DNSPolicy == "" {
			pod.Spec.DNSPolicy = corev1.DNSDefault // the node of these stories has no cluster's DNS
		}
		podspec.Default(pod)
		s.versions[pod.Name] = append(s.versions[pod.Name], pod)
	}
	s.start()
	return s
}

func (s *story) start() {
	for _, source := range []*PodSource{s.api, s.file} {
		var pods []*corev1.Pod
		for name, pod := range s.wanted {
			if s.source(pod) == source {
				pod = pod.DeepCopy()
				pod.Status = s.statuses[name]
				pods = append(pods, pod)
			}
		}
		source.Replace(pods...)
	}
	a, err := agent.New(s.faults, s.root, []podmill.PodSource{s.api, s.file},
		agent.WithEvents(s), agent.WithStatusSink(s), agent.WithObjects(s.objects),
		agent.WithProbeOptions(probe.WithGRPC(s.web.check)), agent.WithWorkerOptions(podworkers.WithRandom(func() float64 { return 0 })))
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	s.agent, s.end = a, func() {
		cancel()
		if err := <-ended; err != nil {
			s.Errorf("the agent ended with: %v", err)
		}
	}
	synctest.Wait()
}

func (s *story) stop() {
	if s.end != nil {
		s.end()
	}
	s.end = nil
	s.rt.Close()
}

func (s *story) source(pod *corev1.Pod) *PodSource {
	if pod.Annotations[podmill.AnnotationConfigSource] == "file" {
		return s.file
	}
	return s.api
}

// Event implements [podmill.EventRecorder].
func (s *story) Event(about corev1.ObjectReference, eventType, reason, message string) {
	_, container, _ := strings.Cut(strings.TrimSuffix(about.FieldPath, "}"), "{")
	s.note("event", about.Name, container, eventType+" "+reason+": "+message)
}

// UpdateStatus implements [podmill.StatusSink].
func (s *story) UpdateStatus(_ context.Context, pod *corev1.Pod, status *corev1.PodStatus) error {
	if last, ok := s.statuses[pod.Name]; ok && cmp.Equal(last, *status) {
		return nil // as every sink does
	}
	s.statuses[pod.Name] = *status.DeepCopy()
	s.told = append(s.told, *status.DeepCopy())
	s.note("status", pod.Name, "", strconv.Itoa(len(s.told)-1))
	return nil
}

// FinishPod implements [podmill.StatusSink]. What an API server was told to forget is there no more.
func (s *story) FinishPod(_ context.Context, pod *corev1.Pod) error {
	s.note("finished", pod.Name, "", "")
	delete(s.statuses, pod.Name)
	if s.wanted[pod.Name] != nil && s.wanted[pod.Name].UID == pod.UID && pod.DeletionTimestamp != nil {
		delete(s.wanted, pod.Name)
		s.source(pod).Delete(pod)
	}
	return nil
}

// note adds a line to the runtime's log, so that all that happens is in one order.
func (s *story) note(kind, pod, container, text string) {
	s.rt.Log().Note("%s\x00%s\x00%s\x00%s", kind, pod, container, text)
}

// line does one line of a script.
func (s *story) line(line string) {
	w := words(line)
	if len(w) == 0 || strings.HasPrefix(line, "#") {
		return
	}
	s.note("world", "", "", line)
	if !s.do(w) {
		s.Fatalf("the script says %q, which nobody understands", line)
	}
	synctest.Wait()
}

// do does what a line of a script says.
//
//	add POD                  the pod is wanted; a second "add" or an "edit" takes the next version that the file has of it
//	remove POD               it is not wanted any more: its manifest is gone
//	delete POD GRACE         it has a deletion timestamp
//	gate POD TYPE STATUS     somebody sets a condition of it
//	evict POD REASON MESSAGE [GRACE]
//	pass DURATION            time passes
//	exit POD CONTAINER CODE  its process ends
//	oom POD CONTAINER        it is killed for its memory
//	lose POD CONTAINER       the runtime does not know what it does
//	forget POD [CONTAINER]   the runtime does not hold it any more
//	sandbox-dies POD
//	exec POD CONTAINER SCRIPT
//	reboot                   the machine does
//	stop-agent, start-agent, restart-agent
//	fail OP CONTAINER|- TIMES MESSAGE     calls of the runtime fail
//	fail-late OP CONTAINER|- TIMES MESSAGE or fail after 100ms
//	hang OP CONTAINER|- TIMES             or do not return
//	lose-reply OP CONTAINER|- TIMES       or fail when they have done their work
//	heal                     no calls fail any more
//	registry IMAGE TAKES [ERROR]          what pulling an image is like
//	config-map NAME          there is one from now on
//	answer PATH|SERVICE CODE              what the server at 127.0.0.1:PORT answers: an HTTP status, or that of gRPC's health checks
func (s *story) do(w []string) bool {
	switch w[0] {
	case "registry":
	case "config-map":
		s.objects.SetConfigMap(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: w[1]}})
	case "answer":
		s.web.answer(w[1], w[2])
	case "pass":
		d, err := time.ParseDuration(w[1])
		if err != nil {
			s.Fatal(err)
		}
		time.Sleep(d)
	case "stop-agent":
		s.end()
		s.end = nil
	case "start-agent":
		s.start()
	case "restart-agent":
		s.end()
		s.start()
	case "reboot":
		s.end()
		s.rt.Reboot()
		s.start()
	case "heal":
		s.faults.Clear()
	case "fail", "fail-late", "hang", "lose-reply":
		s.fault(w)
	default:
		return s.doToPod(w)
	}
	return true
}

func (s *story) fault(w []string) {
	f := Fault{On: Op(w[1])}
	if w[2] != "-" {
		f.Container = w[2]
	}
	f.Times, _ = strconv.Atoi(w[3])
	switch w[0] {
	case "fail":
		f.Effect = Fail(errors.New(w[4]))
	case "fail-late":
		f.Effect = Effect{Name: "fails", Call: func(context.Context, func() error) error {
			time.Sleep(100 * time.Millisecond)
			return errors.New(w[4])
		}}
	case "hang":
		f.Effect = Hang(nil)
	default:
		f.Effect = LoseReply(context.DeadlineExceeded)
	}
	s.faults.Add(f)
}

func (s *story) doToPod(w []string) bool {
	name := w[1]
	if w[0] == "add" || w[0] == "edit" {
		if len(s.versions[name]) == 0 {
			s.Fatalf("there is no version of pod %s", name)
		}
		s.wanted[name] = s.versions[name][0]
		if len(s.versions[name]) > 1 {
			s.versions[name] = s.versions[name][1:]
		}
		s.source(s.wanted[name]).Upsert(s.wanted[name])
		return true
	}
	pod := s.wanted[name]
	if pod == nil {
		s.Fatalf("pod %s is not wanted", name)
	}
	switch w[0] {
	case "remove":
		delete(s.wanted, name)
		s.source(pod).Delete(pod)
	case "delete":
		grace, _ := time.ParseDuration(w[2])
		s.wanted[name] = Edit(pod, Deleted(grace))
		s.source(pod).Upsert(s.wanted[name])
	case "gate":
		pod = pod.DeepCopy()
		pod.Status = s.statuses[name]
		pod.Status.Conditions = append([]corev1.PodCondition{{Type: corev1.PodConditionType(w[2]), Status: corev1.ConditionStatus(w[3])}}, pod.Status.Conditions...)
		s.wanted[name] = pod
		s.source(pod).Upsert(pod)
	case "evict":
		kill := podmill.Kill{Reason: w[2], Message: w[3]}
		if len(w) > 4 {
			grace, _ := strconv.ParseInt(w[4], 10, 64)
			kill.GracePeriodSeconds = &grace
		}
		s.agent.Kill(pod.UID, kill)
	case "exit":
		code, _ := strconv.ParseInt(w[3], 10, 32)
		return s.rt.KillProcess(pod.UID, w[2], int32(code))
	case "oom":
		return s.rt.OOM(pod.UID, w[2])
	case "lose":
		return s.rt.LoseTrack(pod.UID, w[2])
	case "forget":
		if len(w) == 2 {
			return s.rt.RemovePodBehindBack(pod.UID)
		}
		return s.rt.RemoveBehindBack(pod.UID, w[2])
	case "sandbox-dies":
		return s.rt.KillSandbox(pod.UID)
	case "exec":
		seen, err := s.rt.InspectPod(s.Context(), pod.UID)
		if err != nil {
			s.Fatal(err)
		}
		if _, err := s.rt.Exec(s.Context(), seen.Container(w[2]).ID, Script(w[3])); err != nil {
			s.Fatal(err)
		}
	default:
		return false
	}
	return true
}

// words splits a line; what is in double quotes is one word.
func words(line string) (out []string) {
	for i, part := range strings.Split(strings.TrimSpace(line), `"`) {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}
