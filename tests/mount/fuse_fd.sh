#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The connection to the kernel as it is made with libfuse 3.17 and later (fs/mount/session.c): POSIX's promises,
# notices, unmounting.  `make check-fuse-fd` runs all mount tests over it.
# timeout: 300
. "$(dirname "$0")/../lib.sh"
requires fuse awk
[[ -x $PFS_BUILD/tests/fuse-fd/primefs ]] || skip_all 'skipped: its primefs is not built'
export PATH=$PFS_BUILD/tests/fuse-fd:$PATH PFS_MOUNT=1

mount_store
for probe in names perms io content threads; do
	mkdir "$mnt/$probe"
	run_probe "$probe" "$mnt/$probe"
	rmdir "$mnt/$probe"
done
echo "UPDATE nodes SET mode = 384 WHERE path = '/told'" >statement
touch "$mnt/told"
is 'the kernel knows the mode' "$(stat -c %a "$mnt/told")" 644
dd if=statement of="$mnt/.query/run" status=none
is 'and is told of another' "$(stat -c %a "$mnt/told")" 600
ok 'umount waits for the commit' primefs umount "$mnt"
not_ok 'nothing is mounted' is_mounted "$mnt"

mount_in_foreground -d
dd if=/dev/zero of="$mnt/f" bs=4k count=100 status=none
is 'a write of 4 KiB is one request' "$(grep -c 'opcode: WRITE ' daemon.log)" 100
if pkg-config --exists 'fuse3 >= 3.17' 2>/dev/null; then
	ok 'and no other' test "$(grep -c 'opcode: GETXATTR' daemon.log || true)" -lt 50
else
	skip 'and no other: libfuse before 3.17 cannot ask for that here'
fi
unmount_store
check_store

# The image file and the store are damaged while they are used: the very request that meets it has no answer made of nothing.
awk 'BEGIN { for (i = 0; i < 70000; i++) printf "/d%d/e%d/f%d\n", i % 50, i % 1000, i }' >list
rm -f "$store"
primefs import --quiet --format=paths list "$store"
ok 'there is an image file' wait_for 60 test -e "$store.img"
mount_in_foreground
ok 'its root is known' stat -c %i "$mnt"
head -c "$(stat -c %s "$store.img")" /dev/zero | dd of="$store.img" conv=notrunc status=none
head -c $(($(stat -c %s "$store") - 40960)) /dev/zero | dd of="$store" bs=40960 seek=1 conv=notrunc status=none
fails_with 'the first request' 'Input/output error' stat "$mnt/d7"
fails_with 'and the next' 'Input/output error' stat "$mnt/d8"
fusermount3 -u "$mnt"
wait "$daemon" 2>/dev/null || true
