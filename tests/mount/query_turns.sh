#!/bin/bash
# SPDX-License-Identifier: MIT
# Statements take turns, those of commands and facets, too: a thousand who wait have no thread, hold nobody up and are
# all answered; who is interrupted or killed while he waits is let go at once.
# timeout: 300
# shellcheck disable=SC2016 # perl
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse

mkdir -p tree/a
echo hi >tree/a/file
primefs import tree "$store" >/dev/null
mount_in_foreground
q=$mnt/.query
slots=$((2 * $(nproc)))
((slots >= 2 && slots <= 64)) || slots=64
endless='WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n'
running() { sed -n 's/.*"running": \([0-9]*\),.*/\1/p' "$q/stats"; }
waiting() { sed -n 's/.*"waiting": \([0-9]*\),.*/\1/p' "$q/stats"; }
run_are() { (($(running) == $1)); }
wait_are() { (($(waiting) == $1)); }
threads() { sed -n 's/^Threads:[[:space:]]*//p' "/proc/$daemon/status"; }

# occupy: all slots have a statement without an end.
occupy() {
	pids=()
	for ((i = 0; i < slots; i++)); do
		cat "$q/sql/$endless" >/dev/null 2>&1 &
		pids+=($!)
	done
}
vacate() {
	kill -9 "${pids[@]}"
	wait "${pids[@]}" 2>/dev/null || true
}

# ---- a thousand wait ----
occupy
ok 'as many as may run do' wait_for 60 run_are "$slots"
before=$(threads)
readers=()
for i in {1..1000}; do
	cat "$q/sql/SELECT $i AS n" >"answer.$i" 2>>errors &
	readers+=($!)
done
ok 'a thousand wait' wait_for 120 wait_are 1000
ok 'without threads of theirs' test "$(threads)" -le $((before + 4))
is 'no more run' "$(running)" "$slots"
is 'names are looked up' "$(stat -c %s "$mnt/a/file")" 3
is 'files are read' "$(cat "$mnt/a/file")" hi
ok 'and made' touch "$mnt/a/new"
is 'what is no statement is answered' "$(wc -l <"$q/paths")" 4
vacate
for pid in "${readers[@]}"; do wait "$pid" || true; done
is 'all were answered' "$(cat errors)" ''
is 'each with his own' "$(for i in {1..1000}; do tail -n 1 "answer.$i"; done | cmp - <(seq 1000) && echo same)" same
ok 'none waits' wait_are 0

# ---- interrupted and killed while they wait ----
occupy
ok 'the slots are taken again' wait_for 60 run_are "$slots"
cat "$q/sql/SELECT 1" >/dev/null 2>&1 &
killed=$!
ok 'one waits' wait_for 20 wait_are 1
kill -9 "$killed"
wait "$killed" 2>/dev/null || true
ok 'killed, it is gone and waits no more' wait_for 5 wait_are 0
is 'the others go on' "$(running)" "$slots"
# A signal every $period seconds, until silence.
alarms='
	$SIG{ALRM} = sub { };
	sub alarms {
		my ($period, $whom) = (@_, $$);
		return if $child = fork;
		while (kill 0, $whom) { select undef, undef, undef, $period; kill ALRM => $whom }
		exit;
	}
	sub silence { kill KILL => $child; 1 while waitpid($child, 0) < 0 }
	sub must_fail { die "$_[0]: $!" if $_[1] || !$!{EINTR} }'
ok 'an open and a write are interrupted' timeout 60 perl -e "$alarms"'
	sysopen my $run, "$ARGV[0]/run", 1 or die "run: $!";
	alarms(0.01);
	for (1 .. 20) { must_fail("open", sysopen my $file, "$ARGV[0]/sql/SELECT 1", 0) }
	for (1 .. 20) { must_fail("write", syswrite $run, "SELECT 1") }
	silence' "$q"
ok 'and wait no more' wait_for 5 wait_are 0
vacate
ok 'none runs' wait_for 20 run_are 0
is 'the next is answered' "$(tail -n 1 "$q/sql/SELECT 7 AS n")" 7

# ---- commands' statements, and facets ----
occupy
ok 'the slots are taken for others' wait_for 60 run_are "$slots"
primefs query --tsv "$store" 'SELECT 8 AS n' >asked 2>&1 &
command=$!
ok "a command's statement waits" wait_for 20 wait_are 1
primefs query --tsv "$store" 'SELECT 9 AS n' >killed 2>&1 &
killed=$!
ok 'and another' wait_for 20 wait_are 2
kill -9 "$killed"
wait "$killed" 2>/dev/null || true
ok 'killed, it waits no more' wait_for 5 wait_are 1
ls "$q/where" >listed 2>&1 &
list=$!
ok 'so does a listing of facets' wait_for 20 wait_are 2
stat "$q/where/type" >looked 2>&1 &
look=$!
ok 'and a lookup' wait_for 20 wait_are 3
is 'what runs no statement is answered' "$(primefs tree "$store" count /)" 4
is 'they are not' "$(cat asked listed looked)" ''
vacate
wait "$command" && status=0 || status=$?
is 'then the command is' "$status $(tail -n 1 asked)" '0 8'
wait "$list" && status=0 || status=$?
is 'the listing, too' "$status $(grep -cx type listed)" '0 1'
wait "$look" && status=0 || status=$?
is 'and the lookup' "$status" 0
ok 'no turn is left over' wait_for 20 run_are 0

# Each turn that a command ends goes to a request or a command.
ok 'commands and requests are answered by turns' bash -c '
	for i in {1..100}; do
		primefs query --tsv "$1" "SELECT $i AS n" >"command.$i" &
		cat "$2/sql/SELECT $i AS n" >"request.$i" &
		((i % 8)) || wait
	done
	wait
	for i in {1..100}; do cmp "command.$i" "request.$i" || exit 1; done' - "$store" "$q"
ok 'and none waits' wait_are 0

# ---- one that runs ----
ok 'a statement that runs is interrupted' timeout 60 perl -e "$alarms"'
	alarms(0.3);
	must_fail("open", sysopen my $file, "$ARGV[0]/sql/$ARGV[1]", 0);
	silence' "$q" "$endless"
ok 'and ended' wait_for 5 run_are 0

# ---- while a listing is read ----
seq 0 49999 | awk '{print "/many/d" int($1 / 500) "/a name that is not short " $1 " but is not long either, rather between"}' |
	primefs import --format=paths - many.pfs >/dev/null
mkdir other
primefs mount many.pfs other
cleanup_fn force_unmount "$work/other"
primefs tree "$work/other" subtree / >whole
ok 'a listing is read under alarms, whole' timeout 100 perl -e "$alarms"'
	my ($file, $piece, $all);
	alarms(0.01);
	until (sysopen $file, $ARGV[0], 0) { die "open: $!" unless $!{EINTR} }
	for (;;) {
		my $n = sysread $file, $piece, 1 << 20;
		last if defined $n && !$n;
		die "read: $!" unless defined $n || $!{EINTR};
		$all .= $piece if defined $n;
	}
	silence;
	open my $whole, "<", "whole"; local $/; die "differs" if <$whole> ne $all;' other/.query/paths
primefs umount other

# ---- a daemon that is to end ends those who wait ----
occupy
ok 'the slots are taken' wait_for 60 run_are "$slots"
cat "$q/sql/SELECT 1" >/dev/null 2>&1 &
reader=$!
primefs query "$store" 'SELECT 1' >/dev/null 2>said &
command=$!
ok 'two wait for them' wait_for 20 wait_are 2
kill "$daemon"
wait "$daemon" && status=0 || status=$?
is 'the daemon ends well' "$status" 0
wait "$reader" && status=0 || status=$?
is 'who waited was told' "$status" 1
wait "$command" && status=0 || status=$?
ok 'and so was the command, or it asked the store' test "$status" = 0 -o -n "$(cat said)"
wait "${pids[@]}" 2>/dev/null || true
check_store
