#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# kill -9 of the daemon while statements move 20,000 nodes at once and replace a table: of each set all
# have moved or none, the table is a whole one, and the store is sound.
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
replace() { while cp "$((1000 + RANDOM % 2 * 1000)).csv" "$q/tables/t.csv"; do :; done; }

turns=0 moved=0
for ((cycle = 0; cycle < cycles; cycle++)); do
	mount_in_foreground
	if ((cycle)); then
		moved=$(sql "SELECT count(*) FROM nodes WHERE name GLOB 'g*'")
		ok "cycle $cycle: all have moved or none" test "$moved" -eq 0 -o "$moved" -eq "$n"
		is "cycle $cycle: nobody is missing" "$(sql "SELECT count(*) FROM nodes WHERE name GLOB '[fg]*'")" "$n"
		ok "cycle $cycle: a whole table" grep -qxE '1001|2001' <(wc -l <"$q/tables/t.csv")
	else
		cp 1000.csv "$q/tables/t.csv"
	fi
	: >turns
	change 2>/dev/null &
	changing=$!
	replace 2>/dev/null &
	replacing=$!
	wait_for 30 test -s turns
	sleep "0.$((RANDOM % 9 + 1))"
	kill -9 "$daemon"
	wait "$daemon" "$changing" "$replacing" 2>/dev/null || true
	turns=$((turns + $(cat turns || true) + 0))
	force_unmount "$mnt"
	check_store
done
ok 'statements had been done' test "$turns" -gt 0
