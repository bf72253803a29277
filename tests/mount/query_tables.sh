#!/bin/bash
# SPDX-License-Identifier: MIT
# .query/tables: side tables as CSV files.
# shellcheck disable=SC2002,SC2012 # listings and pipes are what is tested
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse

mkdir -p tree/a tree/c
echo one >tree/a/x.c
echo hi >tree/c/z.c
echo no >tree/c/z.txt
primefs import tree "$store" >/dev/null
mount_store
t=$mnt/.query/tables
table() { tr -d '\r' <"$t/$1.csv"; } # written with CRLF, as RFC 4180 has it
sql() { cat "$mnt/.query/sql/$1"; }

printf 'ext,kind,weight\nc,source,2\ntxt,prose,\n' >kinds.csv
is 'only the schema at first' "$(ls "$t")" nodes.schema
is 'the schema' "$(head -n 2 "$t/nodes.schema")" "$(printf 'column\ttype\npath\tTEXT')"
ok 'cp makes a table' cp kinds.csv "$t/kinds.csv"
is 'it is listed' "$(ls "$t" | tr '\n' ' ')" 'kinds.csv nodes.schema '
is 'it reads back' "$(table kinds)" "$(cat kinds.csv)"
is 'its size, open' "$(stat -Lc %s /dev/fd/5 5<"$t/kinds.csv")" "$(cat "$t/kinds.csv" | wc -c)"
is 'it joins' "$(sql 'SELECT kind, count(*) AS n FROM nodes NATURAL JOIN kinds GROUP BY kind')" \
	"$(printf 'kind\tn\nprose\t1\nsource\t2')"
is 'the same in every directory' "$(tr -d '\r' <"$mnt/a/.query/tables/kinds.csv")" "$(cat kinds.csv)"
printf 'ext,kind\nc,code\n' >"$t/kinds.csv"
is 'writing replaces it, whole' "$(table kinds)" "$(printf 'ext,kind\nc,code')"
echo 'h,header' >>"$t/kinds.csv"
is 'appending' "$(table kinds)" "$(printf 'ext,kind\nc,code\nh,header')"
not_ok 'a wrong one: close fails' bash -c "printf 'a,b\n1,2,3\n' | dd of='$t/kinds.csv' status=none"
ok 'and error says where' grep -q 'kinds.csv: .*2' "$mnt/.query/error"
is 'the old one stays' "$(table kinds | tail -n 1)" h,header
not_ok 'a wrong new one' bash -c "printf 'a,a\n1,2\n' | dd of='$t/new.csv' status=none"
not_ok 'is not there' test -e "$t/new.csv"
cp kinds.csv brought.csv
is 'mv brings one without a word' "$(mv brought.csv "$t/brought.csv" 2>&1)" ''
is 'as it was' "$(table brought)" "$(cat kinds.csv)"
is 'so does cp -p' "$(cp -p kinds.csv "$t/brought.csv" 2>&1)" ''
is 'and install' "$(install -m 600 kinds.csv "$t/brought.csv" 2>&1)" ''
ok 'it goes' rm "$t/brought.csv"
fails_with 'nodes is reserved' 'File exists' cp kinds.csv "$t/nodes.csv"
fails_with "so are functions'" 'File exists' cp kinds.csv "$t/resolve.csv"
is 'which are there as before' "$(sql "SELECT path FROM resolve(char(47) || 'a')" | tail -n 1)" /a
not_ok 'other names' cp kinds.csv "$t/kinds.tsv"
not_ok 'no directories' mkdir "$t/d.csv"
ok 'mv into it' mv kinds.csv "$t/moved.csv"
is 'has moved' "$(table moved | head -n 1)" ext,kind,weight
remount_store
is 'it is kept' "$(table moved | head -n 1)" ext,kind,weight
ok 'rm drops it' rm "$t/moved.csv"
not_ok 'it is gone' cat "$t/moved.csv"
not_ok 'from statements, too' sql 'SELECT * FROM moved'
not_ok 'not the schema' rm "$t/nodes.schema"
sql_run() { printf '%s' "$1" >"$mnt/.query/run"; }
ok 'an index' sql_run 'CREATE TABLE indexed AS SELECT 1 AS a'
ok 'of a table' sql_run 'CREATE INDEX of_a ON indexed(a)'
printf 'b\n2\n' >other.csv
fails_with 'keeps its name' 'File exists' cp other.csv "$t/Of_A.csv"
ok 'and error says why' grep -q 'Of_A.csv: Of_A: an index has that name' "$mnt/.query/error"
is 'the table is there as before' "$(table indexed)" "$(printf 'a\n1')"
ok 'which goes with it' rm "$t/indexed.csv"
ok 'then the name is free' cp other.csv "$t/of_a.csv"
ok 'for a table' rm "$t/of_a.csv"
seq 200000 | sed 's/.*/row &,&/; 1i name,n' | sed 's/$/\r/' >large.csv
ok 'a large one' cp large.csv "$t/large.csv"
ok 'reads back' cmp large.csv "$t/large.csv"
is 'and is counted' "$(sql 'SELECT sum(n) FROM large' | tail -n 1)" 20000100000
unmount_store
mount_store -o ro
is 'read-only: read' "$(table large | head -n 1)" name,n
not_ok 'read-only: not written' cp large.csv "$t/other.csv"
not_ok 'read-only: not dropped' rm -f "$t/large.csv"
unmount_store
check_store
