#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# An ordinary user imports, mounts (through fusermount3), works and unmounts.
# timeout: 300
. "$(dirname "$0")/../lib.sh"
requires fuse unprivileged
export PFS_MOUNT=1

chown -R "$nobody:$nobody" "$work"
user() { as "$nobody" env HOME="$work" "$@"; }
user primefs import --format=paths - "$store" </dev/null >/dev/null
ok 'an ordinary user mounts' user primefs mount "$store" "$mnt"
is 'the root is theirs' "$(user stat -c %u "$mnt")" "$nobody"
not_ok 'others may not enter' ls "$mnt"
run_as=(user)
for probe in names paths rename times io maps content threads dirs xattrs locks; do
	user mkdir "$mnt/$probe"
	run_probe "$probe" "$mnt/$probe"
done
ok 'and unmounts' user primefs umount "$mnt"
not_ok 'nothing is mounted any more' is_mounted "$mnt"
ok 'check is clean' user primefs check "$store"
