#!/bin/bash
# SPDX-License-Identifier: MIT
# Answers that are read while they are made: the same byte for byte to all programs; who reads them may wait, be
# interrupted, go back, or go; a statement whose reader does not come on takes no turn, no time and, in the end, no snapshot.
# shellcheck disable=SC2002,SC2016,SC2094 # pipes, perl, and files read twice
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse

mkdir -p tree/a tmp
echo hi >tree/a/file
primefs import tree "$store" >/dev/null
export TMPDIR=$work/tmp
# Answers have no memory but their own, and a statement rests for some seconds.
mount_in_foreground -o query_kept=1,query_rest=3
q=$mnt/.query
run=$q/run
counted() { sed -n "s/.*\"$1\": \([0-9]*\)[,}].*/\1/p" "$q/stats"; }
are() { (($(counted "$1") == $2)); }
threads() { sed -n 's/^Threads:[[:space:]]*//p' "/proc/$daemon/status"; }
size_of() { stat -Lc %s "/dev/fd/$1"; }
# PFS_TEST_SMALL=1: what does not grow is left to query_stream.sh, and fewer wait.
sizes='large small' waiting_readers=1000
if [[ ${PFS_TEST_SMALL-} == 1 ]]; then sizes=large waiting_readers=50; fi
# Rows of 400 bytes.
rows() { echo "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < $1) SELECT i, printf('%0390d', i) AS x FROM n"; }
large=$q/sql/$(rows 15000)
small=$q/sql/$(rows 2000)
rows_of() { awk -v n="$1" 'BEGIN { printf "i\tx\n"; for (i = 1; i <= n; i++) printf "%d\t%0390d\n", i, i }'; }
rows_of 15000 >large
rows_of 2000 >small

# ---- it grows, and rests ----
exec 5<"$large"
ok 'it rests' wait_for 20 are resting 1
is 'it grows' "$(counted growing)" 1
is 'no statement runs' "$(counted running)" 0
is 'nobody knows its size' "$(size_of 5)" 0
is 'but who wants its end' "$(perl -e 'print sysseek STDIN, 0, 2' <&5)" "$(stat -c %s large)"
is 'does then' "$(size_of 5)" "$(stat -c %s large)"
exec 5<"$large"
ok 'another one rests' wait_for 20 are resting 1
is 'less than all of it is in TMPDIR' "$(($(stat -Lc %s "/proc/$daemon/fd"/* 2>/dev/null | sort -n | tail -n 1) < 6000000))" 1
exec 5<&-
ok 'closed, it ends' wait_for 20 are growing 0
is 'that of a small one is known' "$(size_of 5 5<"$small")" "$(stat -c %s small)"

# ---- by all programs ----
same() { # DESCRIPTION COMMAND...: reads FILE
	local size
	for size in $sizes; do
		ok "$1, $size" cmp <("${@:2}" "$size" 2>&1) <("${@:2}" "${!size}" 2>&1)
	done
}
same cat cat
same 'head -c' head -c 4700001
same 'head -c, but for the end' head -c -1000
same 'head -n, but for the end' head -n -1000
same 'tail -c' tail -c 4700001
same 'tail -c, a little' tail -c 100
same 'tail -c, from a place on' tail -c +4700001
same 'tail -n' tail -n 1000
same tac tac
for size in $sizes; do
	ok "wc -c, $size" test "$(wc -c <"$size")" = "$(wc -c <"${!size}")"
	ok "wc -c of the file, $size" test "$(wc -c "${!size}" | cut -d' ' -f1)" = "$(wc -c <"$size")"
	ok "dd, $size" cmp "$size" <(dd if="${!size}" bs=1M status=none)
	ok "dd, odd blocks, $size" cmp "$size" <(dd if="${!size}" bs=4097 status=none)
	is "of which none is short, $size" "$(dd if="${!size}" of=/dev/null bs=64K 2>&1 | head -n 1)" \
		"$(dd if="$size" of=/dev/null bs=64K 2>&1 | head -n 1)"
	cp "${!size}" copied
	ok "cp, $size" cmp "$size" copied
	cp "${!size}" "$mnt/copied"
	ok "cp into the same mount, $size" cmp "$size" "$mnt/copied"
	for how in read sendfile direct uring; do
		"$probes/reads" "$how" "${!size}" >got && status=0 || status=$?
		if ((status == 77)); then
			skip "$how: the kernel has none"
		else
			ok "$how, $size" cmp "$size" got
		fi
	done
	"$probes/reads" copy "${!size}" "$mnt/copied"
	ok "copy_file_range, $size" cmp "$size" "$mnt/copied"
	ok "preadv anywhere, $size" "$probes/reads" preadv "${!size}" "$size"
	ok "read under alarms, $size" cmp "$size" <("$probes/reads" alarm "${!size}")
	python "Python's read(), $size" -c "$python_reads" "${!size}" "$size"
	is "opened with O_DIRECT it is complete, $size" \
		"$(perl -e 'use Fcntl; sysopen my $file, $ARGV[0], Fcntl::O_DIRECT() or die $!; print -s $file' "${!size}")" \
		"$(stat -c %s "$size")"
	if command -v less >/dev/null; then
		ok "less, $size" cmp "$size" <(less "${!size}")
	else
		skip 'no less'
	fi
	if command -v curl >/dev/null; then # whose names are URLs
		mkdir -p "$q/$size"
		rows "$(($(wc -l <"$size") - 1))" >"$q/$size/sql"
		ok "curl, $size" cmp "$size" <(curl -s "file://$q/$size/result.tsv")
	else
		skip 'no curl'
	fi
done

# ---- two answers of one node ----
exec 5<>"$run" 6<>"$run"
ask() { env printf '%s' "$1" >&"$2"; } # a shell's own write is interrupted when a child of it ends
ask "$(rows 15000)" 5
ask "$(rows 14999)" 6
is 'they are of one node' "$(stat -Lc %i /dev/fd/5)" "$(stat -Lc %i /dev/fd/6)"
ok 'both grow' are growing 2
is 'nobody knows which size is meant' "$(size_of 5)" 0
ok 'the second' cmp <(rows_of 14999) <(cat <&6)
ok 'the first' cmp large <(cat <&5)
ask "$(rows 15000)" 5
ok 'another one grows' are growing 1
ask 'SELECT 1 AS n' 5
ok 'until the next statement' wait_for 20 are growing 0
is 'which is answered' "$(cat <&5)" 'n
1'
exec 5<&- 6<&-

# ---- rows of the tree ----
name=$(printf 'd%0199d' 0)
mkdir "$mnt/$name"
(cd "$mnt/$name" && seq 1500 | xargs touch)
columns=$(printf 'path,%.0s' {1..39})path
# The operators have no such frame, so that SQLite runs it, over the tree and once more over a frozen one.
windows="$(printf 'path,%.0s' {1..30})sum(size) OVER (ORDER BY ino ROWS 1 PRECEDING) FROM nodes"
mkdir "$q/windows"
echo "SELECT $windows" >"$q/windows/sql"
ok 'SQLite runs what the operators do not take' grep -q 'run by SQLite' "$q/windows/plan"
for statement in "$columns FROM nodes" "$columns FROM nodes ORDER BY name DESC" \
	"$columns FROM nodes WHERE mode IN (33188,33261)" "$windows"; do
	rows=$q/sql/"SELECT $statement" how=${statement##*path,}
	cat "$rows" >whole
	exec 5<"$rows"
	ok "rows of $how rest" wait_for 20 are resting 1
	touch "$mnt/later"
	rm "$mnt/$name/1500"
	ok 'and are those of when they began' cmp whole <(cat <&5)
	exec 5<&-
	ok 'closed, they end' wait_for 20 are growing 0
	rm "$mnt/later"
	touch "$mnt/$name/1500"
done
rm -r "${mnt:?}/$name"

# ---- time ----
exec 5<"$large"
head -c 100 <&5 >front
exec 6<"$q/sql/$(rows 14000) UNION ALL SELECT count(*), '' FROM (WITH RECURSIVE m(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM m) SELECT i FROM m)"
exec 7<"$q/sql/$(rows 14999)"
ok 'who does not come has it made, though another one has no end' wait_for 60 are growing 1
exec 6<&- 7<&-
ok 'until it is closed' wait_for 20 are growing 0
is 'its size is known' "$(size_of 5)" "$(stat -c %s large)"
ok 'and it is read from TMPDIR' cmp large <(cat front - <&5)
exec 5<&-

# ---- failures ----
broken=$q/sql/$(rows 15000 | sed "s/ AS x/ || CASE i WHEN 14500 THEN json('{') ELSE '' END AS x/")
cat "$broken" >got 2>errors && status=0 || status=$?
is 'a failure in the middle is one' "$status" 1
ok 'EIO' grep -q 'Input/output error' errors
ok 'with a reason' grep -q 'malformed JSON' "$q/error"
ok 'what was read before is right' cmp -n "$(stat -c %s got)" got large
ok 'and it is not all' test "$(stat -c %s got)" -gt 4000000
unmount_store
if ((PFS_LONG)); then
	mount_in_foreground -o query_kept=1,query_time=10
	exec 5<"$large"
	head -c 100 <&5 >front
	sleep 11
	ok 'to wait for a reader is no time of the statement' cmp large <(cat front - <&5)
	exec 5<&-
	unmount_store
fi

# ---- waiting ----
mount_in_foreground -o query_kept=1
endless="$(rows 15000) UNION ALL SELECT count(*), '' FROM (WITH RECURSIVE m(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM m) SELECT i FROM m)"
exec 5<"$q/sql/$endless"
ok 'one rests' wait_for 20 are resting 1
before=$(threads)
"$probes/reads" wait "$waiting_readers" 20000000 <&5 &
waiting=$!
ok 'many wait for what it has not made' wait_for 60 are readers "$waiting_readers"
ok 'without threads of theirs' test "$(threads)" -le $((before + 4))
is 'its statement runs' "$(counted running)" 1
is 'names are looked up' "$(stat -c %s "$mnt/a/file")" 3
is 'and statements answered' "$(tail -n 1 "$q/sql/SELECT 7 AS n")" 7
is 'it is read meanwhile' "$(head -c 1000 <&5)" "$(head -c 1000 large)"
kill -9 "$waiting"
ok 'killed, they are gone' wait_for 10 gone "$waiting"
wait "$waiting" 2>/dev/null || true
is 'and wait no more' "$(counted readers)" 0
is 'the answer goes on' "$(counted growing)" 1
late=$(timeout 60 "$probes/reads" interrupt 20 20000000 <&5) && status=0 || status=$?
is 'interrupted, a read may be repeated' "$status" 0
within 'an interrupted read is answered' "$late" 50000
killed=$(timeout 60 "$probes/reads" kill 20 20000000 <&5) && status=0 || status=$?
is 'who waits in a read is killed' "$status" 0
within 'a reader that is killed is gone' "$killed" 100000
is 'and does not wait' "$(counted readers)" 0
ok 'what is there is read under alarms' cmp <(tail -c +1001 large | head -c 1500000) <(head -c 1500000 <&5)
exec 5<&-
ok 'closed, it ends though it runs' wait_for 20 are growing 0
ok 'and runs no more' wait_for 20 are running 0
# shellcheck disable=SC2016 # perl
ok 'an open is interrupted' timeout 60 perl -e '
	$SIG{ALRM} = sub { }; alarm 1;
	die "opened" if sysopen my $file, $ARGV[0], 0;
	die $! unless $!{EINTR}' "$q/sql/WITH RECURSIVE m(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM m) SELECT count(*) FROM m"
ok 'and ended' wait_for 20 are running 0

# ---- the daemon ends, whatever rests and waits ----
exec 5<"$q/sql/$endless" 6<"$large"
"$probes/reads" wait 10 20000000 <&5 &
ok 'some wait' wait_for 20 are readers 10
kill "$daemon"
wait "$daemon" && status=0 || status=$?
is 'the daemon ends well' "$status" 0
exec 5<&- 6<&-
wait
check_store
