#!/usr/bin/env bash
# gotest.sh [-by-reason] [-again REGEXP] -- ARGS...: go test ARGS, which then
# says what it skipped; tools/gotest tells more.
. "$(dirname "$0")/lib.sh"
go_tool gotest
exec "$bin/gotest" "$@"
