#!/usr/bin/env bash
# gotest.sh [-by-reason] ARGS...: go test ARGS, which then says what it skipped.
. "$(dirname "$0")/lib.sh"
how=()
[[ ${1:-} == -by-reason ]] && how=("$1") && shift
go_tool gotest
go test -json "$@" | "$bin/gotest" "${how[@]}"
