#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fio verifies what it wrote, stress-ng hammers: minutes, so only with --long and where they are installed.
. "$(dirname "$0")/../lib.sh"
requires fuse
((PFS_LONG)) || skip_all 'skipped: takes minutes (--long)'

mount_store
if command -v fio >/dev/null; then
	for how in write randwrite randrw; do
		ok "fio $how" fio --name=verify --directory="$mnt" --rw=$how --bs=3k-130k --bs_unaligned=1 \
			--size=300m --numjobs=2 --verify=crc32c --verify_fatal=1 --do_verify=1 --fsync=500 --minimal
		rm -f "$mnt"/verify*
	done
else
	skip 'no fio'
fi
if command -v stress-ng >/dev/null; then
	cd "$mnt"
	known=$(stress-ng --stressors 2>&1)
	for what in access chdir chmod chown copy-file dentry dir dirdeep dirmany dnotify dup fallocate fcntl \
		fiemap file-ioctl filename flock fpunch fsize fstat getdent handle hdd inotify io iomix lease \
		locka lockf lockofd metamix mknod mmap msync open readahead rename revio seek sendfile symlink \
		sync-file touch unlink utime verity xattr; do
		if [[ " $known " != *[[:space:]]"$what"[[:space:]]* ]]; then
			skip "this stress-ng has no --$what"
			continue
		fi
		ok "stress-ng --$what" stress-ng --"$what" 2 --timeout 5s --verify --temp-path "$mnt"
	done
	cd "$work"
else
	skip 'no stress-ng'
fi
unmount_store
check_store
