#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `primefs check` finds what somebody else broke in a store: status 1 and a list.
. "$(dirname "$0")/../lib.sh"

printf '%s\n' a/b/c a/d e >"$work/list"
primefs import --format=paths "$work/list" "$work/sound.pfs" >/dev/null
exits 'a sound store' 0 primefs check "$work/sound.pfs"

# The engine's codes: on the processor, and on a device that is none and gets one of them wrong.
cp "$work/sound.pfs" "$store"
exits 'codes on the host' 0 primefs check --engine=host "$store"
exits 'an unknown engine is wrong usage' 2 primefs check --engine=abacus "$store"
device=$PFS_BUILD/tests/device/primefs
if [[ -x $device ]]; then
	exits 'codes on a device' 0 "$device" check --engine=cuda "$store"
	export PRIMEFS_CUDA_SPOIL=2
	exits 'a wrong code' 1 "$device" check --engine=cuda "$store"
	is 'is said to be wrong' "$("$device" check "$store" | grep -o '1 of 3 codes on the engine cuda are wrong')" \
		'1 of 3 codes on the engine cuda are wrong'
	ok 'in JSON, too' grep -q '"sound": false' <("$device" check --json "$store")
	exits 'and is nothing to the host' 0 "$device" check --engine=host "$store"
	unset PRIMEFS_CUDA_SPOIL
	for n in 1 2; do
		exits "a device that fails at call $n is left" 0 \
			env PRIMEFS_CUDA_FAIL_AT=$n "$device" check --engine=cuda "$store"
	done
else
	skip 'no stand-in for a device'
fi

mkdir "$work/src"
echo x >"$work/src/x"
primefs import --quiet "$work/src" "$work/linked.pfs"
is 'links that are followed are nothing to say' "$(primefs check "$work/linked.pfs")" ''
cp "$work/linked.pfs" "$store"
exits 'those of a copy are no damage' 0 primefs check "$store"
is 'but said to be not followed, in one line' "$(primefs check "$store" | grep -c 'store.pfs: 1 files that are linked.*import --trust')/$(primefs check "$store" | wc -l)" 1/1
ok 'in JSON, too' grep -q '"sound": true' <(primefs check --json "$store")
is 'as a finding' "$(primefs check --json "$store" | grep -c 'import --trust')" 1

requires sqlite3

# broken DESCRIPTION SQL: check does not accept the store that SQL makes.
broken() {
	local status=0 output
	cp "$work/sound.pfs" "$store"
	sqlite3 "$store" "$2"
	output=$(primefs check "$store" 2>&1) || status=$?
	if [[ $status == 1 && $output ]] || [[ $status == 3 && $(wc -l <<<"$output") == 1 ]]; then
		pass "$1: ${output%%$'\n'*}"
	else
		fail "$1: status $status, $output"
	fi
}
named() { echo "name = CAST('$1' AS BLOB)"; }

broken 'a number that is no prime' "UPDATE node SET prime = prime + 1 WHERE $(named b)"
broken 'a file among the directories'"'"' primes' "UPDATE node SET prime = 65537 WHERE $(named e)"
broken 'a directory among the files'"'"' primes' \
	"UPDATE node SET parent = 4295000011 WHERE parent = (SELECT prime FROM node WHERE $(named b)); UPDATE node SET prime = 4295000011 WHERE $(named b)"
broken 'an unknown parent' "UPDATE node SET parent = 999983 WHERE $(named e)"
broken 'a parent that is no directory' \
	"UPDATE node SET parent = (SELECT prime FROM node WHERE $(named e)) WHERE $(named d)"
broken 'a cycle' "UPDATE node SET parent = (SELECT prime FROM node WHERE $(named b)) WHERE $(named a)"
broken 'one name twice' "UPDATE node SET name = CAST('d' AS BLOB) WHERE $(named b)"
broken 'a name with a slash' "UPDATE node SET name = CAST('x/y' AS BLOB) WHERE $(named e)"
broken 'an empty name' "UPDATE node SET name = CAST('' AS BLOB) WHERE $(named e)"
broken 'no root' 'DELETE FROM node WHERE prime = 2'
broken 'content of nobody' "INSERT INTO chunk (prime, n, data) VALUES (4295000023, 0, CAST('x' AS BLOB))"
broken 'an attribute of nobody' \
	"INSERT INTO attr_name (name) VALUES (CAST('x' AS BLOB)); INSERT INTO attr SELECT 4295000023, id, 'x' FROM attr_name LIMIT 1"
broken 'one slot twice' "UPDATE node SET slot = (SELECT slot FROM node WHERE $(named e)) WHERE $(named d)"
# An index of paths whose name is none closes nothing.
cp "$work/sound.pfs" "$work/named.pfs"
primefs query "$work/named.pfs" 'CREATE INDEX p ON nodes(path)' >/dev/null
primefs query "$work/named.pfs" 'CREATE TABLE t(x)' >/dev/null
exits 'a path index and a table' 0 primefs check "$work/named.pfs"
# misnamed NAME FINDING: an index of that name, as SQL, is found, and the store can be used.
misnamed() {
	cp "$work/named.pfs" "$store"
	sqlite3 "$store" "INSERT INTO path_index (name, definition) VALUES ($1, CAST('path' AS BLOB))"
	is "a path index named $1" "$(primefs check "$store")" "$store: $2: 2"
	is 'with statements' "$(primefs query "$store" 'SELECT count(*) FROM nodes' | tail -n 1)" 6
	ok 'and changes of the other' primefs query "$store" 'DROP INDEX p'
}
misnamed "x'610062'" 'a path index that is none, number'
misnamed "x''" 'a path index that is none, number'
misnamed "x'54'" 'a path index with the name of another, or of a side table, number'
misnamed "x'50'" 'a path index with the name of another, or of a side table, number'
cp "$work/sound.pfs" "$store"
dd if=/dev/zero of="$store" bs=1 seek=8192 count=64 conv=notrunc status=none
exits 'a page of zeros at the beginning is damage' 1 primefs check "$store"
is 'which is a finding as well' "$(primefs check --json "$store" | grep -c 'damaged beyond opening')" 1

# Whatever keeps statements from a store, check finds.
cp "$work/sound.pfs" "$work/table.pfs"
primefs query "$work/table.pfs" 'CREATE TABLE t AS SELECT 1 AS k' >/dev/null
tables='meta side_table' values="-1 x''"
if ((PFS_LONG)); then
	tables=$(sqlite3 "$work/table.pfs" "SELECT name FROM sqlite_schema WHERE type = 'table'")
	values="$values 0 1 3 4294967296 9223372036854775807 'x' x'00' NULL"
fi
missed=''
for table in $tables; do
	for column in $(sqlite3 "$work/table.pfs" "SELECT name FROM pragma_table_info('$table')"); do
		for value in $values; do
			cp "$work/table.pfs" "$store"
			sqlite3 "$store" "UPDATE OR REPLACE $table SET $column = $value" 2>/dev/null || continue
			if primefs query "$store" 'SELECT count(path), (SELECT k FROM t) FROM nodes' >/dev/null 2>&1 ||
				! primefs check "$store" >/dev/null 2>&1; then continue; fi
			missed+=" $table.$column=$value"
		done
	done
done
is 'whatever a statement meets, check finds' "$missed" ''

# What a check takes grows with the tree, not with its depth: codes are compared as far as they are kept.
{
	echo id,parent,name
	echo 1,,top
	for ((i = 2; i <= 40000; i++)); do echo "$i,$((i - 1)),d$i"; done
} >"$work/chain.csv"
primefs import -q "$work/chain.csv" "$work/chain.pfs"
ok 'a chain of 40,000 directories is checked' timeout 60 primefs check "$work/chain.pfs"

# docs/FORMAT.md names every table and every column.
for table in $(sqlite3 "$work/sound.pfs" "SELECT name FROM sqlite_schema WHERE type = 'table'"); do
	for name in "$table" $(sqlite3 "$work/sound.pfs" "SELECT name FROM pragma_table_info('$table')"); do
		ok "the format's description has $table.$name" grep -qF "\`$name\`" "$top/docs/FORMAT.md"
	done
done
