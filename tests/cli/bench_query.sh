#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# primefs-bench query: that it runs to its end and prints each figure beside its yardstick; never how
# large they are.
# shellcheck disable=SC2154 # variables of tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse

bench() { primefs-bench query --runs=2 --folder="$work" "$@"; }

bench --nodes=3000 --prefix=b --part=a >out 2>errors
is 'says nothing else' "$(cat errors)" ''
for what in 'name prefix, paths' 'joined with 1,000 owners' 'ancestors' 'totals of every directory' \
	'find -name of a prefix' 'find -ls of directories' 'du -s' 'du -h -d 1' 'du of every directory' 'ls -R' 'ls -lR' \
	'SELECT 1 through .query/run' '.query/paths read: 3000 lines'; do
	ok "$what" grep -qF -- "$what" out
done
ok 'beside SQLite' grep -qE '^    [0-9.]+ ms .*; SQLite [0-9.]+ ms .*; ratio [0-9.]+, wanted 1\.00$' out
ok "beside GNU's find" grep -qE '; find [0-9.]+ ms .*; ratio [0-9.]+, wanted 20\.00$' out
ok "beside GNU's ls" grep -qE '; ls [0-9.]+ ms .*; ratio' out
ok 'speed-ups and what is wanted, in a table' grep -qE '^ +[0-9.]+ +20\.00  (met   |MISSED)  du -s, beside du$' out
ok 'and how many are met' grep -qE '^[0-9]+ of [0-9]+ met$' out
if grep -q '; DuckDB ' out; then
	is 'DuckDB beside each statement but that of JSON' "$(grep -c '; DuckDB [0-9.]* ms.*; ratio' out)" \
		"$(($(grep -c '; SQLite ' out) - 1))"
else
	is 'DuckDB is missed once' "$(grep -c '^DuckDB: not installed$' out)" 1
fi
is 'nothing is left behind' "$(find "$work" -maxdepth 1 -name 'primefs-bench*')" ''
bench --nodes=1000 --only=recursion >out
is 'only what was asked for' "$(grep -c '; SQLite ' out) $(grep -c 'find ' out)" '5 0'
bench --nodes=1000 --only=recursion --peers=none >out
is 'and of nobody else' "$(grep -c ' ms \[' out) $(grep -cE 'SQLite|DuckDB' out)" '5 0'
bench --nodes=1000 --only=prefix --peers=sqlite --prefix="'" >out 2>errors
ok 'what is wrong with a statement, in place of its figure' grep -qE '^    primefs: .*unrecognized token' out

is 'the statements themselves' "$(bench --list | head -n 1)" 'SELECT 1'

mkdir -p tree/deep/er
for name in libx lib.json data.json; do
	head -c 12345 /dev/zero >"tree/deep/$name"
	head -c 1234567 /dev/zero >"tree/deep/er/$name"
done
printf 'x' >$'tree/deep/\xff"quoted"'
primefs import tree "$store" >/dev/null
bench --beside "$work/tree" "$store" >out
ok 'find on the mount' grep -qF '; find ' out
ok 'and on the original' grep -qF '; find on the original ' out
ok 'du on the original' grep -qF '; du on the original ' out
LIBDUCKDB=/nowhere bench --json "$store" >out.json
python 'as JSON' -c 'import json, sys
rows = json.load(open(sys.argv[1]))
assert any(r.get("yardstick") == "DuckDB" and r["missing"] for r in rows)
assert any(r["what"] == "du -s" and r["wanted_ratio"] == 20 for r in rows if "what" in r)' out.json
exits 'a store that there is not' 3 bench "$work/none.pfs"
exits 'too few nodes' 2 bench --nodes=1

mounted() { primefs-bench mounted --runs=2 --folder="$work" "$@"; }

mounted --nodes=3000 >out 2>errors
is 'statements through a mount: says nothing else' "$(cat errors)" ''
is 'statements through a mount: each has been asked' "$(grep -c '^    [0-9.]* ms .*, at first [0-9.]* ms' out)" 21
if grep -q '; DuckDB ' out; then
	is 'and of DuckDB, too' "$(grep -c '; DuckDB [0-9.]* ms.*; ratio' out)" 21
else
	is 'and DuckDB is missed once' "$(grep -c '^DuckDB: not installed$' out)" 1
fi
mounted --only=texts --json "$store" >out.json 2>errors
is 'of a store: says nothing else' "$(cat errors)" ''
python 'of a store, as JSON' -c 'import json, sys
rows = json.load(open(sys.argv[1]))
assert [r["what"] for r in rows if "first" in r] == ["joined with 1,000 texts, grouped (1)"], rows' out.json
# Names of which each is one byte that is not UTF-8: DuckDB must count as many of them.
printf 'd/\200\nd/\201\nd/\377\nd/?\n' | primefs import -q - bytes.pfs
mounted --only='distinct names' bytes.pfs >out 2>errors
is 'DuckDB counts as many names that are not UTF-8' "$(cat errors)" ''
rm -f bytes.pfs*
is 'the side table is dropped' "$(primefs query "$store" "SELECT count(*) FROM primefs_bench_texts" 2>&1 | grep -c 'no such table')" 1
exits 'of a store that there is not' 3 mounted --peers=none "$work/none.pfs"
exits 'with an engine that there is not' 2 mounted --engine=none
is 'nothing of it is left behind' "$(find "$work" -maxdepth 1 -name 'primefs-bench*')" ''
check_store
