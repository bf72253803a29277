#!/bin/bash
# SPDX-License-Identifier: MIT
# The five tests of `primefs-bench s1` on SQLite (materialised paths) and PostgreSQL (ltree), over the
# tree and the queries that `primefs-bench s1 --peers=DIR` wrote.
#
#	s1_peers.sh DIR
#
# Each is set up as its user would: bulk load, then the indexes; paths compare by bytes; a fifth of the
# memory as cache.  Additions are the load of DIR/tree.csv, records and indexes included: by `primefs import`, of the
# primefs in PATH, too.  The other tests are one statement a query in one session.  A server is made and removed
# again; as root it runs as the user postgres.
set -euo pipefail

dir=$(realpath "${1:?DIR}")
nodes=$(($(wc -l <"$dir/tree.csv") - 1))
memory_mb=$(awk '/MemTotal/ { printf "%d", $2 / 1024 / 5 }' /proc/meminfo)

seconds() { # runs the command, prints how long it took
	local start end
	start=$(date +%s.%N)
	"$@" >"$dir/out"
	end=$(date +%s.%N)
	echo "$end - $start" | bc
}

row() { # name additions subtrees parents tree nodes, in seconds
	awk -v name="$1" -v n="$nodes" -v add="$2" -v sub_="$3" -v par="$4" -v tree="$5" -v node="$6" \
		'BEGIN { printf "%-26s %12.0f %12.1f %12.1f %10.3f %12.1f\n", name, n / add, 3500 / sub_,
			3500 / par, tree, 10000 / node }'
}

# ---- primefs ----

primefs_load() {
	primefs import -q --format=csv --id=id --parent=parent --name=name "$dir/tree.csv" "$dir/s1.pfs"
}

if command -v primefs >/dev/null; then
	rm -f "$dir"/s1.pfs*
	awk -v n="$nodes" -v s="$(seconds primefs_load)" \
		'BEGIN { printf "%-26s %12.0f\n", "primefs import", n / s }'
	rm -f "$dir"/s1.pfs*
else
	echo "primefs: not in PATH, left out"
fi

# ---- SQLite ----

sqlite_load() {
	sqlite3 "$dir/s1.db" <<-SQL
		PRAGMA journal_mode = OFF;
		PRAGMA synchronous = OFF;
		CREATE TEMP TABLE t (id INTEGER PRIMARY KEY, parent INTEGER, name TEXT, path TEXT, data TEXT);
		.mode csv
		.import --schema temp --skip 1 $dir/tree.csv t
		CREATE TABLE node (id INTEGER PRIMARY KEY, path TEXT NOT NULL, data TEXT NOT NULL);
		INSERT INTO node SELECT id, path, data FROM t;
		CREATE UNIQUE INDEX node_path ON node (path);
		ANALYZE;
		PRAGMA journal_mode = WAL;
	SQL
}

sqlite_run() { # file of statements
	sqlite3 -cmd "PRAGMA cache_size = -$((memory_mb * 1024))" "$dir/s1.db" <"$1"
}

sqlite_statements() {
	awk '{ printf "SELECT count(*), sum(length(data)) FROM node WHERE path = \x27%s\x27 " \
		"OR path > \x27%s.\x27 AND path < \x27%s/\x27;\n", $1, $1, $1 }' \
		"$dir/subtrees" >"$dir/subtrees.sql"
	awk -F. '{ list = ""; path = ""
		for (i = 1; i < NF; i++) { path = path (i > 1 ? "." : "") $i
			list = list (i > 1 ? "," : "") "\x27" path "\x27" }
		printf "SELECT count(*), sum(length(data)) FROM node WHERE path IN (%s);\n", list }' \
		"$dir/parents" >"$dir/parents.sql"
	echo 'SELECT count(*), sum(length(data)) FROM node;' >"$dir/tree.sql"
	awk '{ printf "SELECT id, length(data) FROM node WHERE path = \x27%s\x27;\n", $1 }' \
		"$dir/nodes" >"$dir/nodes.sql"
}

if command -v sqlite3 >/dev/null; then
	rm -f "$dir"/s1.db*
	add=$(seconds sqlite_load)
	sqlite_statements
	row "SQLite, paths" "$add" "$(seconds sqlite_run "$dir/subtrees.sql")" \
		"$(seconds sqlite_run "$dir/parents.sql")" "$(seconds sqlite_run "$dir/tree.sql")" \
		"$(seconds sqlite_run "$dir/nodes.sql")"
	rm -f "$dir"/s1.db*
else
	echo "SQLite: no sqlite3 command, left out"
fi

# ---- PostgreSQL ----

bin=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -1)
if [ -z "$bin" ] || ! [ -e "$(find /usr/share/postgresql -name ltree.control 2>/dev/null | head -1)" ]; then
	echo "PostgreSQL: no server with ltree, left out"
	exit 0
fi
as() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }
cluster=$(as mktemp -d /tmp/primefs-s1-XXXXXX)
stop() {
	as "$bin/pg_ctl" -D "$cluster/db" -m immediate stop >/dev/null 2>&1 || true
	rm -rf "$cluster"
}
trap stop EXIT
as "$bin/initdb" -D "$cluster/db" --auth=trust --encoding=UTF8 --locale=C >/dev/null
as "$bin/pg_ctl" -D "$cluster/db" -w -l "$cluster/log" -o "-k $cluster -c listen_addresses='' \
	-c shared_buffers=${memory_mb}MB -c work_mem=64MB -c maintenance_work_mem=512MB \
	-c max_wal_size=8GB -c jit=off -c max_parallel_workers_per_gather=2" start >/dev/null

pg() { as "$bin/psql" -h "$cluster" -d postgres -qAtX -v ON_ERROR_STOP=1 "$@"; }
pg_file() { pg <"$1"; }
pg_load() {
	pg -c "CREATE EXTENSION ltree" \
		-c "CREATE TABLE t (id integer, parent integer, name text, path ltree, data text)" \
		-c "COPY t FROM STDIN CSV HEADER" <"$dir/tree.csv"
	pg <<-SQL
		CREATE TABLE node (id integer PRIMARY KEY, path ltree NOT NULL, data text NOT NULL);
		ALTER TABLE node ALTER data SET STORAGE EXTERNAL;
		INSERT INTO node SELECT id, path, data FROM t;
		CREATE INDEX ON node USING gist (path);
		CREATE UNIQUE INDEX ON node (path);
		ANALYZE node;
	SQL
}
# The concatenation makes the server read the value, as the records are read elsewhere.
value="sum(length(data || 'x'))"
pg_statements() {
	awk -v v="$value" '{ printf "SELECT count(*), %s FROM node WHERE path <@ \x27%s\x27;\n", v, $1 }' \
		"$dir/subtrees" >"$dir/subtrees.sql"
	awk -v v="$value" '{ printf "SELECT count(*), %s FROM node WHERE path @> \x27%s\x27;\n", v, $1 }' \
		"$dir/parents" >"$dir/parents.sql"
	echo "SELECT count(*), $value FROM node;" >"$dir/tree.sql"
	awk '{ printf "SELECT id, length(data || \x27x\x27) FROM node WHERE path = \x27%s\x27;\n", $1 }' \
		"$dir/nodes" >"$dir/nodes.sql"
}
add=$(seconds pg_load)
pg_statements
row "PostgreSQL, ltree" "$add" "$(seconds pg_file "$dir/subtrees.sql")" \
	"$(seconds pg_file "$dir/parents.sql")" "$(seconds pg_file "$dir/tree.sql")" \
	"$(seconds pg_file "$dir/nodes.sql")"
