#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Random operations on a mount and on tmpfs give the same answers and the same trees, also after a
# remount.
# timeout: 300
. "$(dirname "$0")/../lib.sh"
requires fuse
[[ $(stat -f -c %T /dev/shm 2>/dev/null) == tmpfs && -w /dev/shm ]] || skip_all 'skipped: no tmpfs at /dev/shm'

ref=$(mktemp -d /dev/shm/primefs.XXXXXX)
cleanup_fn rm -rf "$ref"
chmod 755 "$ref"

mount_store
rounds=2
((!PFS_LONG)) || rounds=40
users=("$EUID")
((EUID != 0)) || users+=("$nobody")
for uid in "${users[@]}"; do
	mkdir -m 777 "$ref/$uid" "$mnt/$uid"
	chmod 777 "$ref/$uid" "$mnt/$uid"
	as_user=()
	((EUID != 0)) || as_user=(--uid="$uid")
	for ((i = 1; i <= rounds; i++)); do
		run_probe twin --seed=$((RANDOM * 32768 + RANDOM)) --ops=4000 "${as_user[@]}" "$ref/$uid" "$mnt/$uid"
		run_probe twin --seed=$((RANDOM * 32768 + RANDOM)) --ops=200 --times "${as_user[@]}" "$ref/$uid" "$mnt/$uid"
		remount_store
		run_probe twin --ops=0 "$ref/$uid" "$mnt/$uid"
	done
done
unmount_store
check_store
