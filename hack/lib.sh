# shellcheck shell=bash
# Sourced by the other scripts: where things are, and how they get there.
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
hack=$repo/hack
# Short, because a unix socket's path may have at most 107 bytes.
export PODMILL_DIR=${PODMILL_DIR:-/var/tmp/podmill}
bin=$PODMILL_DIR/bin
# Another state directory means other bridges, subnets and cgroups as well.
# shellcheck disable=SC2034
id=$(($(cksum <<<"$PODMILL_DIR" | cut -d' ' -f1) % 200))
# shellcheck source=hack/versions.sh
. "$hack/versions.sh"
# A go.work of the caller's must not change what is built.
export GOWORK=off

say() { printf '== %s\n' "$*" >&2 || true; } # the terminal may be gone
die() { printf 'podmill: %s\n' "$*" >&2; exit 1; }
need_root() { [[ $EUID -eq 0 ]] || die "$1 needs root: mounts, cgroups and network namespaces"; }

# apt_do CMD... runs apt-get, and once more after an update if that failed.
apt_do() {
	command -v apt-get >/dev/null || die "no apt-get here: set up by hand what hack/setup.sh names"
	local apt=(apt-get -qq -o APT::Sandbox::User=root -o DPkg::Lock::Timeout=120)
	export DEBIAN_FRONTEND=noninteractive
	"${apt[@]}" "$@" >/dev/null 2>&1 </dev/null && return
	say "apt-get update"
	"${apt[@]}" update >&2 </dev/null || true
	"${apt[@]}" "$@" >&2 </dev/null || die "apt-get $* failed"
}

# apt_install PACKAGE... installs those that are missing.
apt_install() {
	local p missing=()
	for p in "$@"; do
		[[ $(dpkg-query -Wf '${Status}' "$p" 2>/dev/null) == *"ok installed" ]] || missing+=("$p")
	done
	((${#missing[@]})) || return 0
	say "apt-get install ${missing[*]}"
	apt_do install -y --no-install-recommends "${missing[@]}"
}

# apt_unpack PACKAGE... lays the files of packages under $bin/debian/PACKAGE
# without installing them: no service starts, no other containerd is disturbed.
apt_unpack() {
	local p tmp
	for p in "$@"; do
		[[ -d $bin/debian/$p ]] && continue
		say "unpack $p"
		mkdir -p "$bin/debian"
		tmp=$(mktemp -d "$bin/debian/.tmp.XXXXXX")
		(cd "$tmp" && apt_do download "$p")
		dpkg-deb -x "$tmp"/*.deb "$tmp/root"
		mv -T "$tmp/root" "$bin/debian/$p"
		rm -rf "$tmp"
	done
}

# go_install DIR PACKAGE@VERSION... builds commands into DIR, all or nothing.
# Build tags come in GO_TAGS.
go_install() {
	local dir=$1 tmp
	shift
	[[ -d $dir ]] && return
	say "build $(basename "$dir") (once; minutes)"
	mkdir -p "$bin"
	tmp=$(mktemp -d "$bin/.tmp.XXXXXX")
	(cd / && GOFLAGS=-mod=mod GOBIN=$tmp go install -trimpath -ldflags "-s -w" -tags "${GO_TAGS:-}" "$@") >&2
	mv -T "$tmp" "$dir"
}

# go_tool NAME builds a command of the tools module; cheap when nothing changed.
go_tool() {
	mkdir -p "$bin"
	(cd "$repo/tools" && CGO_ENABLED=0 go build -buildvcs=false -trimpath -o "$bin/$1" "./$1")
}

# build_minikubelet builds it as for a node: static, and without gRPC's pages for
# tracing, whose templates keep the linker from leaving out methods that nobody
# calls. A fifth less of it is in memory then.
build_minikubelet() {
	(cd "$repo" && CGO_ENABLED=0 go build -buildvcs=false -tags grpcnotrace -o "$bin/minikubelet" ./examples/minikubelet)
}

# alive PIDFILE TEXT: the process that was noted there still runs, and is ours
# by the TEXT in its command line, for a number may have been given anew.
alive() {
	local pid
	pid=$(cat "$1" 2>/dev/null) && [[ -n $pid ]] &&
		tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF -- "$2"
}

# end PIDFILE TEXT ends that process and waits for it.
end() {
	local pid i
	if alive "$1" "$2"; then
		pid=$(<"$1")
		kill "$pid" 2>/dev/null || true
		for ((i = 0; i < 100; i++)); do
			alive "$1" "$2" || break
			sleep 0.1
		done
		alive "$1" "$2" && kill -KILL "$pid" 2>/dev/null
	fi
	rm -f "$1"
}

# one_at_a_time NAME ARGS... runs the calling script again under a lock that
# daemons started by it do not inherit.
one_at_a_time() {
	local name=$1
	shift
	[[ ${PODMILL_LOCK:-} == "$name" ]] && return
	mkdir -p "$PODMILL_DIR"
	PODMILL_LOCK=$name exec flock -o "$PODMILL_DIR/.lock-$name" "$0" "$@"
}

# cgroups_remove PREFIX removes the cgroups below every hierarchy's root whose
# name starts so. One with a live process in it stays.
cgroups_remove() {
	local mount dir
	while read -r mount; do
		for dir in "$mount/$1"*/; do
			[[ ! -d $dir ]] || find "$dir" -depth -type d -exec rmdir {} + 2>/dev/null || true
		done
	done < <(awk '/ - cgroup2? / {print $5}' /proc/self/mountinfo)
}
