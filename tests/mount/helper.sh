#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mount -t fuse.primefs, as fstab would have it.  The helper is installed where mount(8) looks, in a
# mount namespace of this test's own.
. "$(dirname "$0")/../lib.sh"
requires fuse root unshare

in_own_namespace || skip_all 'skipped: no mount namespaces'

mkdir "$work/sbin" "$work/bin"
ln -s "$PFS_BUILD/primefs" "$work/bin/primefs"
sed "s|@bindir@|$work/bin|" "$top/tools/mount.fuse.primefs" >"$work/sbin/mount.fuse.primefs"
chmod 755 "$work/sbin/mount.fuse.primefs"
sbin=$(readlink -f /sbin)
mount -t overlay -o "lowerdir=$work/sbin:$sbin" overlay "$sbin" 2>/dev/null || skip_all 'skipped: no overlay filesystem'
cleanup_fn umount -l "$sbin"

empty_store
ok 'mount -t fuse.primefs' mount -t fuse.primefs "$store" "$mnt"
is 'its type' "$(findmnt -n -o FSTYPE "$mnt")" fuse.primefs
is 'its source' "$(findmnt -n -o SOURCE "$mnt")" "$store"
echo text >"$mnt/f"
ok 'mount -o remount,ro' mount -o remount,ro "$mnt"
fails_with 'refuses changes then' 'Read-only' touch "$mnt/g"
is 'reads' "$(cat "$mnt/f")" text
ok 'umount' umount "$mnt"
ok 'with options' mount -t fuse.primefs -o ro,noauto,nofail,noexec,x-test.option=1 "$store" "$mnt"
fails_with '-o ro' 'Read-only' touch "$mnt/g"
ok 'umount' umount "$mnt"

echo "$store $mnt fuse.primefs noauto,users,allow_other 0 0" >"$work/fstab"
ok 'a line of fstab' mount --fstab "$work/fstab" "$mnt"
is 'reads' "$(cat "$mnt/f")" text
is 'allow_other' "$(as "$nobody" cat "$mnt/f")" text
ok 'umount' umount "$mnt"

# suid and dev count where nobody but root can have made what runs with them.
flags() { findmnt -n -o VFS-OPTIONS "$mnt" | tr ',' '\n' | grep -xE 'nosuid|nodev' | sort | xargs; }
mount -t tmpfs -o mode=755 tmpfs /mnt
cleanup_fn umount -l /mnt
mkdir /mnt/dev
cp "$store" /mnt/s.pfs
chmod 644 /mnt/s.pfs
chmod 755 "$work"
for options in defaults suid,dev suid dev nosuid,suid,dev suid,nodev; do
	case $options in
	defaults) wanted='nodev nosuid' ;;
	suid | suid,nodev) wanted=nodev ;;
	dev) wanted=nosuid ;;
	*) wanted= ;;
	esac
	ok "mount -o $options" mount -t fuse.primefs -o "$options" /mnt/s.pfs "$mnt"
	is 'as said' "$(flags)" "$wanted"
	umount "$mnt"
done
(cd /mnt && mount -t fuse.primefs s.pfs dev)
is 'a mountpoint of that name says nothing' "$(findmnt -n -o VFS-OPTIONS /mnt/dev | grep -c 'nosuid,nodev')" 1
umount /mnt/dev
echo "/mnt/s.pfs $mnt fuse.primefs noauto,suid,dev 0 0" >"$work/fstab"
ok 'a line of fstab says so' mount --fstab "$work/fstab" "$mnt"
is 'and it counts' "$(flags)" ''
printf '#!/bin/sh\nid -u\n' >"$mnt/f"
cp "$(command -v id)" "$mnt/id"
chmod 4755 "$mnt/id"
umount "$mnt"
mount -t fuse.primefs -o suid,dev,allow_other /mnt/s.pfs "$mnt"
is 'a file runs as its owner' "$(as "$nobody" "$mnt/id" -u)" 0
fails_with 'remounting keeps that' 'leave these out' bash -c "chmod o+w /mnt/s.pfs; mount -o remount,suid,dev '$mnt'"
umount "$mnt"

refused() { # DESCRIPTION
	fails_with "$1" '^primefs mount: [^ ]*: others than root .*leave these out' \
		mount -t fuse.primefs -o suid,dev "${2:-/mnt/s.pfs}" "$mnt"
	not_ok 'nothing is mounted' is_mounted "$mnt"
}
refused 'a store that others may write is refused'
chmod 664 /mnt/s.pfs
refused 'one that a group may write'
chmod 644 /mnt/s.pfs
chown "$nobody" /mnt/s.pfs
refused 'and one of another user'
fails_with 'nor is dev granted alone' 'leave these out' primefs mount -o dev /mnt/s.pfs "$mnt"
ok 'without them it is mounted' mount -t fuse.primefs /mnt/s.pfs "$mnt"
is 'without powers' "$(flags)" 'nodev nosuid'
umount "$mnt"
chown root /mnt/s.pfs
chmod 1777 /mnt
refused 'a store in a folder where others may write'
chmod 755 /mnt
mkdir /mnt/theirs
chown "$nobody" /mnt/theirs
mv /mnt/s.pfs /mnt/theirs
refused 'or in one of theirs' /mnt/theirs/s.pfs
check_store
