#!/usr/bin/env bash
# containerd.sh start|halt|stop|status NAME: a private containerd with its
# own directory, socket, bridge and subnet. NAME is one of
#   c2    containerd 2.x, built from source
#   cr    the same, for tests that restart it (started by them)
#   c1    the distribution's containerd 1.x and runc
#   demo  the machine's containerd if it has one, else the distribution's
# halt ends only the daemon: containers go on, and start finds them again.
. "$(dirname "$0")/lib.sh"
verb=${1:-} name=${2:-}
case $name in
c2) net=10.$((50 + id)).0.0/21 kind=built ;;
cr) net=10.$((50 + id)).8.0/21 kind=built ;;
c1) net=10.$((50 + id)).16.0/21 kind=debian ;;
demo) net=10.$((50 + id)).24.0/21 kind=debian ;;
*) die "usage: containerd.sh start|halt|stop|status c2|cr|c1|demo" ;;
esac
need_root "containerd.sh"
one_at_a_time "$name" "$@"

dir=$PODMILL_DIR/$name
sock=$dir/run/containerd.sock
bridge=pm-$name-$id
busybox=$bin/debian/busybox-static/bin/busybox
cni=$bin/debian/containernetworking-plugins/usr/lib/cni
if [[ $kind == built ]]; then
	ctrd=$bin/containerd-$CONTAINERD_VERSION runc=$bin/runc-$RUNC_VERSION
else
	ctrd=$bin/debian/containerd/usr/bin runc=$bin/debian/runc/usr/sbin
fi
if [[ $name == demo ]] && installed=$(command -v containerd) && [[ -x ${installed%/*}/ctr ]] &&
	command -v containerd-shim-runc-v2 >/dev/null && command -v runc >/dev/null; then
	ctrd=${installed%/*} runc=$(dirname "$(command -v runc)")
fi

# overlayfs does not stack on itself, as it would have to inside a container.
snapshotter=overlayfs
[[ $(stat -f -c %T "$PODMILL_DIR") != overlayfs ]] || snapshotter=native

running() { alive "$dir/pid" "--config $dir/config.toml"; }

cni_config() {
	cat <<-EOF
		{"cniVersion": "1.0.0", "name": "podmill-$name", "plugins": [
		  {"type": "bridge", "bridge": "$bridge", "isGateway": true, "hairpinMode": true, "ipam": {
		    "type": "host-local", "dataDir": "$dir/ipam",
		    "ranges": [[{"subnet": "$net"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
		  {"type": "portmap", "capabilities": {"portMappings": true}}]}
	EOF
}

# The settings that are not plain paths: no CAP_SYS_RESOURCE and no AppArmor are
# assumed; statistics every second would cost a third of a core at 150 pods.
config_v3() {
	cat <<-EOF
		version = 3
		root = "$dir/root"
		state = "$dir/run/state"
		disabled_plugins = ["io.containerd.nri.v1.nri"]
		[grpc]
		address = "$sock"
		[plugins."io.containerd.grpc.v1.cri"]
		stream_server_address = "127.0.0.1"
		[plugins."io.containerd.cri.v1.images"]
		snapshotter = "$snapshotter"
		[plugins."io.containerd.cri.v1.images".pinned_images]
		sandbox = "podmill.test/pause:1"
		[plugins."io.containerd.cri.v1.runtime"]
		disable_apparmor = true
		restrict_oom_score_adj = true
		netns_mounts_under_state_dir = true
		stats_collect_period = "60s"
		[plugins."io.containerd.cri.v1.runtime".cni]
		bin_dirs = ["$cni"]
		conf_dir = "$dir/cni"
		use_internal_loopback = true
		[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
		runtime_type = "io.containerd.runc.v2"
		[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
		BinaryName = "$runc/runc"
		Root = "$dir/run/runc"
		SystemdCgroup = false
	EOF
}

config_v2() {
	cat <<-EOF
		version = 2
		root = "$dir/root"
		state = "$dir/run/state"
		[grpc]
		address = "$sock"
		[plugins."io.containerd.grpc.v1.cri"]
		stream_server_address = "127.0.0.1"
		sandbox_image = "podmill.test/pause:1"
		disable_apparmor = true
		restrict_oom_score_adj = true
		netns_mounts_under_state_dir = true
		stats_collect_period = 60
		[plugins."io.containerd.grpc.v1.cri".cni]
		bin_dir = "$cni"
		conf_dir = "$dir/cni"
		[plugins."io.containerd.grpc.v1.cri".containerd]
		snapshotter = "$snapshotter"
		[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
		runtime_type = "io.containerd.runc.v2"
		[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
		BinaryName = "$runc/runc"
		Root = "$dir/run/runc"
		SystemdCgroup = false
	EOF
}

configure() {
	local version
	cni_config >"$dir/cni/10-podmill.conflist"
	version=$("$ctrd/containerd" --version 2>/dev/null | awk '{print $3}')
	case ${version#v} in
	1.*) config_v2 ;;
	*) config_v3 ;;
	esac >"$dir/config.toml"
}

launch() {
	mkdir -p "$dir"/{cni,run,root}
	if ! running; then
		configure
		PATH=$ctrd:$runc:$PATH setsid "$ctrd/containerd" --config "$dir/config.toml" \
			>>"$dir/log" 2>&1 </dev/null &
		echo $! >"$dir/pid"
	fi
	"$bin/cri" wait "unix://$sock" || die "containerd $name does not come up; see $dir/log"
}

start() {
	launch
	if ! cmp -s "$PODMILL_DIR/images/test.tar" "$dir/imported.tar"; then
		"$ctrd/ctr" -a "$sock" -n k8s.io images import --snapshotter "$snapshotter" "$PODMILL_DIR/images/test.tar" \
			>>"$dir/log" 2>&1 || die "containerd $name does not take the images; see $dir/log"
		cp "$PODMILL_DIR/images/test.tar" "$dir/imported.tar"
	fi
	"$bin/cri" wait "unix://$sock" podmill.test/pause:1 podmill.test/busybox:1
	say "containerd $name: unix://$sock"
}

# stop leaves nothing behind, whatever state a crash or kill -9 left: pods go by
# the front door, for which the daemon comes back if need be, so that the port
# mappings of a pod are undone too; then what is left goes by force.
stop() {
	local c pid mount
	[[ -d $dir/run ]] || return 0
	(launch && "$bin/cri" purge "unix://$sock") || say "some pods of $name did not end; they are killed"
	end "$dir/pid" "--config $dir/config.toml"
	for c in "$dir"/run/runc/k8s.io/*/; do
		[[ ! -d $c ]] || "$runc/runc" --root "$dir/run/runc/k8s.io" delete -f "$(basename "$c")" || true
	done
	for pid in $(shims); do kill -KILL "$pid" 2>/dev/null || true; done
	# Deepest first; a path with a space would be escaped, ours has none.
	while read -r mount; do
		umount -l "$mount" || true
	done < <(awk -v d="$dir/" 'index($5, d) == 1 {print $5}' /proc/self/mountinfo | sort -r)
	"$busybox" ip link show "$bridge" >/dev/null 2>&1 && "$busybox" ip link del "$bridge"
	cgroups_remove "podmill-$name-$id"
	mv -f "$dir/log" "$PODMILL_DIR/$name.log"
	rm -rf --one-file-system "$dir"
	say "containerd $name is stopped"
}

# shims lists the process IDs of this instance's shims, by its socket.
shims() {
	local f
	for f in /proc/[0-9]*/cmdline; do
		if tr '\0' ' ' 2>/dev/null <"$f" | grep -qF -- "containerd-shim-runc-v2 -namespace k8s.io -id"; then
			tr '\0' '\n' 2>/dev/null <"$f" | grep -qxF -- "$sock" && basename "$(dirname "$f")"
		fi
	done || true
}

case $verb in
start) start ;;
stop) stop ;;
halt) end "$dir/pid" "--config $dir/config.toml" ;;
status)
	running || die "containerd $name does not run"
	say "containerd $name runs: unix://$sock"
	;;
*) die "usage: containerd.sh start|halt|stop|status c2|cr|c1|demo" ;;
esac
