#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The log that a crash leaves beside a store is played back into that store, and into no other in its place.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse getfattr

crash() { # leaves a log with a part of the changes, and, as old.pfs, the store as it was some groups before
	local pid i
	rm -f "$store"*
	seq 3000 | sed 's|^|/d/|' | primefs import -q --format=paths - "$store"
	mount_store
	cp "$store" old.pfs
	for ((i = 0; i < 3; i++)); do
		touch "$mnt/before$i"
		sync "$mnt"
	done
	remount_store
	touch "$mnt/after"
	rm "$mnt"/d/1*
	sync "$mnt"
	pid=$(getfattr --absolute-names --only-values -n user.primefs.daemon "$mnt" | cut -d' ' -f1)
	kill -9 "$pid"
	wait_for 5 gone "$pid"
	primefs umount "$mnt"
	test -s "$store-wal"
}
nodes() { primefs query --csv "$1" 'SELECT count(*) FROM nodes' | tail -n 1 | tr -d '\r'; }
refused() { # DESCRIPTION: every command leaves the store as it is
	cp "$store" is.pfs
	for command in check info export optimize; do
		fails_with "$1: $command" 'its log .-wal. was left by another store' primefs "$command" "$store"
	done
	fails_with "$1: mount" 'its log .-wal. was left by another store' primefs mount "$store" "$mnt"
	ok "$1: nothing is changed" cmp "$store" is.pfs
}

crash
is 'its own log is played back' "$(nodes "$store")" "$((3000 + 6 - 1111))"
check_store

crash
cp "$store" moved.pfs
mv "$store-wal" moved.pfs-wal
is 'also where both were moved' "$(nodes moved.pfs)" "$((3000 + 6 - 1111))"

crash
seq 5000 | sed 's|^|/e/|' | primefs import -q --format=paths - other.pfs
mv other.pfs "$store"
refused 'another store in its place'
rm "$store-wal"
check_store
is 'which is whole without that log' "$(nodes "$store")" 5002

crash
cp old.pfs "$store"
refused 'a backup of other times'
rm "$store-wal"
check_store
is 'which is whole, too' "$(nodes "$store")" 3002

crash
rm "$store"
empty_store
is 'an import clears it away' "$(nodes "$store")" 1
