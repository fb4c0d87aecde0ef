package podmilltest

import (
	"context"
	"testing"
	"time"

	"github.com/podmill/podmill"
)

// RuntimeEnv is a runtime to be tested, and what it is tested with.
type RuntimeEnv struct {
	Runtime podmill.Runtime
	// Image is a local image that the Commands run in, and whose user is root.
	Image string
	// Absent is the name of an image that is neither local nor to be pulled.
	Absent string
	// Pull is an image that can be pulled and removed, with PullAuth where that is needed. Empty skips pulling.
	Pull     string
	PullAuth *podmill.ImageAuth
	// Commands are what runs in containers; ShellCommands unless anything is given.
	Commands *Commands
	// Dir is an empty directory that the test and the runtime's host both see, for logs and mounts. Empty skips both.
	Dir string
	// Network says that each pod gets addresses of its own.
	Network bool
	// Complete changes a sandbox's spec before it is run, such as its cgroup parent. It may be nil.
	Complete func(*podmill.SandboxSpec)
	// Patience is how long a call may take that has nothing to wait for; 20 seconds unless it is given.
	Patience time.Duration
}

// RuntimeTest holds a runtime to the contract of [podmill.Runtime], and to that of each optional interface that it has. It makes an
// environment for each of its subtests, runs pods of UIDs that nobody else uses, and removes them: the runtime may be in use
// for other things meanwhile. newEnv may call t.Parallel.
func RuntimeTest(t *testing.T, newEnv func(t *testing.T) RuntimeEnv) {
	for _, test := range runtimeTests() {
		t.Run(test.name, func(t *testing.T) {
			test.run(newRuntimeKit(t, newEnv(t)))
		})
	}
}

type runtimeTest struct {
	name string
	run  func(k *runtimeKit)
}

// runtimeTests are the kit's tests. They wait by package time alone, so that they run in virtual time too.
func runtimeTests() []runtimeTest {
	return []runtimeTest{
		{"Lifecycle", testLifecycle},
		{"StatesAndTimes", testStatesAndTimes},
		{"ExitCode", testExitCode},
		{"StartsOnce", testStartsOnce},
		{"SandboxAttemptIsUnique", testSandboxAttemptIsUnique},
		{"ContainerAttemptIsUnique", testContainerAttemptIsUnique},
		{"NewestAttemptFirst", testNewestAttemptFirst},
		{"StopIsIdempotent", testStopIsIdempotent},
		{"RemoveIsIdempotent", testRemoveIsIdempotent},
		{"RemoveStopsFirst", testRemoveStopsFirst},
		{"NotFound", testNotFound},
		{"StopObeysTheSignal", testStopObeysTheSignal},
		{"StopSignal", testStopSignal},
		{"StopKillsAfterTheGrace", testStopKillsAfterTheGrace},
		{"StopWithoutGraceKills", testStopWithoutGraceKills},
		{"StopAgainWithShorterGrace", testStopAgainWithShorterGrace},
		{"CancelledStopThenShorterGrace", testCancelledStopThenShorterGrace},
		{"StopSandboxStopsContainers", testStopSandboxStopsContainers},
		{"CancelledContext", testCancelledContext},
		{"ResolvedCommandWins", testResolvedCommandWins},
		{"ResolvedEnvironmentWins", testResolvedEnvironmentWins},
		{"ResolvedImageWins", testResolvedImageWins},
		{"ResolvedUserWins", testResolvedUserWins},
		{"ResolvedMountsWin", testResolvedMountsWin},
		{"ResolvedHostnameAndDNSWin", testResolvedHostnameAndDNSWin},
		{"LabelsAndAnnotations", testLabelsAndAnnotations},
		{"Addresses", testAddresses},
		{"HostNetwork", testHostNetwork},
		{"ListAgreesWithInspect", testListAgreesWithInspect},
		{"SnapshotIsReplaced", testSnapshotIsReplaced},
		{"Concurrency", testConcurrency},
		{"Exec", testExec},
		{"ExecEndsWithItsContext", testExecEndsWithItsContext},
		{"LocalImage", testLocalImage},
		{"PullImage", testPullImage},
		{"Logs", testLogs},
		{"ReopenLog", testReopenLog},
		{"Events", testEvents},
		{"Status", testStatus},
		{"InspectSandbox", testInspectSandbox},
		{"Resize", testResize},
		{"ResizeKeepsWhatIsUsed", testResizeKeepsWhatIsUsed},
	}
}

// runtimeKit is what the tests are written with. Its methods fail the test where a call fails.
type runtimeKit struct {
	*testing.T
	RuntimeEnv
	ctx context.Context
}

func newRuntimeKit(t *testing.T, env RuntimeEnv) *runtimeKit {
	if env.Commands == nil {
		shell := ShellCommands()
		env.Commands = &shell
	}
	if env.Patience == 0 {
		env.Patience = 20 * time.Second
	}
	return &runtimeKit{T: t, RuntimeEnv: env, ctx: t.Context()}
}
