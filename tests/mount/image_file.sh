#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The image file that a large store is opened from: left by umount, used by mounts and by commands, and made
# anew when the store has changed.  What is in it otherwise is test_imagefile's.
. "$(dirname "$0")/../lib.sh"
requires fuse awk

image=$store.img
awk 'BEGIN { for (i = 0; i < 70000; i++) printf "/d%d/e%d/f%d\n", i % 50, i % 1000, i }' >"$work/list"
primefs import --quiet --format=paths "$work/list" "$store"

# is_another INODE: there is an image file, whole, and it is not that one.
is_another() { [[ -e $image && ! -e $image.part && $(stat -c %i "$image") != "${1-}" ]]; }
await_image() { wait_for 60 is_another "${1-}"; }
ok 'import leaves one' await_image
answers() { primefs find "$store" -name '*99' | sort | sha256sum; }
expected=$(answers)
rm -f "$image"
is 'without it the answers are the same' "$(answers)" "$expected"

mount_store -o snapshot=no
unmount_store
mount_store -o ro
unmount_store
sleep 0.5
not_ok 'without leave none is made' test -e "$image"
fails_with 'yes or no' 'snapshot: not yes or no' primefs mount -o snapshot=perhaps "$store" "$mnt"

mount_store
unmount_store
ok 'umount leaves one' await_image
is 'with the mode of the store' "$(stat -c %a:%u "$image")" "$(stat -c %a:%u "$store")"
is 'commands answer from it as before' "$(answers)" "$expected"
made=$(stat -c %i "$image")
mount_store -o noatime
is 'a mount, too' "$(find "$mnt/d7/e7" -type f | wc -l)$(find "$mnt" -name '*99' | wc -l)" "70$(primefs find "$store" -name '*99' | wc -l)"
unmount_store
sleep 0.5
is 'and it stays as long as nothing changes' "$(stat -c %i "$image")" "$made"

mount_store
mkdir "$mnt/new"
mv "$mnt/d7" "$mnt/new/d7"
rm -r "$mnt/d8"
unmount_store
ok 'a change makes another one' await_image "$made"
is 'which knows of it' "$(primefs find "$store" -path '/new/*' -name f7)$(primefs find "$store" -path '/d8*' | wc -l)" /new/d7/e7/f70
check_store

# Outdated: the store was changed, and the daemon killed.
mount_in_foreground
touch "$mnt/kept"
sync "$mnt/kept"
kill -9 "$daemon"
wait "$daemon" 2>/dev/null || true
primefs umount "$mnt"
is 'after a kill the store tells' "$(primefs find "$store" -name kept)" /kept
mount_store
ok 'and is mounted' test -e "$mnt/kept"
made=$(stat -c %i "$image")
touch "$mnt/later"
unmount_store
ok 'which makes another one' await_image "$made"
is 'that has it' "$(primefs find "$store" -name kept)" /kept

made=$(stat -c %i "$image")
mount_store
chmod 600 "$mnt/later"
unmount_store
sleep 0.5
is 'a row or two are no reason to write it again' "$(stat -c %i "$image")" "$made"
is 'and are read with it' "$(primefs find "$store" -name later -perm 600)" /later

# Made while it is mounted, by whoever asks.
made=$(stat -c %i "$image")
mount_store
mkdir "$mnt/idle"
sync "$mnt/idle"
primefs optimize --image "$store"
ok 'one can be made of what is mounted' await_image "$made"
unmount_store
is 'that has it' "$(primefs find "$store" -name idle)" /idle

# Beside changes that do not pause, as the committer has it: each touch is a group of its own.
made=$(stat -c %i "$image")
mount_store
(while [[ ! -e $work/enough ]]; do touch "$mnt/busy" && sync "$mnt/busy"; done) &
busy=$!
ok 'changes go on' wait_for 10 test -e "$mnt/busy"
primefs optimize --image "$store"
ok 'one can be made while changes go on' await_image "$made"
touch "$work/enough"
wait "$busy"
unmount_store
check_store
fails_with 'or the store is named' 'No such file' primefs optimize --image "$work/nothing"

# Added to.
made=$(stat -c %i "$image")
head -n 1000 "$work/list" >"$work/some"
primefs import --quiet --format=paths --at=/added "$work/some" "$store"
ok 'an import into it makes another one' await_image "$made"
is 'that has it' "$(primefs find "$store" -path '/added/d9/*' -name f9)" /added/d9/e9/f9

# Room: a tenth of the filesystem stays free.
if ((EUID == 0)) && mkdir "$work/small"; then
	both=$((($(stat -c %s "$store") + $(stat -c %s "$image")) / 1024))
	for percent in 106 150; do
		mount -t tmpfs -o size=$((both * percent / 100))k tmpfs "$work/small"
		cp "$store" "$work/small/store.pfs"
		primefs mount "$work/small/store.pfs" "$mnt"
		touch "$mnt/new"
		unmount_store
		if ((percent > 120)); then
			ok 'with room there is one' wait_for 60 test -e "$work/small/store.pfs.img"
			primefs mount "$work/small/store.pfs" "$mnt"
			touch "$mnt"/new{1..9}
			ok 'umount --wait returns' primefs umount --wait=60 "$mnt"
			ok 'when the filesystem of the store is free' umount "$work/small"
		else
			sleep 1
			not_ok 'without room there is none' test -e "$work/small/store.pfs.img"
			wait_for 60 umount "$work/small"
		fi
	done
else
	skip 'too little room: needs root'
fi

# Somebody else writes it.
if command -v flock >/dev/null; then
	mount_store
	touch "$mnt/more"
	exec 9>"$image.part"
	flock 9
	fails_with 'umount --wait waits for who writes it' 'unmounted, but .*img is still being written' primefs umount --wait=1 "$mnt"
	mount_store
	ok 'without nobody does' primefs umount "$mnt"
	exec 9>&-
	mount_store
	ok 'nor is there more to wait for' primefs umount --wait=60 "$mnt"
	rm -f "$image.part"
else
	skip 'no flock'
fi

# Cut and overwritten while it is used.
expected=$(answers)
mount_store
: >"$image"
is 'what is mounted does not need it any more' "$(find "$mnt" -name '*99' | wc -l)" "$(primefs find "$store" -name '*99' | wc -l)"
unmount_store
head -c 1000000 /dev/urandom >"$image"
is 'nonsense is not used' "$(answers)" "$expected"
rm -f "$image"
check_store

# Compared with the store, and outdated by optimize.
mount_store
unmount_store
ok 'umount leaves one again' await_image
check_store
printf '%064d' 7 | dd of="$image" bs=1 seek=$(($(stat -c %s "$image") / 2)) conv=notrunc status=none
is 'check finds a damaged one' "$(primefs check "$store" 2>/dev/null | grep -c 'its image file was damaged, and is removed')" 1
not_ok 'and removes it' test -e "$image"
check_store
mount_store
unmount_store
ok 'there is one before optimize' await_image
ok 'optimize' primefs optimize "$store"
not_ok 'and none that is outdated afterwards' test -e "$image"
check_store

# Damaged with the store while it is used: no answer, but a daemon that can be unmounted.
mount_store
unmount_store
ok 'there is one once more' await_image
cp "$store" "$work/sound"
mount_in_foreground
head -c "$(stat -c %s "$image")" /dev/zero | dd of="$image" conv=notrunc status=none
head -c $(($(stat -c %s "$store") - 40960)) /dev/zero | dd of="$store" bs=40960 seek=1 conv=notrunc status=none
fails_with 'what nothing tells any more is not told' 'Input/output error' find "$mnt" -name '*99'
fails_with 'nor is anything else' 'Input/output error' ls "$mnt"
fails_with 'or changed' 'Input/output error' mkdir "$mnt/more"
fails_with 'or asked' 'Input/output error' cat "$mnt/.query/stats"
ok 'the log says so' grep -q 'store.pfs.img: damaged, and cannot be made anew' "$work/daemon.log"
is 'in one line' "$(grep -c 'cannot be made anew' "$work/daemon.log")" 1
ok 'the daemon is there' kill -0 "$daemon"
umount "$mnt" 2>/dev/null || fusermount3 -u "$mnt"
wait "$daemon" 2>/dev/null || true
not_ok 'the damaged one is not' test -e "$image"
cp "$work/sound" "$store"
check_store
