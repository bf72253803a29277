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
check_store
