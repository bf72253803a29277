#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A crash leaves no content behind that has lost its name, and no half of a large write-up.
. "$(dirname "$0")/../lib.sh"
requires fuse

mount_in_foreground
head -c 8000000 /dev/urandom >"$work/big"
exec 8<>"$mnt/open"
cat "$work/big" >&8
sync "$mnt/open"
rm "$mnt/open"
sync "$mnt"
ok 'still there while it is open' cmp "$work/big" "/proc/$$/fd/8"
echo kept >"$mnt/kept"
sync "$mnt/kept"
kill -9 "$daemon"
wait "$daemon" 2>/dev/null || true
exec 8>&-
force_unmount "$mnt"
check_store
mount_store
is 'what has a name is there' "$(ls -A "$mnt")" kept
is 'and whole' "$(cat "$mnt/kept")" kept
sleep 1.5
unmount_store
check_store
is 'bytes of nodes' "$(primefs info --json "$store" | tr -d ' ,"' | grep '^bytes:')" 'bytes:5'

# Space is used again: as much once more does not make the store grow by as much.
size=$(stat -c %s "$store")
mount_store
cp "$work/big" "$mnt/again"
unmount_store
ok 'its space is used again' test "$(stat -c %s "$store")" -lt $((size + 4000000))
check_store
