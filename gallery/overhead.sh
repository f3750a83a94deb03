#!/bin/sh
# What `coreward record --workload` costs: overhead.sh hackbench|pgbench [PAIRS]. Needs root, coreward and
# coreward-record in PATH, perf and postgresql-15. Prints for each pair of runs, the first one not recorded, what the
# benchmark says: seconds of hackbench, transactions per second of pgbench; and what the recorder says.
set -e
program=$1
pairs=${2:-5}
work=$(mktemp -d)
chmod 755 "$work"
server=
trap 'if [ "$server" ]; then kill $server; wait $server || :; fi; rm -rf "$work"' EXIT
cd "$work"
case $program in
hackbench)
	load="perf bench sched messaging -g 10 -l 200"
	figure() { sed -n 's/.*Total time: \([0-9.]*\).*/\1/p' "$1"; }
	;;
pgbench)
	bin=/usr/lib/postgresql/15/bin
	as="setpriv --reuid postgres --clear-groups --regid postgres"
	mkdir pg
	chown postgres pg
	$as $bin/initdb --auth trust -D "$work/pg/data" > initdb.log
	$as $bin/postgres -D "$work/pg/data" -k "$work/pg" -c listen_addresses= 2> postgres.log &
	server=$!
	sleep 1
	$bin/createdb -h "$work/pg" -U postgres bench
	$bin/pgbench -h "$work/pg" -U postgres -q -i -s 2 bench 2> /dev/null
	load="$bin/pgbench -h $work/pg -U postgres -S -c 6 -j 2 -T 1 bench"
	figure() { sed -n 's/tps = \([0-9.]*\).*/\1/p' "$1"; }
	;;
*)
	echo "overhead.sh: which program? hackbench or pgbench" >&2
	exit 2
	;;
esac
$load > warm.txt 2>&1
for pair in $(seq "$pairs"); do
	$load > without.txt 2>&1
	coreward record --workload -o w.cwr -- $load > with.txt 2> recorder.txt
	echo "$(figure without.txt) $(figure with.txt) $(cat recorder.txt with.txt | grep 'events,')"
done
