#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Content imported by link: read through to the original, copied up by the first write, never reached
# outside the import's root, never written at the source.
# timeout: 240
. "$(dirname "$0")/../lib.sh"
requires fuse

src=$work/src
mkdir -p "$src/d/e"
echo original >"$src/d/f"
echo other >"$src/d/g"
head -c 1000000 /dev/urandom >"$src/big"
chmod 640 "$src/d/g"
touch -d '2001-02-03 04:05:06.789' "$src/d/f"
ln -s f "$src/d/link"
secret=$work/secret
echo secret >"$secret"

# Everything about the source that a write could change.
state() { (cd "$src" && find . -printf '%p %y %m %s %T@ %u %g %l\n' | sort && find . -type f -exec sha256sum {} + | sort); }

primefs import --content=link "$src" "$store" >/dev/null
ok 'the store does not hold the bytes' test "$(stat -c %s "$store")" -lt 500000
mount_store
ok 'reads through' cmp "$src/big" "$mnt/big"
is 'attributes are the original'"'"'s' "$(stat -c '%a %s %Y %u %g' "$mnt/d/f" "$mnt/d/g")" \
	"$(stat -c '%a %s %Y %u %g' "$src/d/f" "$src/d/g")"
is 'to the nanosecond' "$(stat -c %y "$mnt/d/f")" "$(stat -c %y "$src/d/f")"
is 'symlinks' "$(readlink "$mnt/d/link")" f

before=$(state)
echo more >>"$mnt/d/f"
is 'a write copies up' "$(cat "$mnt/d/f")" $'original\nmore'
printf X | dd of="$mnt/big" bs=1 seek=500000 conv=notrunc status=none
{ head -c 500000 "$src/big" && printf X && tail -c +500002 "$src/big"; } >"$work/expected"
ok 'in the middle too' cmp "$work/expected" "$mnt/big"
truncate -s 3 "$mnt/d/g"
is 'truncation too' "$(cat "$mnt/d/g")" oth
chmod 600 "$mnt/d/f"
mv "$mnt/d" "$mnt/moved"
is 'the source is as it was' "$(state)" "$before"
remount_store
is 'what was copied up is kept' "$(cat "$mnt/moved/f")" $'original\nmore'
ok 'and whole' cmp "$work/expected" "$mnt/big"
is 'the source still is' "$(state)" "$before"
rm -rf "$mnt/moved" "$mnt/big"
is 'and after a removal' "$(state)" "$before"
unmount_store
check_store
rm "$store"

# Originals that change while they are mounted.
printf 'text ' >"$src/d/f-grows"
primefs import --content=link "$src" "$store" >/dev/null
mount_store
is 'before' "$(cat "$mnt/d/f")" original
echo 'longer than before' >"$src/d/f"
is 'a changed original shows' "$(cat "$mnt/d/f")" 'longer than before'
is 'its size too' "$(stat -c %s "$mnt/d/f")" 19
echo 'shorter' >"$src/new" && mv "$src/new" "$src/d/f"
is 'also one that was replaced' "$(cat "$mnt/d/f")" shorter
chmod 751 "$src/d/f"
is 'its mode is taken over' "$(stat -c %a "$mnt/d/f")" 751
exec 7<"$mnt/d/f"
echo 'while it is open' >"$src/d/f"
is 'a new open sees the change' "$(cat "$mnt/d/f")" 'while it is open'
cat <&7 >"$work/read"
echo 'and then grows' >>"$src/d/f"
is 'what is appended to an original is read by who has it open' "$(cat <&7)" 'and then grows'
echo 'while it is open' >"$src/d/f"
exec 7<&-
if ((EUID == 0)); then
	chmod 644 "$src/d/f"
	is 'somebody else may read' "$(as "$nobody" cat "$mnt/d/f")" 'while it is open'
	chmod 600 "$src/d/f"
	fails_with 'access is decided on the changed mode' 'denied' as "$nobody" cat "$mnt/d/f"
	chmod 644 "$src/d/f"
	is 'and back' "$(as "$nobody" cat "$mnt/d/f")" 'while it is open'
fi
mkdir "$work/probe"
PFS_ORIGINAL=$src/d/f PFS_LINKED=$mnt/d/f run_probe originals "$work/probe"

# -o writeback would have the kernel believe in the old sizes.
unmount_store
mount_with_writeback() {
	mount_store -o writeback 2>"$work/warning" && grep -q 'writeback stays off' "$work/warning"
}
ok 'writeback stays off where originals may change' mount_with_writeback
echo 'a good deal longer' >"$src/d/f"
is 'so that they show' "$(cat "$mnt/d/f")" 'a good deal longer'
echo short >"$src/d/f"
is 'when they shrink, too' "$(cat "$mnt/d/f")" short
remount_store

rm "$src/d/f"
fails_with 'a missing original is ESTALE' 'Stale' cat "$mnt/d/f"
ok 'its name is still there' test -n "$(find "$mnt/d" -name f)"
echo back >"$src/d/f"
is 'and it comes back' "$(cat "$mnt/d/f")" back
mkdir "$work/elsewhere"

# Symlinks put in the way lead nowhere.
rm "$src/d/f"
ln -s "$secret" "$src/d/f"
not_ok 'a symlink in place of the original is not followed' grep -q secret "$mnt/d/f"
rm "$src/d/f"
ln -s ../../secret "$src/d/f"
not_ok 'nor a relative one' grep -q secret "$mnt/d/f"
mv "$src/d" "$src/gone"
mkdir "$work/outside"
echo secret >"$work/outside/g"
ln -s "$work/outside" "$src/d"
not_ok 'nor one in place of its folder' grep -q secret "$mnt/d/g"
rm "$src/d"
ln -s gone "$src/d"
not_ok 'nor one that stays inside' cat "$mnt/d/g"
rm "$src/d"
mkfifo "$src/fifo" && mv "$src/big" "$src/big.away" && mv "$src/fifo" "$src/big"
fails_with 'a fifo in place of a file does not block' 'Stale|Input/output|Invalid' timeout 10 cat "$mnt/big"
unmount_store
check_store

# copy and none
rm "$store"
rm -rf "$src"
mkdir -p "$src"
echo copied >"$src/f"
primefs import --content=copy "$src" "$store" >/dev/null
rm "$src/f"
mount_store
is 'content=copy does not need the source' "$(cat "$mnt/f")" copied
unmount_store
rm "$store"
echo 12345 >"$src/f"
primefs import --content=none "$src" "$store" >/dev/null
mount_store
is 'content=none has the sizes' "$(stat -c %s "$mnt/f")" 6
fails_with 'but no bytes' 'No data available' cat "$mnt/f"
echo own >"$mnt/f"
is 'until they are written' "$(cat "$mnt/f")" own
unmount_store
check_store

# A filesystem that is mounted anew may get another device number, as most do that have no device of
# their own.  Another one with the same numbers in it is not the one that was imported, and what is found
# by way of a symlink could be anybody's.
renewed() { # another tmpfs in place of $src, with the same inode numbers
	mount -t tmpfs none "$work/elsewhere" && umount "$src" && # while the old one has its number
		mount --bind "$work/elsewhere" "$src" && umount "$work/elsewhere" &&
		mkdir "$src/in" && echo second >"$src/in/f" &&
		[[ $(stat -c %i "$src/in") == "${place#* }" ]]
}
has_other_number() { # not where filesystems without a device share one number, or one loop device is free
	[[ $(stat -c %d "$src/in") != "${place% *}" ]]
}
rm -rf "$src" "$store"
mkdir "$src"
if ((EUID == 0)) && mount -t tmpfs none "$src"; then
	mkdir "$src/in"
	echo first >"$src/in/f"
	place=$(stat -c '%d %i' "$src/in")
	primefs import "$src/in" "$store" >/dev/null
	ok 'another filesystem has the same inode numbers' renewed
	mount_store 2>/dev/null
	if has_other_number; then
		fails_with 'but is another folder' 'Stale' cat "$mnt/f"
	else
		skip 'no other device number for a folder'
	fi
	unmount_store
	umount "$src"
	check_store
else
	skip 'no tmpfs to be had'
fi
attach() { # mounts the disk at $src, with the number of the first loop device that is free
	mount -o loop "$work/disk" "$src"
}
truncate -s 16M "$work/disk"
if ((EUID == 0)) && command -v mkfs.ext4 >/dev/null && mkfs.ext4 -q "$work/disk" && attach 2>/dev/null; then
	mkdir "$src/in"
	echo first >"$src/in/f"
	place=$(stat -c %d "$src/in")
	rm -f "$store"
	primefs import "$src/in" "$store" >/dev/null
	mount_store
	chmod 640 "$mnt/f"
	touch -d '2001-02-03' "$mnt/f"
	unmount_store
	umount "$src"
	truncate -s 16M "$work/other"
	taken=$(losetup -f --show "$work/other")
	cleanup_fn losetup -d "$taken"
	attach
	numbers_differ=
	if has_other_number; then numbers_differ=1; fi
	mount_store
	is 'its files are read' "$(cat "$mnt/f")" first
	is 'and what a user set is kept' "$(stat -c '%a %y' "$mnt/f" | cut -c 1-14)" '640 2001-02-03'
	echo second >"$src/in/f"
	is 'also when they change' "$(cat "$mnt/f") $(stat -c %a "$mnt/f")" 'second 640'
	remount_store
	is 'and are looked at again' "$(cat "$mnt/f") $(stat -c %a "$mnt/f")" 'second 640'
	unmount_store
	mkdir "$work/aside"
	mount --move "$src" "$work/aside" 2>/dev/null || mount --bind "$src" "$work/aside"
	umount "$src" 2>/dev/null || true
	rmdir "$src"
	ln -s aside "$src"
	mount_store 2>/dev/null
	if [[ $numbers_differ ]]; then
		fails_with 'not where a symlink leads to' 'Stale' cat "$mnt/f"
	else
		skip 'no other device number for a disk'
	fi
	unmount_store
	umount "$work/aside"
	check_store
else
	skip 'no disk to be had'
fi
