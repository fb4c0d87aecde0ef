#!/usr/bin/env bash
# controlplane.sh start|stop|status [whole]: a private etcd and kube-apiserver on
# loopback, with a node's rights as they are in a cluster. Nothing schedules and
# nothing controls: a pod names its node, a namespace gets no service account.
# The whole one is another, with a kube-scheduler and a kube-controller-manager,
# and kubectl beside it.
#
# KUBEBUILDER_ASSETS names a directory with etcd and kube-apiserver; else they are
# built.
. "$(dirname "$0")/lib.sh"
verb=${1:-} which=${2:-controlplane}
one_at_a_time controlplane "$@"
dir=$PODMILL_DIR/$which
programs=${KUBEBUILDER_ASSETS:-$bin/kubernetes-$KUBERNETES_VERSION}
controllers=$bin/kubernetes-controllers-$KUBERNETES_VERSION

running() { alive "$dir/$1.pid" "$dir/"; }

# build DIR PACKAGE... builds commands into DIR, all or nothing. One is called as
# the last part of its path, but for etcd.
build() {
	local to=$1 p name tmp
	shift
	[[ ! -d $to ]] || return 0
	say "build ${*##*/} (once; 10 minutes)"
	mkdir -p "$bin"
	tmp=$(mktemp -d "$bin/.tmp.XXXXXX")
	for p in "$@"; do
		name=${p##*/}
		[[ $p != go.etcd.io/* ]] || name=etcd
		(cd "$repo/tools/controlplane" && CGO_ENABLED=0 go build -trimpath \
			-ldflags "-s -w -X=k8s.io/component-base/version.gitVersion=$KUBERNETES_VERSION" -o "$tmp/$name" "$p") >&2
	done
	mv -T "$tmp" "$to"
}

# secrets makes the authority of the clients' certificates, a certificate by
# which the API server shows itself to nodes, a key for service accounts' tokens,
# and the administrator's token. What serves is the API server's own affair.
secrets() {
	[[ ! -s $dir/pki/tokens.csv ]] || return 0
	apt_install openssl
	local pki=$dir/pki ec=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)
	(
		umask 077
		mkdir -p "$pki"
		openssl req -x509 "${ec[@]}" -keyout "$pki/ca.key" -out "$pki/ca.crt" -subj /CN=podmill-test-ca -days 3650
		openssl req "${ec[@]}" -keyout "$pki/client.key" -out "$pki/client.csr" -subj /O=system:masters/CN=kube-apiserver
		openssl x509 -req -in "$pki/client.csr" -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -CAcreateserial -out "$pki/client.crt" -days 3650
		openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$pki/tokens.key"
		printf '%s,admin,admin,"system:masters"\n' "$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')" >"$pki/tokens.csv"
	) >"$dir/openssl.log" 2>&1 || die "openssl makes no certificates; see $dir/openssl.log"
}

# ports finds three that nobody listens on, and stays with them.
ports() {
	[[ ! -s $dir/ports ]] || return 0
	local base p
	base=$((20000 + 10 * id))
	[[ $which == controlplane ]] || base=$((base + 5))
	for (( ; base < 30000; base += 2000)); do
		for p in 0 1 2; do
			(exec 3<>"/dev/tcp/127.0.0.1/$((base + p))") 2>/dev/null && continue 2
		done
		echo "$base $((base + 1)) $((base + 2))" >"$dir/ports"
		return 0
	done
	die "no free ports"
}

# launch DIR NAME ARGS... starts a program that logs to its own file.
launch() {
	local from=$1 name=$2
	shift 2
	running "$name" && return
	setsid "$from/$name" "$@" >>"$dir/$name.log" 2>&1 </dev/null &
	echo $! >"$dir/$name.pid"
}

kubeconfig() {
	cat <<-EOF2
		apiVersion: v1
		kind: Config
		current-context: podmill
		contexts: [{name: podmill, context: {cluster: podmill, user: admin}}]
		clusters:
		- name: podmill
		  cluster: {server: "https://127.0.0.1:$1", certificate-authority-data: $(base64 -w0 <"$dir/kube-apiserver.d/apiserver.crt")}
		users:
		- name: admin
		  user: {token: $(cut -d, -f1 <"$dir/pki/tokens.csv")}
	EOF2
}

ready() {
	printf 'GET /readyz HTTP/1.0\r\n\r\n' | openssl s_client -quiet -connect "127.0.0.1:$1" 2>/dev/null | grep -qx ok
}

start() {
	local client peer secure i
	[[ -n ${KUBEBUILDER_ASSETS:-} ]] || build "$programs" go.etcd.io/etcd/server/v3 k8s.io/kubernetes/cmd/kube-apiserver
	mkdir -p "$dir"
	secrets
	ports
	read -r client peer secure <"$dir/ports"
	launch "$programs" etcd --name podmill --data-dir "$dir/etcd.d" --unsafe-no-fsync --log-level warn \
		--listen-client-urls "http://127.0.0.1:$client" --advertise-client-urls "http://127.0.0.1:$client" \
		--listen-peer-urls "http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
		--initial-cluster "podmill=http://127.0.0.1:$peer"
	launch "$programs" kube-apiserver --cert-dir "$dir/kube-apiserver.d" --bind-address 127.0.0.1 --secure-port "$secure" \
		--etcd-servers "http://127.0.0.1:$client" --endpoint-reconciler-type none --service-cluster-ip-range 10.96.0.0/16 \
		--authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction --allow-privileged \
		--token-auth-file "$dir/pki/tokens.csv" --client-ca-file "$dir/pki/ca.crt" \
		--kubelet-client-certificate "$dir/pki/client.crt" --kubelet-client-key "$dir/pki/client.key" \
		--kubelet-preferred-address-types InternalIP \
		--service-account-issuer https://kubernetes.default.svc \
		--service-account-key-file "$dir/pki/tokens.key" --service-account-signing-key-file "$dir/pki/tokens.key"
	for ((i = 0; i < 600; i++)); do
		ready "$secure" && break
		running kube-apiserver || die "kube-apiserver has ended; see $dir/kube-apiserver.log"
		sleep 0.1
	done
	((i < 600)) || die "kube-apiserver does not come up; see $dir/kube-apiserver.log"
	kubeconfig "$secure" >"$dir/admin.kubeconfig.tmp"
	mv "$dir/admin.kubeconfig.tmp" "$dir/admin.kubeconfig"
	[[ $which != whole ]] || control
	say "control plane: https://127.0.0.1:$secure, KUBECONFIG=$dir/admin.kubeconfig"
}

# control starts what makes a cluster of it.
control() {
	build "$controllers" k8s.io/kubernetes/cmd/{kube-scheduler,kube-controller-manager,kubectl}
	launch "$controllers" kube-scheduler --kubeconfig "$dir/admin.kubeconfig" --leader-elect=false --secure-port 0
	launch "$controllers" kube-controller-manager --kubeconfig "$dir/admin.kubeconfig" --leader-elect=false --secure-port 0 \
		--service-account-private-key-file "$dir/pki/tokens.key" --root-ca-file "$dir/kube-apiserver.d/apiserver.crt"
}

case $verb/$which in
start/controlplane | start/whole) start ;;
stop/controlplane | stop/whole)
	for name in kube-controller-manager kube-scheduler kube-apiserver etcd; do
		end "$dir/$name.pid" "$dir"
	done
	[[ ! -f $dir/kube-apiserver.log ]] || mv -f "$dir/kube-apiserver.log" "$PODMILL_DIR/kube-apiserver.log"
	rm -rf --one-file-system "$dir"
	say "the control plane is stopped"
	;;
status/controlplane) running etcd && running kube-apiserver ;;
status/whole) running kube-apiserver && running kube-scheduler && running kube-controller-manager ;;
*) die "usage: controlplane.sh start|stop|status [whole]" ;;
esac
