#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Builds and installs coreward of the revision that this action is of, for the steps that follow.
set -euo pipefail

root=$(cd "$GITHUB_ACTION_PATH/../.." && pwd)
sh "$root/scripts/setup.sh" build
cargo install --locked --quiet --path "$root/crates/cli" --root "$RUNNER_TEMP/coreward"
echo "$RUNNER_TEMP/coreward/bin" >>"$GITHUB_PATH"
