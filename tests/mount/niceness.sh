#!/bin/bash
# SPDX-License-Identifier: MIT
# The threads of a mount have names. Those that work beside and ahead of requests are nicer by ten than the process, those
# that take requests, change nodes or fill memory that a request waits for are not.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse

# Rows for more than one piece of a scan and of an operator.
seq -f 'a/d%.0f' 100000 | primefs import --format=paths - "$store" >/dev/null
export TMPDIR=$work
mount_in_foreground -o query_kept=1,query_rest=1
q=$mnt/.query
own=$(sed 's/.*) //' "/proc/$daemon/stat" | cut -d ' ' -f 17)
nicer=$((own + 10 > 19 ? 19 : own + 10))
# each COMMAND...: with the name and the niceness of each thread but the first.
each() {
	local task name nice
	for task in "/proc/$daemon"/task/*; do
		[[ ${task##*/} != "$daemon" ]] || continue
		name=$(cat "$task/comm" 2>/dev/null || true)
		nice=$(sed 's/.*) //' "$task/stat" 2>/dev/null | cut -d ' ' -f 17 || true)
		[[ -z $name || -z $nice ]] || "$@" "$name" "$nice"
	done
}
print() { echo "$1 $2"; }
# Not through a pipe: a grep that has found it ends, which ends the others with a signal.
has() { grep -q "^$1 " <<<"$(each print)"; }
expect() { # NAME NICENESS: of all threads of this name; there is one
	is "$1" "$(each print | grep "^$1 " | sort -u)" "$1 $2"
}

# ---- at rest ----
expect pfs-committer "$nicer"
expect pfs-receiver "$own"
expect pfs-monitor "$own"
expect pfs-notifier "$own"
expect pfs-control "$own"

# ---- while statements run, and after them ----
cat "$q/sql/WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n" >/dev/null 2>&1 &
endless=$!
grouped=$(cat "$q/sql/SELECT type, count(*), count(DISTINCT name) FROM nodes GROUP BY 1")
is 'a statement is answered meanwhile' "$(wc -l <<<"$grouped")" 3
dd if="$q/paths" of=/dev/null bs=4096 status=none
if (($(nproc) > 1)); then expect pfs-pool "$nicer"; fi
kill "$endless"
wait "$endless" || true
# What nobody reads on is made to its end behind the reader.
exec 6<"$q/sql/WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 100000) SELECT i, printf('%0390d', i) AS x FROM n"
ok 'somebody watches what rests' wait_for 20 has pfs-rest
expect pfs-rest "$nicer"
exec 6<&-
exec 6<>"$q/run"
echo 'UPDATE nodes SET mtime = mtime + 1' >&6
is 'nodes are changed' "$(cat <&6 >/dev/null && echo yes)" yes
exec 6<&-
primefs query "$store" 'SELECT count(*) FROM nodes' >/dev/null

# ---- all of them; one that has just started has neither yet ----
beside='pfs-ahead|pfs-committer|pfs-hurry|pfs-measure|pfs-names|pfs-path-index|pfs-pool|pfs-rest'
others='pfs-client|pfs-control|pfs-lazy|pfs-monitor|pfs-notifier|pfs-piece|pfs-receiver|cuda[^ ]*'
as_expected() { ! grep -qvE "^(($beside) $nicer|($others) $own)\$" <<<"$(each print)"; }
ok 'all have a name and its niceness' wait_for 5 as_expected
unmount_store
