#!/usr/bin/env bash
# stories.sh runs what people do with a cluster on one of its own: etcd, the API
# server, the scheduler, the controllers, containerd, a clusterkubelet, and kubectl.
# The first time it builds them, which takes minutes more than `make test` has.
. "$(dirname "$0")/lib.sh"
need_root "make stories"

started=()
stop() {
	trap '' HUP INT TERM
	[[ " ${started[*]} " != *" c2 "* ]] || "$hack/containerd.sh" stop c2
	[[ " ${started[*]} " != *" whole "* ]] || "$hack/controlplane.sh" stop whole
}
trap stop EXIT
trap 'exit 130' HUP INT TERM

"$hack/setup.sh" test
"$hack/containerd.sh" status c2 2>/dev/null || started+=(c2)
"$hack/containerd.sh" start c2
"$hack/controlplane.sh" status whole || started+=(whole)
"$hack/controlplane.sh" start whole
eval "$("$hack/env.sh")"
cd "$repo"
"$hack/gotest.sh" -- -count=1 -timeout=20m -run='^TestStory' ./examples/clusterkubelet
