#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Runs coreward with $COREWARD_ARGUMENTS, keeps what it says in $COREWARD_REPORT, and ends with its exit status: 0 if
# nothing is worse beyond noise, 1 if something is, 2 if the arguments were refused.
set -euo pipefail

# words are told apart as in a shell, but nothing in them is expanded or carried out
mapfile -d '' -t arguments < <(printf '%s' "$COREWARD_ARGUMENTS" | xargs printf '%s\0')
mkdir -p "$COREWARD_REPORT"

status=0
coreward "${arguments[@]}" --fail-if-worse --json="$COREWARD_REPORT/report.json" \
	--output "$COREWARD_REPORT/runs.parquet" >"$COREWARD_REPORT/report.txt" || status=$?
cat "$COREWARD_REPORT/report.txt"
{
	echo '```text'
	cat "$COREWARD_REPORT/report.txt"
	echo '```'
} >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
exit "$status"
