#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The disk below the store fails (tests/vfs/faultvfs.h): whoever syncs or changes something is told
# so, what is there can be read, and when the disk works again so does the mount, with nothing
# committed or still pending lost.
. "$(dirname "$0")/../lib.sh"
requires fuse

put() { printf '%s' "$2" >"$mnt/$1"; }
can_write() { put "probe-$RANDOM" x; }

# fault NAME PLAN MESSAGE: groups fail, every way of asking tells, and then it goes on.
fault() {
	local name=$1 status=0
	put "$name.before" kept
	sync "$mnt/$name.before"
	put "$name.pending" 'written while the disk still answered'
	mkfifo "$work/$name.fifo"
	dd if="$work/$name.fifo" of="$mnt/$name.open" bs=4 status=none 2>"$work/$name.dd" &
	local writer=$!
	exec 8>"$work/$name.fifo"
	printf 'open' >&8
	wait_for 10 test -s "$mnt/$name.open"
	begin_fault "$2"
	fails_with "$name: fsync of a file" "$3" sync "$mnt/$name.pending"
	fails_with "$name: fsync of a folder" "$3" sync "$mnt"
	exec 8>&-
	wait "$writer" || status=$?
	is "$name: close of what was open for writing fails" "$status" 1
	ok "$name: with the same error" grep -qE "$3" "$work/$name.dd"
	fails_with "$name: it is not unmounted" "cannot commit: $3" primefs umount "$mnt"
	ok "$name: it is mounted still" is_mounted "$mnt"
	fails_with "$name: nothing more is taken" 'Read-only file system' put "$name.refused" x
	fails_with "$name: nor removed" 'Read-only file system' rm "$mnt/$name.before"
	if [[ $name != memory ]]; then # reading needs some
		is "$name: what was committed is read" "$(cat "$mnt/$name.before")" kept
	fi
	is "$name: and what is pending" "$(cat "$mnt/$name.pending")" \
		'written while the disk still answered'
	end_fault
	ok "$name: it goes on" wait_for 20 can_write
	ok "$name: fsync again" sync "$mnt/$name.pending"
	put "$name.after" later
	ok "$name: and of new files" sync "$mnt/$name.after"
}

mount_faulty
fault write 'write:0:*:EIO' 'Input/output error'
fault sync 'sync:0:*:EIO' 'Input/output error'
fault space 'write:0:*:ENOSPC' 'No space left on device'
fault memory 'memory:0:*:ENOMEM' 'Cannot allocate memory'

# A fault that lasts for one call is met by a commit in the background or by nobody; either way
# nothing is lost.
for i in 1 2 3 4 5 6; do
	begin_fault "any:$((i * 7)):1:EIO"
	mkdir "$mnt/once$i" 2>/dev/null || true
	sync "$mnt" 2>/dev/null || true
	end_fault
	wait_for 20 can_write
done
ok 'after all of them' sync "$mnt"
find "$mnt" -mindepth 1 ! -name 'probe-*' -printf '%f\n' >"$work/names"

# Killed in the middle of a fault: what was synced before is there.
put last synced
sync "$mnt/last"
begin_fault 'sync:0:*:EIO'
put lost pending || true
sync "$mnt" 2>/dev/null || true
kill -9 "$daemon"
wait "$daemon" 2>/dev/null || true
force_unmount "$mnt"
check_store
mount_store
is 'the last synced file' "$(cat "$mnt/last")" synced
ok 'all names are there' test -z "$(cd "$mnt" && xargs -d '\n' -n 1 ls -d <"$work/names" 2>&1 >/dev/null)"
for name in write sync space memory; do
	is "$name: in the store" "$(cat "$mnt/$name".{before,pending,after})" \
		"keptwritten while the disk still answeredlater"
	not_ok "$name: what was refused" test -e "$mnt/$name.refused"
done
unmount_store
check_store
