#!/usr/bin/env bash
# setup.sh demo|test: everything that a demo or the tests need is there
# afterwards. Each thing is fetched or built at most once.
#
# Without apt, provide: containerd with its shim and ctr, runc, the CNI plugins
# (bridge, host-local, loopback, portmap), iptables, a static busybox,
# docker-registry, openssl, and for the tests gcc, pkg-config, libseccomp's headers, qemu
# and a Linux kernel for it.
. "$(dirname "$0")/lib.sh"
what=${1:-}
[[ $what == demo || $what == test ]] || die "usage: setup.sh demo|test"
need_root "setup.sh"
one_at_a_time setup "$@"

# apt_kernel names the newest kernel package for virtual machines.
apt_kernel() {
	apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ {print $2; exit}'
}

# What interrupted runs left; a build that goes on now is younger.
[[ ! -d $bin ]] || find "$bin" -maxdepth 2 -name '.tmp.*' -mmin +120 -exec rm -rf {} +
apt_install iptables
apt_unpack busybox-static containernetworking-plugins containerd runc
if [[ $what == test ]]; then
	apt_install gcc libc6-dev pkg-config libseccomp-dev
	apt_unpack docker-registry
	if [[ $(uname -m) == x86_64 ]]; then # the VM for cgroup v2
		apt_install qemu-system-x86
		compgen -G "$bin/debian/linux-image-*" >/dev/null || apt_unpack "$(apt_kernel)"
	fi
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
