#!/usr/bin/env bash
# lint.sh checks the modules and the scripts; the tools are built once.
. "$(dirname "$0")/lib.sh"
lint=$bin/golangci-lint-$GOLANGCI_LINT_VERSION
vuln=$bin/govulncheck-$GOVULNCHECK_VERSION
CGO_ENABLED=0 go_install "$lint" "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$GOLANGCI_LINT_VERSION"
CGO_ENABLED=0 go_install "$vuln" "golang.org/x/vuln/cmd/govulncheck@$GOVULNCHECK_VERSION"

failed=0
check() { # check NAME CMD... runs it, and goes on if it fails
	say "$1"
	"${@:2}" || failed=1
}

# The database is on another host, which a closed network does not reach.
vulnerabilities() {
	local out
	out=$("$vuln/govulncheck" ./... 2>&1) && return
	if grep -qE 'fetching vulnerabilities|vuln\.go\.dev|dial tcp|no such host' <<<"$out"; then
		say "govulncheck left out: its database cannot be reached"
		return 0
	fi
	printf '%s\n' "$out"
	return 1
}

for module in . tools bench examples/virtualkubelet; do
	cd "$repo/$module"
	check "go vet ($module)" go vet ./...
	check "golangci-lint ($module)" "$lint/golangci-lint" run --config "$repo/.golangci.yml" ./...
	check "govulncheck ($module)" vulnerabilities
done
cd "$repo"
# What a provider of pods embeds runs on other systems too, and everything on small machines.
portable=(. ./admission ./node ./apiserver ./podworkers ./syncpod/... ./probe/... ./status ./pleg ./syncloop ./sandbox ./image ./event ./volume ./podspec)
check "build for arm" env GOARCH=arm go build ./...
for os in darwin windows; do
	check "build for $os" env GOOS="$os" go build "${portable[@]}"
done
if command -v shellcheck >/dev/null; then
	check shellcheck shellcheck -x -e SC2317 -P SCRIPTDIR hack/*.sh .ci/run
else
	say "shellcheck left out: it is not installed"
fi
exit $failed
