#!/usr/bin/env bash
# registry.sh start|stop|status: two registries on loopback over one store: one
# open, one that wants user podmill and the password in registry/password.
# Ports are the kernel's choice; registry/plain.addr and auth.addr tell them.
. "$(dirname "$0")/lib.sh"
one_at_a_time registry "$@"
dir=$PODMILL_DIR/registry
server=$bin/debian/docker-registry/usr/bin/docker-registry

config() {
	cat <<-EOF
		version: 0.1
		log: {accesslog: {disabled: true}}
		storage: {filesystem: {rootdirectory: $dir/store}, delete: {enabled: true}}
		http: {addr: "127.0.0.1:0"}
	EOF
	[[ $1 == plain ]] || echo "auth: {htpasswd: {realm: podmill, path: $dir/htpasswd}}"
}

running() { alive "$dir/$1.pid" "serve $dir/$1.yml"; }

serve() {
	local i addr
	running "$1" && return
	config "$1" >"$dir/$1.yml"
	rm -f "$dir/$1.log" # an address of last time is in it
	setsid "$server" serve "$dir/$1.yml" >"$dir/$1.log" 2>&1 </dev/null &
	echo $! >"$dir/$1.pid"
	for ((i = 0; i < 200; i++)); do
		addr=$(sed -n 's/.*listening on \(127[0-9.:]*\).*/\1/p' "$dir/$1.log")
		[[ $addr ]] && break
		sleep 0.05
	done
	[[ $addr ]] || die "the registry does not come up; see $dir/$1.log"
	echo "$addr" >"$dir/$1.addr"
}

case ${1:-} in
start)
	mkdir -p "$dir/store"
	if [[ ! -s $dir/htpasswd ]]; then
		(umask 077 && od -An -N12 -tx1 /dev/urandom | tr -d ' \n' >"$dir/password")
		go_tool htpasswd
		"$bin/htpasswd" podmill <"$dir/password" >"$dir/htpasswd.tmp"
		mv "$dir/htpasswd.tmp" "$dir/htpasswd"
	fi
	serve plain
	serve auth
	"$bin/mkimages" -busybox "$bin/debian/busybox-static/bin/busybox" -push "$(<"$dir/plain.addr")"
	say "registries: $(<"$dir/plain.addr"), with password $(<"$dir/auth.addr")"
	;;
stop)
	end "$dir/plain.pid" "serve $dir/plain.yml"
	end "$dir/auth.pid" "serve $dir/auth.yml"
	rm -rf "$dir/store" "$dir"/*.addr
	say "registries are stopped"
	;;
status) running plain && running auth ;;
*) die "usage: registry.sh start|stop|status" ;;
esac
