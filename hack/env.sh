#!/usr/bin/env bash
# env.sh prints the variables by which tests find what runs now (see
# internal/testenv): eval "$(make -s env)" and go test by hand.
. "$(dirname "$0")/lib.sh"

put() { printf 'export %s=%q\n' "$1" "$2"; }
running() { alive "$PODMILL_DIR/$1/pid" "--config $PODMILL_DIR/$1/config.toml"; }

put PODMILL_DIR "$PODMILL_DIR"
running c2 && put PODMILL_TEST_CONTAINERD "unix://$PODMILL_DIR/c2/run/containerd.sock"
running c1 && put PODMILL_TEST_CONTAINERD_OLD "unix://$PODMILL_DIR/c1/run/containerd.sock"
if "$hack/registry.sh" status; then
	put PODMILL_TEST_REGISTRY "$(<"$PODMILL_DIR/registry/plain.addr")"
	put PODMILL_TEST_REGISTRY_AUTH "$(<"$PODMILL_DIR/registry/auth.addr")"
	put PODMILL_TEST_REGISTRY_USER podmill
	put PODMILL_TEST_REGISTRY_PASSWORD "$(<"$PODMILL_DIR/registry/password")"
fi
if "$hack/controlplane.sh" status; then
	put PODMILL_TEST_KUBECONFIG "$PODMILL_DIR/controlplane/admin.kubeconfig"
fi
if "$hack/controlplane.sh" status whole; then
	put PODMILL_TEST_CLUSTER_KUBECONFIG "$PODMILL_DIR/whole/admin.kubeconfig"
	put PODMILL_TEST_KUBECTL "$bin/kubernetes-controllers-$KUBERNETES_VERSION/kubectl"
fi
