#!/bin/bash
# SPDX-License-Identifier: MIT
# Answers held open, half read, while 10,000 nodes change a second or more: no change fails, what is kept for the answers is
# never more than the common limit, and each ends as it was when it was opened, or is given up with ENOMEM and its sentence.
# Four seconds long and as fast as it can; with --long an hour, or as many seconds as PFS_HELD says, at 10,000 a second.
# timeout: 300
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse

long=${PFS_HELD:-$((PFS_LONG ? 3600 : 4))}
pace=$((PFS_LONG ? 10000 : 0))
files=9000
name=$(printf 'x%.0s' {1..90})
seq 0 $((files - 1)) | awk -v name="$name" '{print "/d" int($1 / 500) "/" name $1}' |
	primefs import --format=paths - "$store" >/dev/null
mkdir tmp
export TMPDIR=$work/tmp
# One MiB of all answers is in memory, and a statement that rests does so to the end: it has its snapshot all the time.
mount_in_foreground -o "query_kept=1,query_rest=$((long + 600))"
q=$mnt/.query
run() { printf '%s' "$1" >"$q/run"; }
stats() { sed -n "s/.*\"$1\": {[^}]*\"$2\": \([0-9]*\)[,}].*/\1/p" "$q/stats"; }
four='path, path AS p2, path AS p3, path AS p4, path AS p5, path AS p6, path AS p7, path AS p8'
# As it is, in order, by operators and by SQLite alone; and a listing.
answers=(
	"$q/sql/SELECT $four, mtime, size, name FROM nodes"
	"$q/sql/SELECT $four, mtime, size, name FROM nodes ORDER BY mtime, path"
	"$q/sql/SELECT $four, mtime, count(*) OVER (ORDER BY ino ROWS 3 PRECEDING) AS n FROM nodes"
	"$q/paths"
)
for i in "${!answers[@]}"; do cat "${answers[i]}" >"whole.$i"; done
ok 'an answer is more than there is memory for' test "$(stat -c %s whole.0)" -gt $((6 << 20))

exec 5<"${answers[0]}" 6<"${answers[1]}" 7<"${answers[2]}" 8<"${answers[3]}"
for i in "${!answers[@]}"; do head -c 100000 <&$((5 + i)) >"front.$i"; done
resting() { (($(stats queries resting) >= 1)); }
ok 'statements rest amid their answers' wait_for 20 resting
rested=$(stats queries resting)

# ---- changes: times and names of all files, all files removed, and made ----
numbers="WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i WHERE v < $files)"
changes=0 rounds=0 failed=0 most=0 given_up=$(stats snapshots given_up)
started=$SECONDS
while ((SECONDS - started < long || rounds < 2)); do
	for change in "UPDATE nodes SET mtime = mtime + 1 WHERE type = 'f'" \
		"UPDATE nodes SET name = 'r$rounds ' || ino WHERE type = 'f'" "DELETE FROM nodes WHERE type = 'f'" \
		"INSERT INTO nodes (path) $numbers SELECT '/d' || (v % 18) || '/$name' || v FROM i"; do
		run "$change" || failed=$((failed + 1))
		changes=$((changes + files))
		kept=$(stats snapshots all_bytes)
		most=$((kept > most ? kept : most))
		while ((pace && changes > pace * (SECONDS - started + 1))); do sleep 0.1; done
	done
	rounds=$((rounds + 1))
done
limit=$(stats snapshots limit)
echo "$((SECONDS - started)) s, $((changes / (SECONDS - started + 1))) nodes changed a second; kept at most $most of $limit bytes"
is 'no change failed' "$failed" 0
ok 'what is kept is never more than it may be' test "$most" -le "$limit"
ok 'the answers were held' test "$(stats queries resting)" -eq "$rested"

# ---- their ends ----
given_up=$(($(stats snapshots given_up) - given_up))
for i in "${!answers[@]}"; do
	if cat "front.$i" - <&$((5 + i)) >"got.$i" 2>errors; then
		ok "answer $i is as it was" cmp "whole.$i" "got.$i"
		continue
	fi
	given_up=$((given_up - 1))
	ok "answer $i is given up" grep -q 'Input/output error' errors
	ok 'with a reason' grep -qE 'than there is memory to remember|cannot be read on' "$q/error"
	ok 'what was read of it is right' cmp -n "$(stat -c %s "got.$i")" "whole.$i" "got.$i"
done
is 'none was given up but those' "$((given_up > 0))" 0
exec 5<&- 6<&- 7<&- 8<&-
nothing_kept() { touch "$mnt/d0/after" && rm "$mnt/d0/after" && sync -f "$mnt" && (($(stats snapshots open) == 0)); }
ok 'nobody has a snapshot any more' wait_for 20 nothing_kept
unmount_store
check_store
