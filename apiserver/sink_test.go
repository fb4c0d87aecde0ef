package apiserver

import (
	"errors"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podmill/podmill"
	"github.com/podmill/podmill/podmilltest"
)

// One write is one request. What an error means is typed, and takes a look only where it may mean two things.
func TestOutcomes(t *testing.T) {
	pods := corev1.Resource("pods")
	pod := podmilltest.Pod("x/p", podmilltest.Container("c", "i"))
	other := pod.DeepCopy()
	other.UID = "other"
	for name, tc := range map[string]struct {
		patch error       // nil is success
		there *corev1.Pod // what a look finds
		want  error
		asked string
	}{
		"written":            {nil, pod, nil, "PATCH"},
		"gone":               {apierrors.NewNotFound(pods, "p"), nil, podmill.ErrGone, "PATCH"},
		"another by its UID": {apierrors.NewConflict(pods, "p", errors.New("UID")), other, podmill.ErrGone, "PATCH GET"},
		"conflict":           {apierrors.NewConflict(pods, "p", errors.New("version")), pod, podmill.ErrConflict, "PATCH GET"},
		"another node's":     {apierrors.NewForbidden(pods, "p", errors.New("not yours")), nil, podmill.ErrGone, "PATCH GET"},
		"no right":           {apierrors.NewForbidden(pods, "p", errors.New("no right")), pod, apierrors.NewForbidden(pods, "p", errors.New("")), "PATCH GET"},
		"broken":             {apierrors.NewInternalError(errors.New("etcd")), pod, apierrors.NewInternalError(errors.New("")), "PATCH"},
	} {
		t.Run(name, func(t *testing.T) {
			s, asked := newServer(), ""
			s.answer = func(r *http.Request, _ []byte) (int, any) {
				if asked != "" {
					asked += " "
				}
				asked += r.Method
				var status apierrors.APIStatus
				switch {
				case r.Method == http.MethodPatch && errors.As(tc.patch, &status):
					return int(status.Status().Code), status.Status()
				case r.Method == http.MethodGet:
					return http.StatusOK, listOf(tc.there)
				}
				found := tc.there.DeepCopy()
				found.APIVersion, found.Kind = "v1", "Pod"
				return http.StatusOK, found
			}
			err := NewStatusSink(s.client(t)).UpdateStatus(t.Context(), pod, &corev1.PodStatus{Phase: corev1.PodRunning})
			switch status := apierrors.APIStatus(nil); {
			case errors.As(tc.want, &status):
				if apierrors.ReasonForError(err) != status.Status().Reason || errors.Is(err, podmill.ErrGone) || errors.Is(err, podmill.ErrConflict) {
					t.Errorf("error %v, want reason %s", err, status.Status().Reason)
				}
			case !errors.Is(err, tc.want):
				t.Errorf("error %v, want %v", err, tc.want)
			}
			if asked != tc.asked {
				t.Errorf("asked %q, want %q", asked, tc.asked)
			}
		})
	}
}

// listOf is the list of a node's pods of that name.
func listOf(pod *corev1.Pod) *corev1.PodList {
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	if pod != nil {
		list.Items = append(list.Items, *pod)
	}
	return list
}

// The end of a pod is confirmed where the server has nothing against it, and where it has no such pod of this node any more.
func TestTheEndOfAPodThatIsNotHereAnyMore(t *testing.T) {
	pods := corev1.Resource("pods")
	pod := podmilltest.Pod("x/p", podmilltest.Container("c", "i"), podmilltest.Deleted(0))
	other := pod.DeepCopy()
	other.UID = "other"
	for name, tc := range map[string]struct {
		answer *apierrors.StatusError // nil is success
		there  *corev1.Pod
		ends   bool
	}{
		"removed":                      {nil, pod, true},
		"gone":                         {apierrors.NewNotFound(pods, "p"), nil, true},
		"another by its UID":           {apierrors.NewConflict(pods, "p", errors.New("UID")), other, true},
		"another node's":               {apierrors.NewForbidden(pods, "p", errors.New("not yours")), nil, true},
		"another node's, and one here": {apierrors.NewForbidden(pods, "p", errors.New("not yours")), other, true},
		"no right":                     {apierrors.NewForbidden(pods, "p", errors.New("no right")), pod, false},
		"broken":                       {apierrors.NewInternalError(errors.New("etcd")), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			s.answer = func(r *http.Request, _ []byte) (int, any) {
				switch {
				case r.Method == http.MethodGet:
					return http.StatusOK, listOf(tc.there)
				case tc.answer != nil:
					return int(tc.answer.ErrStatus.Code), tc.answer.ErrStatus
				}
				return http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}
			}
			if err := NewStatusSink(s.client(t)).FinishPod(t.Context(), pod); (err == nil) != tc.ends {
				t.Errorf("error %v, want one: %v", err, !tc.ends)
			}
		})
	}
}

// After a restart, what the pod came with is known to be written.
func TestNothingIsWrittenTwiceOverARestart(t *testing.T) {
	s := newServer()
	pod := podmilltest.Pod("x/p", podmilltest.Container("c", "i"))
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, NominatedNodeName: "scheduler's",
		Conditions: []corev1.PodCondition{{Type: "example.com/gate", Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	status := &corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	if err := NewStatusSink(s.client(t)).UpdateStatus(t.Context(), pod, status); err != nil || s.asked() != "" {
		t.Errorf("error %v, asked %q, want nothing", err, s.asked())
	}
}
