#!/bin/bash
# SPDX-License-Identifier: MIT
# .query: statements as names and through run, errors, paths; hidden, per open, interrupted, limited.
# shellcheck disable=SC2002,SC2010,SC2012,SC2094 # listings, pipes and files read twice are tested
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse

mkdir -p tree/a/b tree/c "tree/odd name"
head -c 3000 /dev/zero >tree/a/x.c
head -c 70000 /dev/zero >tree/a/b/y.iso
echo hi >tree/c/z.c
: >"tree/odd name/it's"
: >$'tree/odd name/tab\there'
primefs import tree "$store" >/dev/null
mount_store
q=$mnt/.query

sql() { cat "$mnt${2:-}/.query/sql/$1"; }

# ---- what opening one costs ----
# Requests for attributes: the file's, not its directories', too.
attributes() { sed -n 's/.*"getattr": {"count": \([0-9]*\).*/\1/p' "$q/stats"; }
before=$(attributes)
for _ in {1..40}; do : <"$q/paths"; done
ok 'attributes of directories are asked for once' test $(($(attributes) - before)) -lt 60

# ---- hidden ----
is 'not in a listing' "$(ls -A "$mnt")" "$(printf 'a\nc\nodd name')"
is 'find does not see it' "$(find "$mnt" -name .query)" ''
not_ok 'grep -r does not walk in' grep -rq SELECT "$mnt"
is 'but found by name' "$(stat -c %F "$q" "$mnt/a/b/.query" | sort -u)" directory
not_ok 'not below files' stat "$mnt/c/z.c/.query"
fails_with 'no directory of that name' 'File exists' mkdir "$mnt/a/.query"
fails_with 'not to be removed' 'not permitted' rmdir "$mnt/a/.query"
fails_with 'not to be renamed' 'cross-device|not permitted|subdirectory|busy' mv -T "$mnt/c" "$q/x"
# shellcheck disable=SC2012 # it is what ls prints
is 'inode numbers are even and large' "$(ls -i -d "$q" | awk '{print ($1 >= 2^63), substr($1, length($1)) % 2}')" '1 0'
is 'listed inode numbers are those of stat' "$(find "$q" -maxdepth 1 -printf '%f %i\n' | sort)" \
	"$(find "$q" -maxdepth 1 -exec stat -c '%n %i' {} + | sed 's|.*/||' | sort)"
ok 'the working directory may be there' bash -c "cd '$q/sql' && pwd -P && cd ../.. && [[ -d a ]]"

# ---- statements as names ----
is 'a statement' "$(sql 'SELECT path, size FROM nodes WHERE ext = '\''c'\'' ORDER BY path')" \
	"$(printf 'path\tsize\n/a/x.c\t3000\n/c/z.c\t3')"
is 'in a directory: limited to it' "$(sql 'SELECT path FROM nodes ORDER BY path' /a)" \
	"$(printf 'path\n/a\n/a/b\n/a/b/y.iso\n/a/x.c')"
is 'CSV' "$(sql "SELECT name, size FROM nodes WHERE name GLOB 'it*'.csv" | od -c)" \
	"$(printf 'name,size\r\nit'\''s,0\r\n' | od -c)"
is 'JSON' "$(sql "SELECT name FROM nodes WHERE name GLOB 'tab*'.json")" "$(printf '[\n{"name":"tab\\there"}\n]')"
is 'aligned' "$(sql 'SELECT name, size FROM nodes WHERE size = 70000.txt')" \
	"$(printf 'name    size\n-----  -----\ny.iso  70000')"
is 'escapes in TSV' "$(sql "SELECT name FROM nodes WHERE name GLOB 'tab*'" | tail -n 1)" 'tab\there'
fails_with 'a wrong one' 'Invalid argument' cat "$q/sql/SELEC 1"
is 'its reason' "$(cat "$q/error")" "$(printf 'near "SELEC": syntax error; a statement begins with SELECT, UPDATE, INSERT, DELETE, CREATE or WITH\n  SELEC 1\n  ^')"
fails_with 'a wrong column' 'Invalid argument' cat "$q/sql/SELECT nope FROM nodes"
ok 'its reason has it and a caret' grep -q '^ *^' "$q/error"
not_ok 'not to be written' bash -c "echo x >'$q/sql/SELECT 1'"

# ---- size, per open ----
is 'size before an open' "$(stat -c %s "$q/paths")" 0
is 'size on the descriptor' "$(stat -Lc %s /dev/fd/5 5<"$q/paths")" "$(wc -c <"$q/paths")"
is 'cp' "$(cp "$q/paths" copy && cat copy)" "$(cat "$q/paths")"
is 'tail' "$(tail -n 2 "$q/paths")" "$(printf '/odd name/it'\''s\n/odd name/tab\there')"
is 'tail -c' "$(tail -c 5 "$q/paths")" here
# shellcheck disable=SC2002 # by its size, and by reading it
is 'wc -c' "$(wc -c "$q/paths" | cut -d' ' -f1)" "$(cat "$q/paths" | wc -c)"
is 'the end first, by dd' "$(dd if="$q/paths" bs=1 skip=2 count=2 2>/dev/null)" /a
exec 5<"$q/paths"
mkdir "$mnt/later"
is 'an open file stays as it was' "$(cat <&5 | grep -c later)" 0
exec 5<&-
is 'a later one is not' "$(grep -c later "$q/paths")" 1
rmdir "$mnt/later"
is 'paths are those of primefs tree' "$(cat "$mnt/a/.query/paths")" \
	"$(printf '/a\n/a/b\n/a/b/y.iso\n/a/x.c')"
is 'paths of all' "$(cat "$q/paths")" "$(cd "$mnt" && find . | sed 's|^\.||; s|^$|/|' | LC_ALL=C sort -t/)"
if command -v less >/dev/null; then
	is 'less' "$(less "$q/paths" | wc -l)" "$(wc -l <"$q/paths")"
else
	skip 'no less'
fi

# ---- run ----
exec 3<>"$q/run"
echo 'SELECT 1 AS one' >&3
is 'run: the answer follows the write' "$(cat <&3)" "$(printf 'one\n1')"
echo 'SELECT 22 AS two' >&3
is 'run: again' "$(cat <&3)" "$(printf 'two\n22')"
exec 3>&-
is 'run: from 0 after a rewind' "$(perl -e '
	sysopen my $run, $ARGV[0], 2 or die;
	syswrite $run, "SELECT path FROM nodes ORDER BY path LIMIT 3" or die;
	sysseek $run, 0, 0;
	$answer .= $piece while sysread $run, $piece, 4;
	die "a size of " . -s $run if -s $run != length $answer;
	print $answer' "$q/run" | tr '\n' ' ')" 'path / /a /a/b '
is 'run: and once more' "$(perl -e '
	sysopen my $run, $ARGV[0], 2 or die;
	syswrite $run, "SELECT 1 AS one" or die;
	for (1 .. 2) {
		$answer .= $piece while sysread $run, $piece, 4;
		sysseek $run, 0, 0;
	}
	print $answer' "$q/run" | tr '\n' ' ')" 'one 1 one 1 '
not_ok 'run: a wrong statement fails the write' bash -c "echo 'SELECT FROM' >'$q/run'"
ok 'run: its reason' grep -q 'FROM' "$q/error"
printf 'SELECT 1 --%065000d' 0 >long
ok 'run: a long statement' dd if=long of="$q/run" bs=1M conv=notrunc status=none
printf 'SELECT 1 --%066000d' 0 >long
fails_with 'run: too long' 'Argument list too long' dd if=long of="$q/run" bs=1M conv=notrunc status=none
is 'run: nothing before a statement' "$(cat "$q/run")" ''

# ---- stats, treemap.svg, help ----
cp "$q/stats" stats
is 'stats: the directory' "$(sed -n 's/.*"directory": {.*"nodes": \([0-9]*\), "bytes": \([0-9]*\)}.*/\1 \2/p' stats)" '10 73003'
is 'stats: the store' "$(sed -n 's/.*"store": {"nodes": \([0-9]*\),.*/\1/p' stats)" 10
ok 'stats: the engine' grep -qE '"engine": \{"kind": "(host|cuda)"' stats
ok 'stats: holds' grep -qE '"holds": \{"read": \{"longest_us": [0-9]+, "by": "[a-z_ ]*"\}, "write": \{"longest_us": [0-9]+, "by": "[a-z_ ]*"\}, "longest_wait_us": [0-9]+\}' stats
ok 'stats: operations' grep -qE '"open": \{"count": ([6-9]|[0-9]{2,}),' stats
cp "$mnt/a/.query/treemap.svg" .
ok 'the treemap has the names' grep -qF 'y.iso, 68.4 KiB' treemap.svg
python 'stats are JSON' -m json.tool stats
python 'the treemap is XML' -c 'import xml.dom.minidom; xml.dom.minidom.parse("treemap.svg")'
ok 'help' grep -q '.query/where' "$q/help"

# ---- many at a time, killed ones ----
for i in {1..16}; do
	(for _ in {1..5}; do cat "$q/paths" "$q/sql/SELECT count(*) FROM nodes" >/dev/null || exit 1; done) &
	pids[i]=$!
done
status=0
for pid in "${pids[@]}"; do wait "$pid" || status=1; done
is 'sixteen readers' $status 0
endless='WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n'
cat "$q/sql/$endless" >/dev/null 2>&1 &
endless_pid=$!
sleep 0.5
is 'others are answered meanwhile' "$(sql 'SELECT 5 AS n' | tail -n 1)" 5
kill -9 "$endless_pid"
wait "$endless_pid" 2>/dev/null || true
ok 'a killed reader stops its statement' wait_for 10 grep -q '"running": 0,' "$q/stats"
printf 'a\n1\n' >"$q/tables/numbers.csv"
bash -c "echo \"INSERT INTO numbers ${endless/count(\*)/i}\" >'$q/run'" 2>/dev/null &
endless_pid=$!
ok 'one that changes something runs' wait_for 10 grep -q '"running": 1,' "$q/stats"
kill -9 "$endless_pid"
wait "$endless_pid" 2>/dev/null || true
ok 'a killed writer stops it' wait_for 10 grep -q '"running": 0,' "$q/stats"
is 'which has changed nothing' "$(sql 'SELECT count(*) AS n FROM numbers' | tail -n 1)" 1
primefs query "$mnt" "$endless" >/dev/null 2>&1 &
endless_pid=$!
sleep 0.3
kill -9 "$endless_pid"
wait "$endless_pid" 2>/dev/null || true
primefs query "$mnt" "$endless" >/dev/null 2>&1 &
endless_pid=$!
sleep 0.3
ok 'unmounting ends what is asked by a command' timeout 20 primefs umount "$mnt"
kill -9 "$endless_pid" 2>/dev/null || true # it may ask the store itself by now
wait "$endless_pid" 2>/dev/null || true

# ---- limits ----
mount_store -o query_time=0.3,query_memory=1M
fails_with 'a time limit' 'timed out' timeout 20 cat "$q/sql/$endless"
ok 'its reason' grep -q 'longer than it may' "$q/error"
fails_with 'by a command' 'longer than it may' timeout 20 primefs query "$mnt" "$endless"
fails_with 'a memory limit' 'Cannot allocate memory' cat "$q/sql/SELECT length(hex(zeroblob(1000000)))"
ok 'its reason, too' grep -q 'longer than query_value' "$q/error"
fails_with 'that by a command' 'longer than query_value' primefs query "$mnt" 'SELECT length(hex(zeroblob(1000000)))'
unmount_store
not_ok 'a wrong limit' primefs mount -o query_memory=some "$store" "$mnt"
not_ok 'another' primefs mount -o query_time=-1 "$store" "$mnt"
not_ok 'a value of no use' primefs mount -o query_value=1K "$store" "$mnt"
not_ok 'no total' primefs mount -o query_memory_total=x "$store" "$mnt"

# ---- read-only, others ----
mount_store -o ro
is 'read-only: statements' "$(sql 'SELECT 3 AS n' | tail -n 1)" 3
not_ok 'read-only: run is not to be written' bash -c "echo 'SELECT 1' >'$q/run'"
unmount_store
if ((EUID == 0)); then
	mount_store
	fails_with 'others are refused' 'Permission denied' as "$nobody" ls "$q"
	fails_with 'others: by the full name' 'Permission denied' as "$nobody" cat "$q/paths"
	is 'but see the tree' "$(as "$nobody" cat "$mnt/c/z.c")" hi
	unmount_store
else
	skip 'others: needs root'
fi
check_store
