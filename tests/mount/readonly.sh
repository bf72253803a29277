#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# -o ro: nothing changes, not even the store's folder; also for somebody who may write neither.
. "$(dirname "$0")/../lib.sh"
requires fuse
users_mount=0
if ((EUID == 0)) && open_fuse_to_all; then
	users_mount=1
fi

mount_store
mkdir "$mnt/d"
echo text >"$mnt/d/f"
unmount_store
sum=$(sha256sum <"$store")

mount_store -o ro
fails_with 'a statement says so' 'the store is read-only: .*make room' primefs query "$mnt" 'CREATE TABLE q(a)'
is 'reads' "$(cat "$mnt/d/f")" text
for command in "touch $mnt/new" "mkdir $mnt/new" "rm $mnt/d/f" "mv $mnt/d $mnt/e" "chmod 600 $mnt/d/f" \
	"touch $mnt/d/f" "ln -s x $mnt/l" "truncate -s 0 $mnt/d/f" "setfattr -n user.a -v 1 $mnt/d/f" \
	"mkfifo $mnt/p" "dd if=/dev/null of=$mnt/d/f conv=notrunc"; do
	if ! command -v "${command%% *}" >/dev/null; then
		skip "skipped: no ${command%% *}"
		continue
	fi
	# shellcheck disable=SC2086 # a command and its operands
	fails_with "refuses: ${command//"$mnt"/}" 'Read-only file system' $command
done
while IFS= read -r line; do
	[[ -n $line && $line != '#'* ]] || continue
	(cd "$mnt" && bash -c "${line//\/tmp\//$work\/}" 2>&1) || true
done <"$mnt/.query/help" >output
is 'no example of .query/help needs a mount that can be written' "$(grep 'Read-only' output)" ''
ok 'others are there' grep -q '^epoch ' output
ok 'it says what is left out' grep -q 'read-only: .*query/run and .query/resolve' "$mnt/.query/help"
unmount_store
is 'the store is the same, byte for byte' "$(sha256sum <"$store")" "$sum"

if [[ $EUID == 0 ]]; then
	mkdir "$work/locked" "$work/theirs"
	cp "$store" "$work/locked/s.pfs"
	chmod 444 "$work/locked/s.pfs"
	chmod 555 "$work/locked"
	chown "$nobody" "$work/theirs"
	user() { as "$nobody" env HOME=/ "$@"; }
	if [[ -u $(command -v fusermount3) ]] && ((users_mount)); then
		ok 'a user mounts what they cannot write, in a folder they cannot write' \
			user primefs mount -o ro "$work/locked/s.pfs" "$work/theirs"
		is 'and reads it' "$(user cat "$work/theirs/d/f")" text
		ok 'others may, at the same time' primefs mount -o ro "$work/locked/s.pfs" "$mnt"
		ok 'unmounts' primefs umount "$mnt"
		ok 'unmounts' user primefs umount "$work/theirs"
		fails_with 'but not for writing' 's\.pfs' \
			user primefs mount "$work/locked/s.pfs" "$work/theirs"
	else
		skip 'ordinary users may not mount'
	fi
	is 'nor for a statement that changes something, of which it is said' \
		"$(user primefs query "$work/locked/s.pfs" "UPDATE nodes SET mode = mode" 2>&1)" \
		"primefs query: $work/locked/s.pfs: the store may not be written by this user; what changes something needs one that may be written; a mount that only reads takes -o ro"
	is 'nothing was left in the folder' "$(ls "$work/locked")" s.pfs

	# What a killed daemon leaves can only be read with something written beside it.
	reachable_programs
	mount_in_foreground
	echo last >"$mnt/d/last"
	sync "$mnt/d/last"
	kill -9 "$daemon"
	wait "$daemon" 2>/dev/null || true
	force_unmount "$mnt"
	chmod 755 "$work/locked"
	cp "$store" "$store-wal" "$work/locked"
	chmod 644 "$work/locked/store.pfs"*
	chmod 555 "$work/locked"
	for command in info check export "mount -o ro $work/theirs"; do
		# shellcheck disable=SC2086 # a command, its option and its operand
		output=$(user primefs ${command% /*} "$work/locked/store.pfs" ${command#"${command% /*}"} 2>&1) || true
		is "a log that cannot be read is told in one line: ${command% /*}" \
			"$(grep -c . <<<"$output")" "$(grep -c 'not closed cleanly' <<<"$output")"
	done
	chmod 000 "$work/locked/store.pfs"
	fails_with 'a store that cannot be read is no matter of its log' 'Permission denied' \
		user primefs check "$work/locked/store.pfs"
	ok 'the log is read by who may' primefs check "$store"

	mount_store
	echo more >"$mnt/d/g"
	if mount -i -o remount,ro "$mnt" 2>/dev/null; then
		fails_with 'remount,ro by the kernel' 'Read-only' touch "$mnt/x"
	fi
	unmount_store
	mount_store
	ok 'primefs mount -o remount,ro' primefs mount -o remount,ro "$store" "$mnt"
	fails_with 'refuses changes then' 'Read-only' touch "$mnt/x"
	is 'reads go on' "$(cat "$mnt/d/f")" text
	ok 'primefs mount -o remount,rw' primefs mount -o remount,rw "$store" "$mnt"
	ok 'takes changes then' bash -c "echo again >'$mnt/x'"
	ok 'remount,noexec' primefs mount -o remount,noexec "$store" "$mnt"
	ok 'and remount,ro' primefs mount -o remount,ro "$store" "$mnt"
	ok 'leaves what it does not name' grep -qE " $mnt fuse.primefs ro,nosuid,nodev,noexec," /proc/self/mounts
	ok 'remount,rw' primefs mount -o remount,rw "$store" "$mnt"
	exec 6>"$mnt/open"
	fails_with 'not while something is open for writing' 'busy' \
		primefs mount -o remount,ro "$store" "$mnt"
	exec 6>&-
	remount_store
	is 'and keeps them' "$(cat "$mnt/x")" again
	unmount_store
fi
check_store
