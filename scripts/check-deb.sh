#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Unpacks coreward's .deb, and checks that all is in it and that the program runs.
set -eu

deb=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
dpkg-deb -c "$deb" | awk '{ print $NF }' >"$root/list"
for file in usr/bin/coreward usr/share/man/man1/coreward.1.gz usr/share/man/man1/coreward-compare.1.gz \
	usr/share/bash-completion/completions/coreward usr/share/zsh/vendor-completions/_coreward \
	usr/share/fish/vendor_completions.d/coreward.fish usr/share/doc/coreward/copyright \
	usr/share/doc/coreward/docs/table.schema.json; do
	grep -qxF "./$file" "$root/list" || {
		echo "check-deb: $file is not in $deb" >&2
		exit 1
	}
done
dpkg-deb -x "$deb" "$root"
grep -q "GNU GENERAL PUBLIC LICENSE" "$root/usr/share/doc/coreward/copyright"
grep -q "GPL-2.0-only" "$root/usr/share/doc/coreward/copyright"
# nothing of the tree that it was built in is needed
(cd / && env -i "$root/usr/bin/coreward" compare "perf bench sched pipe -l 100" --machine 2c --with NO_TTWU_QUEUE \
	--runs 2 >"$root/report")
grep -q "^NO_TTWU_QUEUE: " "$root/report"
echo "check-deb: $(wc -l <"$root/list") files, $(du -k "$deb" | cut -f1) KiB, and it runs"
