#!/usr/bin/env bash
# demo.sh runs examples/minikubelet on its manifests and a private containerd.
# Ctrl-C ends all of it; DEMO_SECONDS=N ends it after N seconds, successfully
# only if every pod has reached what it should.
. "$(dirname "$0")/lib.sh"
need_root "make demo"

mkdir -p "$PODMILL_DIR"
exec 9>"$PODMILL_DIR/.demo"
flock -n 9 || die "a demo runs already"
trap 'trap "" HUP INT TERM; "$hack/containerd.sh" stop demo 9>&-' EXIT
trap 'exit 130' HUP INT TERM
"$hack/setup.sh" demo
"$hack/containerd.sh" start demo 9>&-

say "build minikubelet"
cd "$repo"
build_minikubelet
args=(
	--container-runtime-endpoint "unix://$PODMILL_DIR/demo/run/containerd.sock"
	--pod-manifest-path "${DEMO_MANIFESTS:-$repo/examples/minikubelet/manifests}"
	--root-dir "$PODMILL_DIR/demo/run/agent"
	--cgroup-root "/podmill-demo-$id"
	--stop-pods-on-exit
)
[[ -z ${DEMO_SECONDS:-} ]] || args+=(--exit-after "${DEMO_SECONDS}s")
say "minikubelet ${args[*]}"
"$bin/minikubelet" "${args[@]}"
