#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What POSIX and Linux promise, probe by probe, on a mount and again after a remount.
# timeout: 300
. "$(dirname "$0")/../lib.sh"
requires fuse
export PFS_MOUNT=1

mount_store
for probe in "${all_probes[@]}"; do
	mkdir "$mnt/$probe"
	run_probe "$probe" "$mnt/$probe"
done
is 'the probes clean up behind them' "$(find "$mnt" -mindepth 2)" ''
unmount_store
check_store
