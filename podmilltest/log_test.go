package podmilltest

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

func TestLogReadsAsAStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := NewRuntime(WithLatency(OpRunSandbox, 300*time.Millisecond), WithScript("c", "trap '' TERM; sleep inf"))
		pod, id := run(t, rt, "shop/cart")
		p, _ := seen(t, rt, pod)
		time.Sleep(10 * time.Second)
		if err := rt.StopContainer(t.Context(), id, 30*time.Second); err != nil {
			t.Fatal(err)
		}
		rt.Log().Note("the agent stops")
		if err := rt.StartContainer(t.Context(), noID); err == nil {
			t.Error("a container was started that is not there")
		}
		_, _ = rt.InspectImage(t.Context(), "absent") // the log tells of the error
		if err := rt.RemoveSandbox(t.Context(), p.Sandboxes[0].ID); err != nil {
			t.Fatal(err)
		}
		want := `0.000s RunSandbox shop/cart attempt=0 took=300ms
0.300s PullImage i
0.300s CreateContainer shop/cart c#0
0.300s StartContainer shop/cart c#0
10.300s StopContainer shop/cart c#0 grace=30s took=30s
40.300s shop/cart c#0 exited code=137 Error
40.300s the agent stops
40.300s StartContainer unknown container ` + noID + `: container "` + noID + `": not found
40.300s InspectImage absent: image "absent": not found
40.300s RemoveSandbox shop/cart attempt=0
`
		if diff := gocmp.Diff(want, rt.Log().String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		counts := rt.Log().Counts()
		want2 := map[Op]int{
			OpRunSandbox: 1, OpPullImage: 1, OpCreateContainer: 1, OpStartContainer: 2, OpStopContainer: 1, OpRemoveSandbox: 1,
			OpInspectPod: 1, OpInspectImage: 1,
		}
		if !maps.Equal(counts, want2) || rt.Log().Count(OpStartContainer) != 2 {
			t.Errorf("counts %v, want %v", counts, want2)
		}
		rt.Log().Reset()
		if rt.Log().Count(OpStartContainer) != 0 || rt.Log().String() != "" {
			t.Errorf("after Reset the log holds %v", rt.Log())
		}
	})
}

func TestLogIsBounded(t *testing.T) {
	l := newLog()
	for i := range kept + 1 {
		l.Note("%d", i)
	}
	if all := l.Entries(); len(all) != kept/2+1 || all[0].About != "50000" || all[len(all)-1].About != "100000" {
		t.Errorf("%d entries, from %v to %v", len(all), all[0], all[len(all)-1])
	}
}
