#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What mount and umount refuse, mounts whose daemon is gone, detaching, who is asked for what.
. "$(dirname "$0")/../lib.sh"
requires fuse getfattr

daemon_of() { getfattr --only-values -n user.primefs.daemon "$1" 2>/dev/null; }

empty_store
exits 'no operands are wrong usage' 2 primefs mount
exits 'nor is one' 2 primefs mount "$store"
exits 'nor an unknown option' 2 primefs mount --nonsense "$store" "$mnt"
exits 'nor an unknown mount option' 2 primefs mount -o nonsense "$store" "$mnt"
exits 'nor an engine that there is none of' 2 primefs mount --engine=steam "$store" "$mnt"
fails_with 'a store below its own mountpoint' 'below its own mountpoint' \
	primefs mount "$store" "$work"
fails_with 'a file is no mountpoint' 'Not a directory' primefs mount "$store" "$store"
is 'each refusal is one line' "$(primefs mount "$store" "$store" 2>&1 | wc -l)" 1
exits '--help' 0 primefs mount --help
not_ok 'nothing is mounted' is_mounted "$mnt"

ok 'as mount.fuse3 calls it' primefs "$store" "$mnt" -o rw
printf '%s\n' "$mnt" >words
is 'who serves it is known' "$(daemon_of "$mnt")" \
	"$(grep -lsaF -f words /proc/[0-9]*/cmdline | sed 's|/proc/\(.*\)/cmdline|\1|') rw"
not_ok 'and cannot be set' setfattr -n user.primefs.daemon -v 1 "$mnt"
is 'and is not listed' "$(getfattr -d "$mnt" 2>/dev/null)" ''
is 'its source and type' "$(findmnt -n -o SOURCE,FSTYPE "$mnt" | xargs)" "$store fuse.primefs"
primefs umount "$mnt"
mount_store -o ro
is 'read-only, too' "$(daemon_of "$mnt" | cut -d' ' -f2)" ro
fails_with 'stays read-only' 'opened read-only' primefs mount -o remount,rw "$store" "$mnt"
primefs umount "$mnt"

mount_store
touch "$mnt/f"
sync "$mnt"
pid=$(daemon_of "$mnt" | cut -d' ' -f1)
kill -9 "$pid"
wait_for 5 gone "$pid"
fails_with 'no mount over one whose daemon is gone' 'daemon is gone' primefs mount "$store" "$mnt"
ok 'it is unmounted' primefs umount "$mnt"
not_ok 'and is not there any more' is_mounted "$mnt"
ok 'the store can be mounted again' primefs mount "$store" "$mnt"
ok 'and has what was synced' test -e "$mnt/f"

exec 5>"$mnt/open"
fails_with 'a busy mount stays' 'busy' primefs umount "$mnt"
pid=$(daemon_of "$mnt" | cut -d' ' -f1)
ok 'unless detached' primefs umount -l "$mnt"
not_ok 'it cannot be seen' is_mounted "$mnt"
not_ok 'but is served' gone "$pid"
echo late >&5
exec 5>&-
ok 'until it is closed' wait_for 10 gone "$pid"
mount_store
is 'nothing is lost' "$(cat "$mnt/open")" late
exits 'umount of what is not mounted' 3 primefs umount "$work"

# What keeps it is said.
exec 5>"$mnt/open"
fails_with 'umount names an open file' "^primefs umount: $mnt: busy: process [0-9]+ \\(.*\\) has a file open in it" \
	primefs umount "$mnt"
(sleep 2) 5>&5 &
exec 5>&-
ok 'and waits for it to be closed if told to' primefs umount --wait=20 "$mnt"
mount_store
(cd "$mnt" && exec sleep 100) &
sleeper=$!
cleanup_fn kill_own "$sleeper"
in_it() { [[ $(readlink "/proc/$sleeper/cwd") == "$mnt" ]]; }
wait_for 10 in_it
fails_with 'so is who works in it' "process $sleeper \\(.*works in it" primefs umount --wait=0 "$mnt"
kill "$sleeper"
wait_for 10 gone "$sleeper"
primefs umount "$mnt"
if unshare -m --propagation private true 2>/dev/null; then
	mount_store
	unshare -m --propagation private sleep 100 &
	sleeper=$!
	cleanup_fn kill_own "$sleeper"
	apart() { [[ $(readlink "/proc/$sleeper/ns/mnt") != "$(readlink /proc/self/ns/mnt)" ]]; }
	wait_for 10 apart
	fails_with 'and another mount namespace' 'process [0-9]+ \(.*mount namespace where it is still mounted' \
		primefs umount --wait=2 "$mnt"
	not_ok 'it is unmounted here' is_mounted "$mnt"
	kill "$sleeper"
	mount_store
	unshare -m --propagation private sleep 3 &
	sleeper=$!
	wait_for 10 apart
	primefs umount "$mnt" 2>said
	ok 'it waits if told nothing' wait_for 10 gone "$sleeper"
	ok 'and says for what' grep -q 'waiting: process' said
	is 'which is said once; what else it waits for, too' "$(sort said | uniq -d)" ''
fi
mount_in_foreground
kill -STOP "$daemon"
fails_with 'a daemon that does not answer keeps nobody for ever' 'its daemon does not answer' primefs umount --wait=0 "$mnt"
kill -CONT "$daemon"
ok 'it is still mounted' is_mounted "$mnt"
ok 'and is unmounted when it answers again' primefs umount "$mnt"
wait "$daemon" || true
fails_with 'a directory is no store' 'make a store of it' primefs mount "$work" "$mnt"
mount_store
fails_with 'nor is a store a mountpoint' 'a store, mounted on .*mnt; name that' primefs umount "$store"
unmount_store
exits '--wait wants a number' 2 primefs umount --wait=soon "$mnt"

# A mountpoint names its store.
mount_store
for command in check optimize; do
	fails_with "$command of a mountpoint says what holds it" 'mounted on .* by process [0-9]+' primefs "$command" "$mnt"
done
ok 'info answers' primefs info "$mnt"
mkdir "$mnt/a" "$mnt/z"
echo text >"$mnt/a/moving"
is 'export has what was changed just now' "$(primefs export "$mnt" | grep moving)" /a/moving
ok 'as a table' grep -q '^/a/moving' <(primefs export --format=csv --columns= "$store" 2>/dev/null || primefs export --format=csv "$store")
(until [[ -e moved ]]; do mv "$mnt/a/moving" "$mnt/z/moving" && mv "$mnt/z/moving" "$mnt/a/moving"; done) 2>/dev/null &
mover=$!
whole=0
for ((i = 0; i < 20; i++)); do
	primefs export "$store" >exported
	(($(grep -c /moving exported) == 1)) && whole=$((whole + 1))
done
touch moved # a mv that is killed with who called it goes on alone
wait "$mover"
is 'and is of one moment while much changes' "$whole" 20
rm -r "$mnt/a" "$mnt/z"
fails_with 'a directory of it is no mountpoint' 'no store is mounted on it' primefs check "$(mkdir -p "$mnt/d" && echo "$mnt/d")"
rmdir "$mnt/d"
primefs umount "$mnt"

for options in -s '-o threads=1' '-o threads=10' '-o readdirplus=always' '-o readdirplus=never' \
	'-o timeout=0' '-o writeback' '-o noatime'; do
	# shellcheck disable=SC2086 # a letter and its value
	mount_store $options
	mkdir "$mnt/d"
	(cd "$mnt/d" && seq 500 | xargs touch)
	is "$options: lists" "$(find "$mnt/d" -mindepth 1 | wc -l)" 500
	is "$options: finds" "$(find "$mnt/d" -size -1 -type f | wc -l)" 500
	rm -r "$mnt/d"
	is "$options: sees what is gone" "$(ls -d "$mnt/d" 2>/dev/null)" ''
	primefs umount "$mnt"
done

limited() { # KILOBYTES COMMAND...
	(ulimit -v "$1" && "${@:2}")
}
ok 'mounts where address space is limited' limited 2000000 primefs mount --engine=host -o threads=64 "$store" "$mnt"
(cd "$mnt" && seq 500 | xargs touch)
is 'and lists' "$(wc -l <"$mnt/.query/paths")" "$(find "$mnt" | wc -l)"
primefs umount "$mnt"
fails_with 'and says what it needs' 'there is not enough memory; .*ulimit -v.*2 GiB' limited 100000 primefs mount --engine=host "$store" "$mnt"
check_store
