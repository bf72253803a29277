#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 900
# kill -9 of a daemon that was opened from an image file, and of whoever writes one: what is answered from the
# image file that is left is what the store answers without it.  PFS_LONG=1: 200 cycles.
. "$(dirname "$0")/../lib.sh"
requires fuse awk

image=$store.img
cycles=4
((!PFS_LONG)) || cycles=200
awk 'BEGIN { for (i = 0; i < 70000; i++) printf "/d%d/e%d/f%d\n", i % 50, i % 1000, i }' >"$work/list"
primefs import --quiet --format=paths "$work/list" "$store"
is_there() { [[ -e $image && ! -e $image.part ]]; }
wait_for 60 is_there

answers() { primefs query "$store" 'SELECT path, ino, parent, mode, size, mtime, ctime, target FROM nodes ORDER BY path' | sha256sum; }

# same_without: with the image file the answers are those without it.
same_without() {
	local with
	with=$(answers)
	[[ ! -e $image ]] || mv "$image" "$image.away"
	is "cycle $1: the answers are the store's" "$with" "$(answers)"
	[[ ! -e $image.away ]] || mv "$image.away" "$image"
}

for ((cycle = 1; cycle <= cycles; cycle++)); do
	mount_in_foreground
	for ((i = 0; i < 20; i++)); do
		d=$mnt/d$((RANDOM % 50))
		mkdir -p "$mnt/n$cycle/$i"
		echo "$cycle" >"$mnt/n$cycle/$i/f"
		ln -s "../$i" "$mnt/n$cycle/$i/l"
		[[ ! -d $d ]] || mv "$d" "$mnt/n$cycle/$i/moved"
		rm -rf "$mnt/n$((cycle - 1))/$i"
	done
	((RANDOM % 2)) || sync "$mnt/n$cycle/7/f"
	kill -9 "$daemon"
	wait "$daemon" 2>/dev/null || true
	primefs umount "$mnt"
	same_without "$cycle"
	if ((cycle % 2)); then
		mount_store
		touch "$mnt/again$cycle"
		unmount_store
		sleep "0.0$((RANDOM % 10))"
		for pid in /proc/[0-9]*; do # the writer has nothing of the store open but the file itself
			[[ $(readlink "$pid"/fd/* 2>/dev/null) != *"$image.part"* ]] || kill -9 "${pid#/proc/}" 2>/dev/null || true
		done
		same_without "$cycle, the writer killed"
	fi
done
rm -f "$image" "$image.part"
check_store
