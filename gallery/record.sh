#!/bin/sh
# Records the gallery: record.sh DIRECTORY [NAME...]. Needs root, coreward and coreward-record in PATH, and Debian's
# packages gcc, make, python3, redis, nginx-light, wrk, postgresql-15 and x264. Writes NAME-2.cwr, recorded on two CPUs,
# NAME-1.cwr, recorded on CPU 0 alone, and what the programs print to NAME-2.txt and NAME-1.txt. Each takes a few seconds.
set -e
out=$(realpath "$1")
shift
names=${*:-compile redis nginx postgres x264}
work=$(mktemp -d)
chmod 755 "$work"
servers=
stop_servers() {
	for pid in $servers; do kill "$pid" 2> /dev/null || :; done
	for pid in $servers; do wait "$pid" || :; done
	servers=
}
trap 'stop_servers; rm -rf "$work"' EXIT
cd "$work"
bin=/usr/lib/postgresql/15/bin
pg="setpriv --reuid postgres --clear-groups --regid postgres"

# Each prepares what `load` needs; "$@" is what the program has to be started with.

# 24 files of unequal size
prepare_compile() {
	for i in $(seq 24); do
		printf '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n' > "f$i.c"
		for j in $(seq $((10 + i * 4 % 50))); do
			echo "int f${i}_$j(int x) { char t[64]; snprintf(t, sizeof(t), \"%d\", x * $j); return atoi(t); }"
		done >> "f$i.c"
	done
	rm -f ./*.o
	printf 'all: $(patsubst %%.c,%%.o,$(wildcard *.c))\n%%.o: %%.c\n\t@gcc -O1 -c -o $@ $<\n' > Makefile
	load="make -s -j4"
}

prepare_redis() {
	"$@" redis-server --port 7001 --save '' --appendonly no > redis.log &
	servers=$!
	load="redis-benchmark -p 7001 -c 16 -n 500000 -t get -q"
}

prepare_nginx() {
	head -c 2000 /dev/zero > page
	cat > nginx.conf <<END
worker_processes 2;
daemon off;
user root;
pid $work/nginx.pid;
error_log $work/nginx.log crit;
events { worker_connections 256; }
http { access_log off; server { listen 127.0.0.1:7002; root $work; } }
END
	"$@" nginx -c "$work/nginx.conf" &
	servers=$!
	load="wrk -t 2 -c 16 -d 3 http://127.0.0.1:7002/page"
}

prepare_postgres() {
	if [ ! -d pg ]; then
		mkdir pg
		chown postgres pg
		$pg $bin/initdb --auth trust -D "$work/pg/data" > initdb.log
	fi
	"$@" $pg $bin/postgres -D "$work/pg/data" -k "$work/pg" -c listen_addresses= 2> postgres.log &
	servers=$!
	sleep 1
	$bin/dropdb -h "$work/pg" -U postgres --if-exists bench 2> /dev/null
	$bin/createdb -h "$work/pg" -U postgres bench
	$bin/pgbench -h "$work/pg" -U postgres -q -i -s 2 bench 2> /dev/null
	load="$bin/pgbench -h $work/pg -U postgres -c 6 -j 2 -T 3 bench"
}

# a picture of 640x360 that moves
prepare_x264() {
	[ -f video.y4m ] || python3 - <<'END'
w, h = 640, 360
with open("video.y4m", "wb") as out:
    out.write(b"YUV4MPEG2 W%d H%d F25:1 C420\n" % (w, h))
    for n in range(120):
        row = bytes((x * 5 + n * 3 ^ x * n >> 5) & 255 for x in range(w + h))
        out.write(b"FRAME\n" + b"".join(row[y:y + w] for y in range(h)) + bytes([128]) * (w * h // 2))
END
	load="x264 --preset medium --threads 4 -o /dev/null video.y4m"
}

for name in $names; do
	for cpus in 2 1; do
		on=
		[ $cpus = 2 ] || on="taskset -c 0"
		"prepare_$name" env $on
		sleep 0.3
		if [ -z "$servers" ]; then
			# the program from its beginning to its end
			coreward record --workload -o "$out/$name-$cpus.cwr" -- env $on $load > "$out/$name-$cpus.txt" 2>&1
		else
			# a second of the steady state
			$on $load > "$out/$name-$cpus.txt" 2>&1 &
			load=$!
			sleep 1
			coreward record --workload --duration 1 -o "$out/$name-$cpus.cwr"
			wait $load
		fi
		stop_servers
	done
done
