package main

import (
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill/internal/testenv"
	"github.com/podmill/podmill/internal/testenv/testapi"
	"github.com/podmill/podmill/podmilltest"
)

func TestFlagsThatCannotBe(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"", "--manifest-url or --kubeconfig"},
		{"--manifest-url http://x --kubeconfig y", "--manifest-url or --kubeconfig"},
		{"--manifest-url http://x --manifest-url-header secret", "NAME:VALUE"},
		{"--manifest-url http://x more", `"more"`},
	} {
		if _, err := parseFlags(strings.Fields(tc.args), io.Discard); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want an error that says %s", tc.args, err, tc.want)
		}
	}
}

// office has the manifest, and can be away.
type office struct {
	*testing.T
	address string

	mu       sync.Mutex
	server   *http.Server
	manifest string
	asked    int
}

func newOffice(t *testing.T, manifest string) *office {
	o := &office{T: t, manifest: manifest, address: "127.0.0.1:0"}
	o.open()
	t.Cleanup(func() { o.leave() })
	return o
}

func (o *office) open() {
	o.Helper()
	listener, err := net.Listen("tcp", o.address)
	if err != nil {
		o.Fatal(err)
	}
	o.address = listener.Addr().String()
	o.server = &http.Server{Handler: o, ReadHeaderTimeout: time.Minute}
	go func(s *http.Server) { _ = s.Serve(listener) }(o.server)
}

func (o *office) leave() { _ = o.server.Close() }

func (o *office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.Header.Get("Site") != "7" {
		http.Error(w, "who are you?", http.StatusForbidden)
		return
	}
	o.asked++
	_, _ = io.WriteString(w, o.manifest)
}

// hears has the manifest changed, and waits until the site has read it, and a little longer.
func (s *site) hears(o *office, manifest string) {
	s.Helper()
	o.mu.Lock()
	o.manifest = manifest
	until := o.asked + 4
	o.mu.Unlock()
	s.eventually("the site asks for the manifest", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.asked >= until
	})
}

const (
	serverPod = `---
apiVersion: v1
kind: Pod
metadata: {name: server}
spec:
  terminationGracePeriodSeconds: 0
  initContainers: [{name: first, image: "podmill.test/busybox:1", command: [sh, -c, "echo hello >/data/f"], volumeMounts: [{name: data, mountPath: /data}]}]
  containers: [{name: main, image: "podmill.test/busybox:1", command: [sleep, "100000"], volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, emptyDir: {}}]
`
	jobPod = `---
apiVersion: v1
kind: Pod
metadata: {name: job}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: "podmill.test/busybox:1", command: ["true"]}]
`
	noPods = "apiVersion: v1\nkind: PodList\nitems: []\n"
)

// A machine loses its power, and with it the way to where its manifest is. It starts what ran, and not again what was done; when the way is back nothing is touched.
func TestARebootWithoutTheURL(t *testing.T) {
	o := newOffice(t, serverPod+jobPod)
	s := newSite(t, "--manifest-url", "http://"+o.address+"/pods.yaml", "--manifest-url-header", "Site:7", "--http-check-frequency", "500ms",
		"--hostname-override", testenv.UniqueName(t))
	s.start()
	server := s.reaches("server-"+nodeOf(s), "is ready", ready)
	job := s.reaches("job-"+nodeOf(s), "is done", succeeded)

	s.losePower()
	o.leave()
	s.start()
	again := s.reaches(server.Name, "is ready anew", func(pod *corev1.Pod) bool {
		return ready(pod) && pod.Status.ContainerStatuses[0].ContainerID != server.Status.ContainerStatuses[0].ContainerID
	})
	if again.UID != server.UID || !again.Status.StartTime.Equal(server.Status.StartTime) {
		t.Errorf("the server is pod %s since %v, was %s since %v", again.UID, again.Status.StartTime, server.UID, server.Status.StartTime)
	}
	if now := s.pod(job.Name); now == nil || !succeeded(now) || !cmp.Equal(now.Status.ContainerStatuses[0].State, job.Status.ContainerStatuses[0].State) {
		t.Errorf("the job that was done is %+v", now)
	}
	before := s.containers()

	o.open()
	s.hears(o, serverPod+jobPod)
	if now := s.containers(); !slices.Equal(now, before) {
		t.Errorf("when the office was back, containers %v became %v", before, now)
	}
	s.hears(o, noPods)
	s.end()
}

// nodeOf is the name of a site's node.
func nodeOf(s *site) string {
	return s.args[slices.Index(s.args, "--hostname-override")+1]
}

// The same with an API server: a node that boots on its own starts its pods with the ConfigMaps, Secrets, Services and tokens that they had. When the server is back it is
// told with one write of each pod, and what was deleted meanwhile goes.
func TestARebootWithoutTheAPI(t *testing.T) {
	api := testapi.New(t)
	w := api.Wire()
	t.Cleanup(w.Close)
	s := newSite(t, "--kubeconfig", w.Kubeconfig, "--hostname-override", api.Node)
	s.start()
	api.Create("configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"COLOUR": "green"}}, nil)
	api.Create("secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, Data: map[string][]byte{"key": []byte("one")}}, nil)
	api.Create("services", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, nil)
	names := []string{"a", "b", "c", "deleted"}
	before := map[string]*corev1.Pod{}
	for _, name := range names {
		api.CreatePod(needy(name))
	}
	for _, name := range names {
		before[name] = s.reaches(name, "is ready", ready)
		api.Eventually("the API knows that "+name+" is ready", func() bool { return ready(api.Pod(name)) })
	}

	s.losePower()
	w.Cut()
	api.Delete("pods", "deleted", -1)
	s.start()
	for _, name := range names {
		s.reaches(name, "is ready anew", func(pod *corev1.Pod) bool {
			return ready(pod) && pod.Status.ContainerStatuses[0].ContainerID != before[name].Status.ContainerStatuses[0].ContainerID
		})
	}
	running := s.containers()
	if len(running) != len(names) {
		t.Errorf("%d containers run, want one of each pod", len(running))
	}

	versions := api.WatchPods()
	w.Mend()
	api.Eventually("the pod that was deleted is gone", func() bool { return api.Pod("deleted") == nil })
	api.CreatePod(needy("after")) // when this one is ready the others have been told
	api.Eventually("a new pod is ready", func() bool { pod := api.Pod("after"); return pod != nil && ready(pod) })
	for _, name := range []string{"a", "b", "c"} {
		var pod *corev1.Pod
		var all []*corev1.Pod
		api.Eventually("the API is told of "+name, func() bool {
			pod, all = api.Pod(name), versions(name)
			return id(pod) == id(s.pod(name)) && len(all) > 0 && all[len(all)-1].ResourceVersion == pod.ResourceVersion
		})
		if len(all) != 1 || !ready(pod) {
			t.Errorf("%d writes of pod %s when the API was back, want 1 that says it is ready:", len(all), name)
			for i := range all[1:] {
				t.Errorf("(-%d +%d)\n%s", i, i+1, cmp.Diff(all[i].Status, all[i+1].Status))
			}
		}
		if !slices.Contains(s.containers(), id(pod)) || !slices.Contains(running, id(pod)) {
			t.Errorf("pod %s was restarted when the API was back", name)
		}
	}
	for _, name := range []string{"a", "b", "c", "after"} {
		api.Delete("pods", name, 0)
	}
	s.end()
}

// id is the ID by which the runtime knows a pod's container.
func id(pod *corev1.Pod) string {
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	return id
}

// needy is a pod that does not start without what it refers to.
func needy(name string) *corev1.Pod {
	pod := podmilltest.Pod("x/"+name, podmilltest.Grace(0), podmilltest.Volume("key", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "key"}}),
		podmilltest.Container("main", "podmill.test/busybox:1", podmilltest.Command("sh", "-c", "cat /key/key && test $COLOUR = green && test $SHOP_SERVICE_PORT = 80 && "+
			"test -s /var/run/secrets/kubernetes.io/serviceaccount/token && exec sleep 100000")))
	main := &pod.Spec.Containers[0]
	main.VolumeMounts = []corev1.VolumeMount{{Name: "key", MountPath: "/key"}}
	main.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
	return pod
}
