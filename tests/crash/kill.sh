#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# kill -9 of the daemon at random moments under creates, writes, renames, unlinks and fsyncs: what is
# left is a state that the folder had, no older than the last fsync (crash/writer.c), and the store is
# sound.  Refuses to pass if nothing was fsynced or nothing killed.
# timeout: 240
. "$(dirname "$0")/../lib.sh"
requires fuse

writer=$PFS_BUILD/tests/crash/writer
cycles=6
((!PFS_LONG)) || cycles=250
writers=3
seed=${PFS_SEED:-$((RANDOM * 32768 + RANDOM))}
echo "PFS_SEED=$seed"
RANDOM=$seed
export LC_ALL=C

kills=0 syncs=0 operations=0 lost=0
failed_before=0

# after_crash CYCLE: what each writer left is right, and what the cycle before left is as it was.
after_crash() {
	local cycle=$1 i begun count settled _
	for ((i = 0; i < writers; i++)); do
		ok "cycle $cycle, writer $i: a state it had, with all that was fsynced" \
			"$writer" verify "$mnt/$cycle-$i" $((seed + cycle * writers + i)) "$work/$cycle-$i.result"
		read -r begun _ count settled _ <"$work/$cycle-$i.result"
		syncs=$((syncs + count)) operations=$((operations + begun))
		((settled < 0)) || lost=$((lost + begun - settled))
		if ((cycle > 0)); then
			ok "cycle $cycle: what the cycle before left is the same" \
				"$writer" again "$mnt/$((cycle - 1))-$i" $((seed + (cycle - 1) * writers + i)) \
				"$work/$((cycle - 1))-$i.result"
			rm -rf "$mnt/$((cycle - 1))-$i"
		fi
	done
}

for ((cycle = 0; cycle < cycles; cycle++)); do
	mount_in_foreground
	((cycle == 0)) || after_crash $((cycle - 1))
	# a file that has lost its name but is open, and written to, when the daemon dies
	exec 9>"$mnt/unlinked"
	rm "$mnt/unlinked"
	head -c 300000 /dev/urandom >&9
	pids=()
	for ((i = 0; i < writers; i++)); do
		mkdir "$mnt/$cycle-$i"
		sync "$mnt/$cycle-$i"
		"$writer" run "$mnt/$cycle-$i" $((seed + cycle * writers + i)) "$work/$cycle-$i.result" &
		pids+=($!)
	done
	sleep "$((RANDOM % 2)).$((RANDOM % 10))$((RANDOM % 10))"
	kill -9 "$daemon"
	wait "$daemon" 2>/dev/null && status=0 || status=$?
	((status != 137)) || kills=$((kills + 1))
	exec 9>&- || true
	for pid in "${pids[@]}"; do
		wait "$pid" || fail "cycle $cycle: a writer was told something else than that the daemon is gone"
	done
	force_unmount "$mnt"
	if ((RANDOM % 2)); then
		check_store "$store"
	fi
	((n_failed == failed_before)) || break
done

mount_store
((n_failed > 0)) || after_crash $((cycles - 1))
rm -rf "${mnt:?}"/*
sync "$mnt"
unmount_store
check_store
is 'no content without a name is left' "$(primefs info --json "$store" | tr -d ' ,"' | grep '^bytes:')" 'bytes:0'
ok "the daemon was killed in each of $cycles cycles" test "$kills" -eq "$cycles"
ok "something was fsynced ($syncs times in $operations operations)" test "$syncs" -gt "$cycles"
echo "$kills kills, $operations operations, $syncs fsyncs, $lost operations not yet fsynced were lost"
