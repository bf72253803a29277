#!/bin/bash
# SPDX-License-Identifier: MIT
# Statements that want more than they may have, by each way in: they are refused, and the daemon goes on.
# shellcheck disable=SC2002 # each file read by itself
# shellcheck disable=SC2016 # another shell expands it
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse getfattr

mkdir -p tree/a
touch "tree/a/$(printf '%0200d' 0)"
primefs import tree "$store" >/dev/null

# names of WITH, each of the one before
chain=$(awk 'BEGIN { printf "WITH a0 AS(SELECT 1 x)"
	for (i = 1; i <= 2400; i++) printf ",a%d AS(SELECT*FROM a%d)", i, i - 1
	printf "SELECT*FROM a2400" }')
# a pattern that recurses as deeply as it is long
pattern="SELECT replace(hex(zeroblob(2000)),'0','a') LIKE replace(hex(zeroblob(2000)),'0','%a') AS n"
stars=$(printf '%%0%.0s' {1..100})

mount_store
q=$mnt/.query
lives() { is "$1: the daemon goes on" "$(cat "$q/sql/SELECT 3 AS n" 2>&1 | tail -n 1)" 3; }

# ---- stack ----
run() {
	printf '%s' "$1" >"$work/statement"
	dd if="$work/statement" of="$q/run" bs=1M status=none
}
fails_with 'run' 'too long' run "$chain"
ok 'says why' grep -q 'more than 500 SELECTs' "$q/error"
lives run
ok 'run: a pattern' run "$pattern"
lives 'run: a pattern'
ok 'sql/' cat "$q/sql/$pattern"
lives 'sql/'
mkdir "$q/saved"
printf '%s' "$chain" >"$q/saved/sql"
fails_with 'a saved query' 'too long' cat "$q/saved/result.tsv"
lives 'a saved query'
printf '%s' "$pattern" >"$q/saved/sql"
ok 'a saved query: a pattern' cat "$q/saved/result.tsv"
lives 'a saved query: a pattern'
is 'a facet' "$(cat "$q/where/name.like/$stars/@count")" 1
deep=$(printf '/name.like/%s%.0s' "${stars:0:2}" {1..300})
ok 'many facets' cat "$q/where$deep/@count"
lives 'facets'
fails_with 'a command' 'more than 500 SELECTs' primefs query "$mnt" "$chain"
ok 'a command: a pattern' primefs query "$mnt" "$pattern"
fails_with 'a prompt' 'more than 500 SELECTs' bash -c 'printf "%s;" "$1" | primefs query "$2"' - "$chain" "$mnt"
lives 'commands'

# ---- time ----
endless='WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n'
long="SELECT instr(hex(zeroblob(7000000)), hex(zeroblob(3000000)) || 'b') AS n"
is 'a part that is not there' "$(tail -n 1 "$q/sql/$long")" 0
daemon=$(getfattr --only-values -n user.primefs.daemon "$mnt" | cut -d' ' -f1)
cat "$q/sql/$endless" >/dev/null 2>&1 &
cat "$q/sql/SELECT count(*) FROM nodes a, nodes b, ($endless)" >/dev/null 2>&1 &
primefs query "$mnt" "$endless" >/dev/null 2>&1 &
asking=$!
ok 'they run' wait_for 20 grep -q '"running": 2,' "$q/stats"
started=$SECONDS
kill -TERM "$daemon"
ok 'SIGTERM ends the daemon, whatever runs' wait_for 20 gone "$daemon"
((PFS_LONG == 0)) || ok 'within two seconds' test "$((SECONDS - started))" -le 2
kill -9 "$asking" 2>/dev/null || true # it may ask the store itself by now
wait || true
force_unmount "$mnt"
mount_store
unmount_store
fails_with 'a command on the store' 'more than 500 SELECTs' primefs query "$store" "$chain"
ok 'that, a pattern' primefs query "$store" "$pattern"
fails_with 'a prompt on the store' 'more than 500 SELECTs' \
	bash -c 'printf "%s;" "$1" | primefs query "$2"' - "$chain" "$store"
check_store

# ---- threads: of a join's, the one that leads has to end before the others ----
seq -f '/d/f%.0f.c' 200000 | primefs import -f paths - "$work/wide.pfs" >/dev/null
store=$work/wide.pfs mount_store -o query_time=1
joins='SELECT DISTINCT a.ino+b.ino FROM nodes a JOIN nodes b ON a.uid=b.uid'
for _ in 1 2 3 4; do
	fails_with 'a join ends in time' 'longer than it may' primefs query "$mnt" "$joins"
	timeout -s KILL 0.3 primefs query "$mnt" "$joins" >/dev/null 2>&1 || true
done
ok 'nobody was kept out for long' awk -F'[:,]' '/"holds"/ && $4 > 2000000 { print; exit 1 }' "$mnt/.query/stats"
