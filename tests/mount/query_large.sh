#!/bin/bash
# SPDX-License-Identifier: MIT
# Results larger than what is kept in memory in any case (4 MiB): one state of the tree from open to close, whatever
# changes meanwhile, read from the front, the end, in pieces and by many programs.
# shellcheck disable=SC2002,SC2015,SC2094 # pipes, and files read twice, are what is tested
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse

mount_long_names 60000
ask='SELECT name, mode FROM nodes WHERE type = '\''f'\'' ORDER BY ino'
run() { printf '%s' "$1" >"$q/run"; }

mkdir "$q/all"
printf '%s' "$ask" >"$q/all/sql"
cp "$q/all/result.tsv" before
is 'all of it' "$(wc -l <before)" $((n + 1))
ok 'more than memory takes' test "$(stat -c %s before)" -gt $((5 << 20))

# ---- open while everything changes ----
exec 5<"$q/all/result.tsv" 6<"$q/paths" 7<"$q/sql/$ask"
cp "$q/paths" paths
head -c 100000 <&7 >front
ok 'a statement moves all files' run "UPDATE nodes SET name = 'new' || ino, mode = 256 WHERE type = 'f'"
ok 'and removes most' run "DELETE FROM nodes WHERE type = 'f' AND ino % 10 <> 1"
mv "$mnt/d0" "$mnt/moved"
is 'its size is as it was' "$(stat -Lc %s /dev/fd/5)" "$(stat -c %s before)"
ok 'a saved query, open before' cmp before <(cat <&5)
ok 'all paths, open before' cmp paths <(cat <&6)
ok 'a statement, half read before' cmp before <(cat front - <&7)
exec 5<&- 6<&- 7<&-
left=$(tail -n 1 "$q/sql/SELECT count(*) FROM nodes WHERE type = 'f'")
is 'opened now: what is left' "$(tail -n +2 "$q/all/result.tsv" | grep -c '^new')" "$left"
is 'and with its new mode' "$(tail -n +2 "$q/all/result.tsv" | cut -f 2 | sort -u)" 33024
ok 'nothing stays in TMPDIR' test -z "$(ls -A tmp)"

# ---- in pieces, and from the end ----
run "INSERT INTO nodes (path) WITH RECURSIVE i(v) AS (SELECT 0 UNION ALL SELECT v + 1 FROM i WHERE v < $n) SELECT '/' || v || '$name' FROM i"
cp "$q/paths" paths
size=$(stat -c %s paths)
ok 'large again' test "$size" -gt $((5 << 20))
ok 'tail -c' cmp <(tail -c 5000000 paths) <(tail -c 5000000 "$q/paths")
ok 'tail -n' cmp <(tail -n 50000 paths) <(tail -n 50000 "$q/paths")
ok 'dd, in the middle' cmp <(dd if=paths bs=4097 skip=1050 count=3 status=none) \
	<(dd if="$q/paths" bs=4097 skip=1050 count=3 status=none)
ok 'split' bash -c "split -b 1M '$q/paths' piece. && cat piece.* | cmp - paths"
ok 'sort, wc and cmp' test "$(sort "$q/paths" | wc -c)" -eq "$size"
ok 'xargs -0' test "$(xargs -0 -n 1000 printf '%s\n' <"$q/where/type/f/@paths0" | wc -l)" -eq "$(cat "$q/where/type/f/@count")"
if command -v less >/dev/null; then
	ok 'less' cmp paths <(less "$q/paths")
	ok 'less, searching' test "$(LESSSECURE=1 less -p "/${n}x" "$q/paths" | tail -n 1)" = "$(tail -n 1 paths)"
else
	skip 'no less'
fi
for i in {1..8}; do
	cmp "$q/paths" paths &
	pids[i]=$!
done
status=0
for pid in "${pids[@]}"; do wait "$pid" || status=1; done
is 'eight at a time' "$status" 0

# ---- one descriptor, several readers, writers beside them ----
run "UPDATE nodes SET mode = 420 WHERE type = 'f'"
(while [[ ! -e stop ]]; do
	run "UPDATE nodes SET mode = 256 WHERE type = 'f'" && run "UPDATE nodes SET mode = 420 WHERE type = 'f'" || echo failed
done >writer.log 2>&1) &
writer=$!
for i in {1..6}; do
	exec 5<"$q/all/result.tsv"
	cut -f 2 <&5 | sort -u >modes
	grep -qxE '33024|33188' modes && (($(wc -l <modes) == 2)) || cp modes mixed
	exec 5<&-
done
: >stop
wait "$writer"
ok 'each result is of one moment' test ! -e mixed
is 'the writer went on' "$(cat writer.log)" ''

# ---- more names than are kept ----
files() { sed -n 's/.*"queries":.*"files": \([0-9]*\).*/\1/p' "$q/stats"; }
seq -f "$q/sql/SELECT %.0f" 70000 | tr '\n' '\0' | xargs -0 ls -d >names
is 'names of tens of thousands of statements' "$(wc -l <names)" 70000
few() { (($(files) <= 66000)); }
ok 'the kernel is made to forget the oldest' wait_for 20 few
is 'which can be read again' "$(tail -n 1 "$q/sql/SELECT 1")" 1
unmount_store
check_store
