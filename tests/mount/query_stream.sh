#!/bin/bash
# SPDX-License-Identifier: MIT
# .query/paths of more than is kept in memory: made as it is read, the same byte for byte to all programs, whatever
# changes meanwhile, also for those who read half of it and wait.
# timeout: 300
# shellcheck disable=SC2002,SC2016,SC2094 # pipes, perl, and files read twice
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse

mount_long_names 90000
paths=$q/paths
primefs tree "$mnt" subtree / >whole
size=$(stat -c %s whole)
ok 'more than is kept' test "$size" -gt $((8 << 20))

# ---- its size ----
exec 5<"$paths"
is 'nobody knows its size' "$(stat -Lc %s /dev/fd/5)" 0
ok 'all of it' cmp whole <(cat <&5)
is 'its size, once it was read' "$(stat -Lc %s /dev/fd/5)" "$size"
exec 5<"$paths"
is 'but who wants its end' "$(perl -e 'print sysseek STDIN, 0, 2' <&5)" "$size"
is 'does then' "$(stat -Lc %s /dev/fd/5)" "$size"
exec 5<&-
is 'that of a small one' "$(stat -Lc %s /dev/fd/5 5<"$mnt/d0/.query/paths")" "$(cat "$mnt/d0/.query/paths" | wc -c)"

# ---- by programs that ask for the size, seek, read pieces, or go back ----
same() { ok "$1" cmp <("${@:2}" whole) <("${@:2}" "$paths"); }
same cat cat
same 'head -c' head -c 5000001
same 'head -c, but for the end' head -c -1000
same 'head -n, but for the end' head -n -1000
same 'tail -c' tail -c 5000001
same 'tail -c, from a place on' tail -c +5000001
same 'tail -n' tail -n 50000
same tac tac
# Not sort: it takes memory by the size, and of a file of 0 bytes writes thousands of temporary ones.
counts() { wc -lc | awk '{ print $1, $2 }'; }
is 'wc' "$(counts <"$paths")" "$(counts <whole)"
ok 'wc -c of the file' test "$(wc -c "$paths" | cut -d' ' -f1)" -eq "$size"
cp "$paths" copied
ok 'cp' cmp whole copied
ok 'dd, large blocks' cmp whole <(dd if="$paths" bs=3M iflag=fullblock status=none)
is 'none of which is short' "$(dd if="$paths" of=/dev/null bs=1M 2>&1 | head -n 1)" "$((size >> 20))+1 records in"
ok 'dd, in the middle' cmp <(dd if=whole bs=4097 skip=1050 count=3 status=none) \
	<(dd if="$paths" bs=4097 skip=1050 count=3 status=none)
ok 'dd, past the end' test -z "$(dd if="$paths" bs=1M skip=1000 count=1 status=none | head -c 1)"
ok 'split' bash -c "split -b 1M '$paths' piece. && cat piece.* | cmp - whole"
if command -v less >/dev/null; then
	ok less cmp whole <(less "$paths")
else
	skip 'no less'
fi
python "Python's read()" -c "$python_reads" "$paths" whole
if command -v tar >/dev/null; then
	ok 'tar, of a small one' cmp <(cat "$mnt/d0/.query/paths") <(tar -C "$mnt/d0/.query" -cf - paths | tar -xOf -)
else
	skip 'no tar'
fi
if command -v curl >/dev/null; then
	ok curl cmp whole <(curl -s "file://$paths")
else
	skip 'no curl'
fi
ok 'from the end to the front' perl -e '
	open my $a, "<", $ARGV[0] or die; open my $b, "<", $ARGV[1] or die;
	for (my $at = (-s $a) - 700001; $at > 0; $at -= 700001) {
		sysseek $a, $at, 0; sysseek $b, $at, 0;
		sysread $a, my $x, 100000; sysread $b, my $y, 100000;
		die "at $at" if $x ne $y;
	}' whole "$paths"
ok 'preadv, anywhere' "$probes/reads" preadv "$paths" whole
for how in read sendfile direct uring alarm; do
	"$probes/reads" "$how" "$paths" >got && status=0 || status=$?
	if ((status == 77)); then
		skip "$how: the kernel has none"
	else
		ok "$how" cmp whole got
	fi
done
pids=()
for _ in {1..8}; do
	cmp "$paths" whole &
	pids+=($!)
done
status=0
for pid in "${pids[@]}"; do wait "$pid" || status=1; done
is 'eight at a time' "$status" 0

# ---- while everything changes ----
exec 5<"$paths" 6<"$paths"
head -c 3000000 <&5 >front
run() { printf '%s' "$1" >"$q/run"; }
ok 'a statement names all files anew' run "UPDATE nodes SET name = 'new' || ino WHERE type = 'f'"
mv "$mnt/d1" "$mnt/d2/moved"
primefs tree "$mnt" subtree / >later
exec 7<"$paths"
ok 'another removes most' run "DELETE FROM nodes WHERE type = 'f' AND ino % 10 <> 1"
ok 'one half read before' cmp whole <(cat front - <&5)
ok 'one opened before' cmp whole <(cat <&6)
ok 'one opened between' cmp later <(cat <&7)
is 'nothing of them is in TMPDIR' "$(ls -A tmp)" ''
is 'nor open and removed' "$(readlink /proc/[0-9]*/fd/* 2>/dev/null | grep -c "^$work/tmp")" 0
exec 5<&- 6<&- 7<&-
ok 'opened now' cmp <(primefs tree "$mnt" subtree /) "$paths"

# ---- two answers of one node ----
exec 5<"$paths"
primefs tree "$mnt" subtree / >whole
mkdir "$mnt/between"
exec 6</dev/fd/5
primefs tree "$mnt" subtree / >later
is 'they are of one node' "$(stat -Lc %i /dev/fd/5)" "$(stat -Lc %i /dev/fd/6)"
is 'whose size is nobody'\''s' "$(stat -Lc %s /dev/fd/5)" 0
ok 'the second is as it was opened' cmp later <(cat <&6)
ok 'and the first' cmp whole <(cat <&5)
is 'each has its end' "$(perl -e 'print sysseek(STDIN, 0, 2)' <&5) $(perl -e 'print sysseek(STDIN, 0, 2)' <&6)" \
	"$(stat -c %s whole) $(stat -c %s later)"
exec 6<&-
is 'one is left: its size' "$(stat -Lc %s /dev/fd/5)" "$(stat -c %s whole)"
exec 5<&-

# ---- into the same mount ----
cp whole source
run 'DELETE FROM nodes WHERE name GLOB '\''new*'\'''

run "INSERT INTO nodes (path) WITH RECURSIVE i(v) AS (SELECT 0 UNION ALL SELECT v + 1 FROM i WHERE v < $n) SELECT '/' || v || '$name' FROM i"
primefs tree "$mnt" subtree / >whole
"$probes/reads" copy "$paths" "$mnt/copied"
ok 'copy_file_range beside what it is of' cmp <(grep -v '^/copied$' "$mnt/copied") <(grep -v '^/copied$' whole)
cp "$paths" "$mnt/copied"
ok 'a copy beside what it is of' cmp <(grep -v '^/copied$' "$mnt/copied") <(grep -v '^/copied$' whole)
unmount_store

# ---- many reads anywhere in one: few make text, the others wait without a thread; of 200 each had one before ----
TMPDIR=$work/tmp mount_in_foreground
exec 5<"$paths"
cat <&5 >whole
threads() { sed -n 's/^Threads:[[:space:]]*//p' "/proc/$daemon/status"; }
waiting() { sed -n 's/.*"readers": \([0-9]*\)[,}].*/\1/p' "$q/stats"; }
many_wait() { (($(waiting) >= 150)); }
before=$(threads)
few_work() { (($(threads) <= before + 32 + $(nproc))); } # in a moment: a busy machine lets others linger
"$probes/reads" scatter 200 "$(stat -c %s whole)" <&5 >late &
readers=$!
ok 'many wait' wait_for 20 many_wait
for _ in {1..20}; do stat -c %s "$mnt/copied" >/dev/null; done
ok 'names are looked up meanwhile, and few threads are at work' wait_for 20 few_work
is 'statements are answered' "$(tail -n 1 "$q/sql/SELECT 7 AS n")" 7
ok 'it is read by others, too' cmp whole <(cat "$paths")
killed=$("$probes/reads" kill 20 "$(($(stat -c %s whole) - 1000))" <&5)
within 'a reader that is killed is gone' "$killed" 100000
sleep 3
ok 'many wait, still' many_wait
ok 'and few threads are at work' wait_for 20 few_work
kill "$readers"
wait "$readers" && status=0 || status=$?
is 'none of them has failed' "$status" 0
read -r times late <late
ok 'some were interrupted' test "$times" -gt 0
within 'an interrupted read is answered' "$late" 50000
ok 'they may be repeated' "$probes/reads" preadv "$paths" whole
ok 'none waits' wait_for 20 test "$(waiting)" = 0
exec 5<&-
unmount_store
check_store
