#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Runs the steps of action.yml here, as a runner does: once with a change that is worse, once with one that is not.
set -euo pipefail

GITHUB_ACTION_PATH=$(cd "$(dirname "$0")" && pwd)
RUNNER_TEMP=$(mktemp -d)
trap 'rm -rf "$RUNNER_TEMP"' EXIT
GITHUB_PATH=$RUNNER_TEMP/path GITHUB_STEP_SUMMARY=$RUNNER_TEMP/summary
COREWARD_REPORT=$RUNNER_TEMP/report
export GITHUB_ACTION_PATH RUNNER_TEMP GITHUB_PATH GITHUB_STEP_SUMMARY COREWARD_REPORT
touch "$GITHUB_PATH"

# each step's command, in their order; the first failure ends the job
steps() {
	export COREWARD_ARGUMENTS=$1
	while read -r step; do
		PATH=$(paste -sd: "$GITHUB_PATH"):$PATH bash -c "$step" || return
	done < <(sed -n 's/^ *run: //p' "$GITHUB_ACTION_PATH/action.yml")
}

expect() {
	status=0
	steps "$2" >"$RUNNER_TEMP/out" 2>&1 || status=$?
	[ "$status" -eq "$1" ] || {
		cat "$RUNNER_TEMP/out"
		echo "action: status $status instead of $1: $2"
		exit 1
	}
}

compare='compare "hackbench -g 1 -f 2 -l 50 -T --pipe" --machine 2c --runs 4 --headline runtime_s'
expect 1 "$compare --with pipe_op_ns=90000"
expect 0 "$compare --with seed=100"
expect 2 "$compare --with nonsense"
test -s "$COREWARD_REPORT/runs.parquet"
echo "action: its steps end with 1 for worse, 0 for no worse, 2 for refused"
