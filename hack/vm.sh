#!/usr/bin/env bash
# vm.sh BINARY ARGS... runs a static test binary as root in an emulated machine
# whose controllers are all on cgroup v2, prints what it prints and exits as it
# does. A testdata folder beside the binary goes with it.
. "$(dirname "$0")/lib.sh"
[[ -x ${1:-} ]] || die "usage: vm.sh BINARY ARGS..."
binary=$(realpath "$1") busybox=$bin/debian/busybox-static/bin/busybox
shift
kernel=$(ls "$bin"/debian/linux-image-*/boot/vmlinuz-*) || die "no kernel for the VM: run hack/setup.sh test"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,dev,proc,sys,tmp,etc,run}
cp "$busybox" "$root/bin/busybox"
cp "$binary" "$root/test"
[[ -d $(dirname "$binary")/testdata ]] && cp -r "$(dirname "$binary")/testdata" "$root/testdata"
echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
cat >"$root/init" <<EOF
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/ PODMILL_TEST_CGROUP_V2=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up
echo podmill-vm-begin
/test $(printf '%q ' "$@")
echo "podmill-vm-exit \$?"
poweroff -f
EOF
chmod +x "$root/init"
(cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >"$work/initrd"

# Emulated, not virtualised: it needs no KVM, and the clock runs slower.
timeout "${VM_TIMEOUT:-600}" qemu-system-x86_64 -M q35,accel=tcg -cpu max -smp 1 -m 512 \
	-nodefaults -no-user-config -nographic -no-reboot -serial stdio \
	-kernel "$kernel" -initrd "$work/initrd" \
	-append "console=ttyS0 quiet loglevel=1 panic=-1 mitigations=off tsc=unstable cgroup_no_v1=all" \
	</dev/null | tr -d '\r' | tee "$work/out" | awk '/^podmill-vm-exit /{on=0} on{print; fflush()} /podmill-vm-begin$/{on=1}'
code=$(sed -n 's/^podmill-vm-exit //p' "$work/out")
exit "${code:-1}"
