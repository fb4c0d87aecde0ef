#!/usr/bin/env bash
# down.sh stops every private instance, and removes the cgroups of tests that
# died before they could.
. "$(dirname "$0")/lib.sh"
for name in demo cr c1 c2; do
	[[ ! -d $PODMILL_DIR/$name ]] || "$hack/containerd.sh" stop "$name"
done
[[ ! -d $PODMILL_DIR/registry ]] || "$hack/registry.sh" stop
cgroups_remove podmill-test-
