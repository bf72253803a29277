#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# primefs-bench query: that it runs to its end and prints each figure beside its yardstick; never how
# large they are.
# shellcheck disable=SC2154 # variables of tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse

bench() { primefs-bench query --runs=2 --folder="$work" "$@"; }

# DuckDB's program, as far as it is used: it reads its script and says how long each statement took.
mkdir bin
cat >bin/duckdb <<'END'
#!/bin/sh
cat >"$0.script"
sed -n '/^\.timer on/,$p' "$0.script" | sed -n 's/;$/Run Time (s): real 0.125 user 0.1 sys 0.01/p' | sed 's/^.*Run/Run/'
sed -n "s/^COPY nodes FROM '\(.*\)' (.*/\1/p" "$0.script" | xargs cat >"$0.csv"
END
chmod +x bin/duckdb


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
command -v duckdb >/dev/null || is 'DuckDB is missed once' "$(grep -c '^duckdb: not installed$' out)" 1
is 'nothing is left behind' "$(find "$work" -maxdepth 1 -name 'primefs-bench*')" ''

mkdir -p tree/deep/er
for name in libx lib.json data.json; do
	head -c 12345 /dev/zero >"tree/deep/$name"
	head -c 1234567 /dev/zero >"tree/deep/er/$name"
done
printf 'x' >$'tree/deep/\xff"quoted"'
primefs import tree "$store" >/dev/null
PATH=$work/bin:$PATH bench --beside "$work/tree" "$store" >out
ok 'find on the mount' grep -qF '; find ' out
ok 'and on the original' grep -qF '; find on the original ' out
ok 'du on the original' grep -qF '; du on the original ' out
is 'DuckDB, where it is' "$(grep -c '; DuckDB 125 ms \[125 125\]; ratio' out)" "$(grep -c '; SQLite ' out)"
is 'with all rows' "$(wc -l <bin/duckdb.csv)" "$(primefs query "$store" 'SELECT count(*) FROM nodes' | tail -n 1)"
ok 'whatever their names' grep -qF '"??quoted??"' <(tr '"' '?' <bin/duckdb.csv | sed 's/??*quoted??*/"??quoted??"/')
PATH=$work/bin:$PATH bench --json "$store" >out.json
python 'as JSON' -c 'import json, sys
rows = json.load(open(sys.argv[1]))
assert any(r.get("yardstick") == "DuckDB" and r["ratio"] > 0 for r in rows)
assert any(r["what"] == "du -s" and r["wanted_ratio"] == 20 for r in rows if "what" in r)' out.json
printf '#!/bin/sh\necho Run Time: real 0.1\nexit 1\n' >bin/duckdb
PATH=$work/bin:$PATH bench "$store" >out 2>errors
ok 'one that stops is left out' grep -q 'duckdb stops at' errors
is 'without a figure' "$(grep -c DuckDB out)" 0
exits 'a store that there is not' 3 bench "$work/none.pfs"
exits 'too few nodes' 2 bench --nodes=1
check_store
