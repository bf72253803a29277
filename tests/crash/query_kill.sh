#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# kill -9 of the daemon while statements move 20,000 nodes at once, replace a table, and change all rows of two others, one
# of which has 75 MB: of each set all have moved or none, the tables are whole ones, no row that was synced is as before,
# and the store is sound.
# timeout: 240
. "$(dirname "$0")/../lib.sh"
requires fuse

cycles=8
((!PFS_LONG)) || cycles=100
seed=${PFS_SEED:-$((RANDOM * 32768 + RANDOM))}
echo "PFS_SEED=$seed"
RANDOM=$seed
n=20000
q=$mnt/.query
run() { printf '%s' "$1" >"$q/run"; }
sql() { tail -n 1 "$q/sql/$1"; }

seq "$n" | sed 's|^|/a/f|' | primefs import --format=paths - "$store" >/dev/null
for rows in 1000 2000; do
	{ echo a && seq "$rows"; } >"$rows.csv"
done

# Goes on until the daemon is gone.
change() {
	local i
	for ((i = 0; ; i++)); do
		run "UPDATE nodes SET name = iif(name GLOB 'f*', 'g', 'f') || substr(name, 2), mode = 33188 WHERE child_of(ino, '/a')" || return 0
		((i % 3)) || sync "$mnt/a" || return 0
		echo "$i" >"$work/turns"
	done
}
count() {
	local i
	for ((i = 0; ; i++)); do
		run 'UPDATE counts SET n = n + 1' || return 0
		((i % 5)) || { sync "$mnt" && echo "$((counted + i + 1))" >"$work/synced"; } || return 0
	done
}
grow() { while run 'UPDATE large SET n = n + 1'; do :; done; }
replace() { while cp "$((1000 + RANDOM % 2 * 1000)).csv" "$q/tables/t.csv"; do :; done; }

turns=0 moved=0
for ((cycle = 0; cycle < cycles; cycle++)); do
	mount_in_foreground
	if ((cycle)); then
		moved=$(sql "SELECT count(*) FROM nodes WHERE name GLOB 'g*'")
		ok "cycle $cycle: all have moved or none" test "$moved" -eq 0 -o "$moved" -eq "$n"
		is "cycle $cycle: nobody is missing" "$(sql "SELECT count(*) FROM nodes WHERE name GLOB '[fg]*'")" "$n"
		ok "cycle $cycle: a whole table" grep -qxE '1001|2001' <(wc -l <"$q/tables/t.csv")
		is "cycle $cycle: all rows have changed as often" "$(sql 'SELECT count(DISTINCT n), count(*) FROM counts')" $'1\t1000'
		is "cycle $cycle: and all of the large table" "$(sql 'SELECT count(DISTINCT n), count(*), sum(length(t)) FROM large')" $'1\t250\t75000000'
		counted=$(sql 'SELECT max(n) FROM counts')
		ok "cycle $cycle: as often as was synced, or more often" test "$counted" -ge "$(cat synced)"
	else
		run 'CREATE TABLE counts (n INTEGER)'
		run "INSERT INTO counts SELECT 0 FROM nodes WHERE name GLOB 'f*' LIMIT 1000"
		run 'CREATE TABLE large (n INTEGER, t TEXT)'
		run "INSERT INTO large SELECT 0, hex(zeroblob(150000)) FROM nodes WHERE name GLOB 'f*' LIMIT 250"
		counted=0
		echo 0 >synced
		cp 1000.csv "$q/tables/t.csv"
	fi
	: >turns
	change 2>/dev/null &
	changing=$!
	replace 2>/dev/null &
	replacing=$!
	count 2>/dev/null &
	counting=$!
	grow 2>/dev/null &
	growing=$!
	wait_for 30 test -s turns
	sleep "0.$((RANDOM % 9 + 1))"
	kill -9 "$daemon"
	wait "$daemon" "$changing" "$replacing" "$counting" "$growing" 2>/dev/null || true
	turns=$((turns + $(cat turns || true) + 0))
	force_unmount "$mnt"
	check_store
done
ok 'statements had been done' test "$turns" -gt 0
