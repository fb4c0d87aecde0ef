#!/usr/bin/env bash
# down.sh stops every private instance. What tests left that died before they
# could clean up goes too.
. "$(dirname "$0")/lib.sh"
for name in demo cr c1 c2; do
	[[ ! -d $PODMILL_DIR/$name ]] || "$hack/containerd.sh" stop "$name"
done
[[ ! -d $PODMILL_DIR/registry ]] || "$hack/registry.sh" stop
[[ ! -d $PODMILL_DIR/controlplane ]] || "$hack/controlplane.sh" stop
[[ ! -d $PODMILL_DIR/whole ]] || "$hack/controlplane.sh" stop whole
rm -rf "$PODMILL_DIR"/.vm.*
for pid in $(find /sys/fs/cgroup -maxdepth 2 -name 'podmill-test-*' 2>/dev/null | sed -n 's/.*podmill-test-\([0-9]*\)-.*/\1/p' | sort -u); do
	kill -0 "$pid" 2>/dev/null || cgroups_remove "podmill-test-$pid-"
done
