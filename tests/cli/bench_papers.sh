#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# primefs-bench s1, s3 and s5: the file that primefs imports is the one that others load, every size and page is measured, and two
# kinds of column indexes answer alike. What is measured several times is a median, with the least and the most.
# shellcheck disable=SC2154 # variables of tests/lib.sh
. "$(dirname "$0")/../lib.sh"

ok 's1 writes what others load' primefs-bench s1 --nodes=1000 --record=7 --peers="$work" --dir="$work"
is 'a row a node, with its path and its record' "$(awk -F, 'NR > 1 && $4 ~ /^00000000/ && $5 == "xxxxxxx"' "$work/tree.csv" |
	wc -l)" 1000
ok 'primefs imports that file' primefs import -q --format=csv --id=id --parent=parent --name=name "$work/tree.csv" "$store"
is 'all of it, and the root' "$(primefs tree "$store" count /)" 1001
is 'with the records' "$(primefs query "$store" "SELECT count(*) FROM nodes WHERE data = 'xxxxxxx'" | tail -n 1)" 1000

primefs-bench s5 --keys=6000 --sizes >"$work/s5"
ok 's5 has the sizes below' grep -q '^5000 keys, ' "$work/s5"
is 's5 has the keys themselves in each page' "$(grep -c '^6000 keys, ' "$work/s5")" 5
is 'pages' "$(sed -n 's/^    in pages of \([0-9]*\) entries, .* bytes a key$/\1/p' "$work/s5" | xargs)" '62 62 14 30 126 254'
not_ok 'every answer is right' grep -q BAD "$work/s5"
range='\[[0-9.]* [0-9.]*\]'
for what in creation search '    beside a sorted array, one thread' 'visit of all' 'range, a hundredth' 'insertion, a batch' 'deletion, a batch'; do
	n=$(grep -c "^$what  " "$work/s5")
	is "$what: medians" "$(grep -c "^$what  *[0-9.]* ms $range " "$work/s5")" "${n/#0/some}"
done
is 'a single key, beside SQLite' "$(grep -A 2 '^insertion, a single key' "$work/s5" |
	grep -cE "^(insertion, a single|    beside SQLite).* us $range ")" "$((2 * $(grep -c '^creation' "$work/s5")))"

primefs-bench s3 --keys=1000 --questions=100 --set=urls >"$work/s3"
is 's3 has every size' "$(sed -n 's/^urls, on demand, \([0-9]*\) keys.*/\1/p' "$work/s3" | xargs)" '100 1000'
primefs-bench s3 --keys=10000 --questions=100 --set=components >>"$work/s3"
for what in 'get, a batch' 'get, one by one, serial' 'get, a batch, in a sorted array, one thread' 'next, all keys' \
	'get, a batch, and the next ten of each key' 'prefix scan, a key of 12 on average' 'deletion, a batch' \
	'beside a sorted array, one thread' 'an index of 1000 by its name'; do
	n=$(grep -c "^    $what  " "$work/s3")
	is "s3, $what: medians" "$(grep -c "^    $what  *[0-9.]* us $range " "$work/s3")" "${n/#0/some}"
done
is 'pages out and in, beside a copy' "$(grep -cE "^    (pages out|in again|beside a copy).* ms $range .*GB/s\$" "$work/s3")" 6
not_ok 'every answer of s3 is right' grep -q BAD "$work/s3"

primefs-bench s5 --keys=3000 --columns >"$work/columns"
is 'before changes, after few and after many' "$(grep -c '^range of a hundredth' "$work/columns")" 3
is 'medians of both' "$(grep -c "^range of a hundredth.* ms $range .* ms $range" "$work/columns")" 3
not_ok 'they answer alike' grep -q BAD "$work/columns"
check_store
