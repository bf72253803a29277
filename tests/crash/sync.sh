#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What is on the disk without fsync: with -o sync and -o dirsync, what has been answered; with O_SYNC
# and O_DSYNC, what has been written.
. "$(dirname "$0")/../lib.sh"
requires fuse setfattr getfattr

# changes_names DIR: every way to change a name.
changes_names() {
	mkdir "$1" "$1/directory" "$1/removed"
	: >"$1/file"
	ln -s target "$1/symlink"
	mkfifo "$1/fifo"
	: >"$1/old"
	mv "$1/old" "$1/new"
	: >"$1/gone"
	rm "$1/gone"
	rmdir "$1/removed"
}
names=$'directory\nfifo\nfile\nnew\nsymlink'

# after_crash OPTION COMMAND...: runs it on a mount with -o OPTION and kills the daemon at once.
after_crash() {
	mount_in_foreground -o "$1"
	"${@:2}"
	kill -9 "$daemon"
	{ wait "$daemon"; } 2>/dev/null || true
	force_unmount "$mnt"
	check_store
	mount_store
}

# Each change alone, and the last thing before the crash.
for option in dirsync sync; do
	after_crash "$option" changes_names "$mnt/$option"
	is "-o $option: all names" "$(ls -A "$mnt/$option")" "$names"
	unmount_store
	for change in 'mkdir last' ': >last' 'ln -s x last' 'mkfifo last'; do
		after_crash "$option" bash -c "cd '$mnt' && $change"
		ok "-o $option: $change" test -e "$mnt/last" -o -L "$mnt/last"
		unmount_store
		after_crash "$option" bash -c "cd '$mnt' && mv last moved"
		ok "-o $option: mv" test ! -e "$mnt/last" -a ! -L "$mnt/last"
		unmount_store
		after_crash "$option" rm -r "$mnt/moved"
		not_ok "-o $option: rm" test -e "$mnt/moved" -o -L "$mnt/moved"
		unmount_store
	done
done

changes_file() {
	echo text >"$mnt/f"
	chmod 765 "$mnt/f"
	setfattr -n user.a -v 1 "$mnt/f"
	fallocate -l 100000 "$mnt/f"
}
after_crash sync changes_file
is '-o sync: content, mode, size' "$(head -c 5 "$mnt/f" | tr '\n' ' ')$(stat -c '%a %s' "$mnt/f")" 'text 765 100000'
is '-o sync: attributes' "$(getfattr --only-values -n user.a "$mnt/f" 2>/dev/null)" 1
unmount_store
after_crash sync truncate -s 3 "$mnt/f"
is '-o sync: truncation' "$(cat "$mnt/f")" tex
unmount_store
after_crash sync setfattr -x user.a "$mnt/f"
not_ok '-o sync: removal of an attribute' getfattr -n user.a "$mnt/f"
unmount_store
for flag in sync dsync; do
	after_crash rw dd if=/dev/zero of="$mnt/o$flag" bs=70000 count=3 oflag=$flag status=none
	is "O_${flag^^}: what was written" "$(stat -c %s "$mnt/o$flag")" 210000
	unmount_store
done
check_store
