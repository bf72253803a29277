#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The same promises with one thread, with the kernel's writeback cache, without its
# caches of names, with listings of each kind, on the host engine.
# timeout: 300
. "$(dirname "$0")/../lib.sh"
requires fuse
export PFS_MOUNT=1

empty_store
for options in -s '-o writeback' '-o timeout=0' '-o readdirplus=always' '-o readdirplus=never' --engine=host; do
	# shellcheck disable=SC2086 # an option and its value
	if ! mount_store $options; then
		fail "mounts with $options"
		continue
	fi
	pass "mounts with $options"
	except=()
	[[ $options != *writeback* ]] || except=(--except=seeks_data_and_holes) # all is data there
	for probe in names paths rename times perms xattrs io direct maps content threads dirs; do
		mkdir "$mnt/$probe"
		run_probe "$probe" "${except[@]}" "$mnt/$probe"
		rmdir "$mnt/$probe"
	done
	unmount_store
done
check_store
