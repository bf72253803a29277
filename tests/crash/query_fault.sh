#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The disk below the store fails while statements change sets of nodes and side tables: each is done, whole, or
# refused with an errno, and what the mount shows is what the store has in the end.
. "$(dirname "$0")/../lib.sh"
requires fuse

q=$mnt/.query
run() { printf '%s' "$1" >"$q/run"; }
sql() { tail -n 1 "$q/sql/$1"; }
can_change() { run "UPDATE nodes SET mode = 448 WHERE path = '/d'" && sync "$mnt"; }
table() { tr -d '\r' <"$q/tables/t.csv"; }
is_whole() { (($1 == 0 || $1 == 50)); }

for rows in 10 20; do
	{ echo a && seq "$rows"; } >"$rows.csv"
done
reasons='Input/output error|No space left on device|Cannot allocate memory|Read-only file system'

# fault NAME PLAN
fault() {
	local name=$1 moved
	run "INSERT INTO nodes (path, type) VALUES ('/$name', 'd')"
	run "INSERT INTO nodes (path) WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i WHERE v < 50) SELECT '/$name/f' || v FROM i"
	cp 10.csv "$q/tables/t.csv"
	sync "$mnt"
	run 'INSERT INTO t VALUES (77)' # for a commit that fails as long as the fault lasts
	begin_fault "$2"
	run "UPDATE nodes SET path = '/d/$name-' || name WHERE child_of(ino, '/$name')" 2>/dev/null || true
	fails_with "$name: a table from CSV" "$reasons" cp 20.csv "$q/tables/t.csv"
	fails_with "$name: a new one" "$reasons" cp 20.csv "$q/tables/new$name.csv"
	fails_with "$name: a table dropped" "$reasons" rm "$q/tables/t.csv"
	sync "$mnt" 2>/dev/null || true # from now on it is known
	not_ok "$name: a statement about a table" run 'DELETE FROM t'
	not_ok "$name: a statement about nodes" run "UPDATE nodes SET mode = 511 WHERE name GLOB '$name*'"
	moved=$(find "$mnt/d" -name "$name-*" | wc -l)
	ok "$name: all have moved or none" is_whole "$moved"
	is "$name: and are there once" $((moved + $(find "$mnt/$name" -name 'f*' | wc -l))) 50
	end_fault
	ok "$name: it goes on" wait_for 20 can_change
	is "$name: moved, as statements see it" "$(sql "SELECT count(*) FROM nodes WHERE name GLOB '$name-*'")" "$moved"
	is "$name: the table is as it was" "$(table)" "$(cat 10.csv && echo 77)"
	ok "$name: tables change again" cp 20.csv "$q/tables/t.csv"
	ok "$name: and nodes" run "UPDATE nodes SET mode = 420 WHERE under(ino, '/$name') OR name GLOB '$name-*'"
}

mount_faulty
mkdir "$mnt/d"
fault write 'write:0:*:EIO'
fault sync 'sync:0:*:EIO'
fault space 'write:0:*:ENOSPC'
fault memory 'memory:0:*:ENOMEM'

# For a few calls only, wherever they are.
for i in {1..12}; do
	run "INSERT INTO nodes (path, type) VALUES ('/once$i', 'd'), ('/once$i/a', 'f'), ('/once$i/b', 'f')"
	begin_fault "any:$((i * 3)):2:EIO"
	run "UPDATE nodes SET name = 'moved' || name WHERE child_of(ino, '/once$i')" 2>/dev/null || true
	if cp "$((i % 2 * 10 + 10)).csv" "$q/tables/t.csv" 2>/dev/null; then
		run "INSERT INTO t VALUES (99)" 2>/dev/null || true
	fi
	sync "$mnt" 2>/dev/null || true
	end_fault
	wait_for 20 can_change
done
halves=0
for i in {1..12}; do
	[[ $(ls "$mnt/once$i") == $'a\nb' || $(ls "$mnt/once$i") == $'moveda\nmovedb' ]] || halves=$((halves + 1))
done
is 'no set by halves' "$halves" 0
ok 'a whole table' grep -qxE '1[12]|2[12]' <(table | wc -l)
sync "$mnt"
find "$mnt" -printf '%P %m %i\n' | sort >before
table >table.before
primefs umount "$mnt"
check_store
mount_store
is 'the store has what the mount had' "$(find "$mnt" -printf '%P %m %i\n' | sort)" "$(cat before)"
is 'the table, too' "$(table)" "$(cat table.before)"
unmount_store
