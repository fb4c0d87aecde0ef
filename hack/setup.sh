#!/usr/bin/env bash
# setup.sh demo|test: everything that a demo or the tests need is there
# afterwards. Each thing is fetched or built at most once.
#
# Without apt, provide: containerd with its shim and ctr, runc, the CNI plugins
# (bridge, host-local, loopback, portmap), iptables, a static busybox,
# docker-registry, and for the tests gcc, pkg-config and libseccomp's headers.
. "$(dirname "$0")/lib.sh"
what=${1:-}
[[ $what == demo || $what == test ]] || die "usage: setup.sh demo|test"
need_root "setup.sh"
one_at_a_time setup "$@"

rm -rf "$bin"/.tmp.* "$bin"/debian/.tmp.* # an interrupted run's
apt_install iptables
apt_unpack busybox-static containernetworking-plugins containerd runc
if [[ $what == test ]]; then
	apt_install gcc libc6-dev pkg-config libseccomp-dev
	apt_unpack docker-registry
	CGO_ENABLED=0 go_install "$bin/containerd-$CONTAINERD_VERSION" \
		"github.com/containerd/containerd/v2/cmd/containerd@$CONTAINERD_VERSION" \
		"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2@$CONTAINERD_VERSION" \
		"github.com/containerd/containerd/v2/cmd/ctr@$CONTAINERD_VERSION"
	CGO_ENABLED=1 GO_TAGS=seccomp go_install "$bin/runc-$RUNC_VERSION" \
		"github.com/opencontainers/runc@$RUNC_VERSION"
fi

go_tool mkimages
go_tool cri
mkdir -p "$PODMILL_DIR/images"
busybox=$bin/debian/busybox-static/bin/busybox
"$bin/mkimages" -busybox "$busybox" -archive "$PODMILL_DIR/images/test.tar"
