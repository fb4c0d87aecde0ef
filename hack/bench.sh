#!/usr/bin/env bash
# bench.sh ARGS...: bench/ on containerd 2.x, which it starts and in the end
# stops, unless it ran before. docs/performance.md explains the figures.
. "$(dirname "$0")/lib.sh"
need_root "make bench"
"$hack/setup.sh" test
"$hack/containerd.sh" status c2 2>/dev/null || trap '"$hack/containerd.sh" stop c2' EXIT
"$hack/containerd.sh" start c2
eval "$("$hack/env.sh")"
cd "$repo"
build_minikubelet
(cd bench && go build -o "$bin/bench" .)
"$bin/bench" -minikubelet "$bin/minikubelet" -out "$PODMILL_DIR/bench" "$@"
say "figures and plots: $PODMILL_DIR/bench"
