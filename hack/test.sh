#!/usr/bin/env bash
# test.sh runs every test under the race detector, on the real parts that it
# starts and in the end stops, those excepted that ran before.
. "$(dirname "$0")/lib.sh"
need_root "make test"

started=()
stop() {
	local name
	trap '' HUP INT TERM
	for name in "${started[@]}"; do
		case $name in
		registry | controlplane) "$hack/$name.sh" stop ;;
		*) "$hack/containerd.sh" stop "$name" ;;
		esac
	done
}
trap stop EXIT
trap 'exit 130' HUP INT TERM

# cgroup_v2 runs the tests of cgroup where the machine's controllers are on v2.
cgroup_v2() {
	local tmp
	if [[ $(uname -m) != x86_64 ]]; then
		say "cgroup v2 left out: its VM is emulated on x86-64 only"
		return
	fi
	say "cgroup v2, in an emulated VM"
	tmp=$(mktemp -d "$PODMILL_DIR/.vm.XXXXXX")
	CGO_ENABLED=0 go test -c -o "$tmp/cgroup.test" ./cgroup
	[[ ! -d cgroup/testdata ]] || cp -r cgroup/testdata "$tmp"
	"$hack/vm.sh" "$tmp/cgroup.test" -test.v=test2json |
		go tool test2json -p github.com/podmill/podmill/cgroup | "$bin/gotest"
	rm -rf "$tmp"
}

"$hack/setup.sh" test
for name in c2 c1; do
	"$hack/containerd.sh" status "$name" 2>/dev/null || started+=("$name")
	"$hack/containerd.sh" start "$name"
done
for name in registry controlplane; do
	"$hack/$name.sh" status || started+=("$name")
	"$hack/$name.sh" start
done
eval "$("$hack/env.sh")"

# Packages whose tests wait for a runtime or an API server, which share two cores with whatever else is tested.
real='/(apiserver|cri|examples/[a-z]*|node|server|volume/csi)$'
failed=0
cd "$repo"
"$hack/gotest.sh" -again "$real" -- -race -count=1 -timeout=20m ./... || failed=1
PODMILL_SIM_RUNS=40 "$hack/gotest.sh" -- -count=1 -run='^(TestSimulation|TestACrashAtEveryCall)$' ./agent || failed=1
# What is compared with a baseline of the same run, which the race detector would distort.
"$hack/gotest.sh" -again . -- -count=1 -run='BesideItsBaseline$' ./agent ./cri ./pleg ./podworkers ./staticpod ./syncloop || failed=1
(cd tools && "$hack/gotest.sh" -- -race -count=1 ./...) || failed=1
(cd tools/csisanity && "$hack/gotest.sh" -- -count=1 ./...) || failed=1
(cd examples/virtualkubelet && "$hack/gotest.sh" -again "$real" -- -race -count=1 ./...) || failed=1
say "podspec against Kubernetes, which takes minutes to compile at first"
(cd tools/podspecdiff && "$hack/gotest.sh" -- -count=1 ./...) || failed=1
cgroup_v2 || failed=1
exit $failed
