#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The daemon: one for each store, ends cleanly in every way it may be asked to.
. "$(dirname "$0")/../lib.sh"
requires fuse

one_file() { # the store is one file again, without -wal and the like
	[[ $(ls -d "$store"*) == "$store" ]]
}

mount_in_foreground
echo one >"$mnt/f"
mkdir "$work/second"
fails_with 'a second daemon is refused with the pid of the first' "\\b$daemon\\b" \
	primefs mount "$store" "$work/second"
not_ok 'and mounts nothing' is_mounted "$work/second"
fails_with 'check is refused with the pid' "\\b$daemon\\b" primefs check "$store"
fails_with 'import is refused with the pid' "\\b$daemon\\b" \
	primefs import --format=paths --at=/ - "$store"
ok 'primefs umount succeeds' primefs umount "$mnt"
not_ok 'the daemon is gone when umount returns' kill -0 "$daemon"
wait "$daemon" && status=0 || status=$?
is 'its status is 0' "$status" 0
ok 'the store is one file' one_file

for signal in TERM INT HUP; do
	mount_in_foreground
	is "all is there before SIG$signal" "$(cat "$mnt/f")" one
	echo "$signal" >"$mnt/$signal"
	kill -s "$signal" "$daemon"
	wait "$daemon" && status=0 || status=$?
	is "SIG$signal ends the daemon with status 0" "$status" 0
	not_ok "SIG$signal unmounts" is_mounted "$mnt"
	ok "SIG$signal leaves one file" one_file
done

mount_store
for signal in TERM INT HUP; do
	is "what was written before SIG$signal is there" "$(cat "$mnt/$signal")" "$signal"
done
(cd "$mnt" && exec sleep 30) &
busy=$!
cleanup_fn kill_own "$busy"
is_there() { [[ $(readlink "/proc/$busy/cwd") == "$mnt" ]]; }
wait_for 5 is_there
fails_with 'a busy mount is not unmounted' 'in use|[Bb]usy' primefs umount "$mnt"
echo more >"$mnt/more"
kill "$busy"
wait "$busy" 2>/dev/null || true
ok 'and is once it is free' primefs umount "$mnt"

mount_store
for ((i = 0; i < 2000; i++)); do echo "$i" >"$mnt/n$i"; done
ok 'plain umount works' umount "$mnt"
ok 'the next command waits for the daemon' primefs info "$store"
mount_store
is 'nothing was lost' "$(cat "$mnt"/n* | wc -l)" 2000
is 'nor before' "$(cat "$mnt/more")" more
primefs umount "$mnt"
ok 'one file' one_file
check_store

fails_with 'no store' "$work/none.pfs" primefs mount "$work/none.pfs" "$mnt"
fails_with 'no folder' "$work/nowhere" primefs mount "$store" "$work/nowhere"
fails_with 'nothing mounted there' "$work/second" primefs umount "$work/second"
fails_with 'an unknown option' 'nonsense' primefs mount -o nonsense "$store" "$mnt"
not_ok 'nothing is mounted after refusals' is_mounted "$mnt"
mkdir "$work/a b,c"
ln -s "$store" "$work/link to store.pfs"
ok 'odd names are no obstacle' primefs mount "$work/link to store.pfs" "$work/a b,c"
ok 'through the odd name' cat "$work/a b,c/f"
fails_with 'one store by two names is one store' '[0-9]+' primefs mount "$store" "$mnt"
ok 'and unmount' primefs umount "$work/a b,c"
for closed in '<&-' '>&-' '2>&-' '<&- >&- 2>&-'; do
	ok "nor are closed descriptors, $closed" bash -c "primefs mount '$store' '$mnt' $closed"
	ok "it is mounted, $closed" is_mounted "$mnt"
	ok "it works, $closed" cat "$mnt/f"
	ok "umount, $closed" bash -c "primefs umount '$mnt' $closed"
	not_ok "is over, $closed" is_mounted "$mnt"
done
fails_with 'what cannot be printed is an error' 'Bad file descriptor' bash -c "primefs export --format=paths '$store' >&-"
ok 'relative names are no obstacle' primefs mount store.pfs mnt
ok 'for umount neither' primefs umount mnt

# A lock of the script that mounts, a pipe that somebody reads to its end: neither is the daemon's.
exec 9>"$work/lock"
flock 9
mount_store
exec 9>&-
ok 'descriptors of the mounting process are not kept' flock -n "$work/lock" true
is 'the daemon serves all the same' "$(cat "$mnt/more")" more
unmount_store
