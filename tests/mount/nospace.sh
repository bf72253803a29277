#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A store on a filesystem that fills up: ENOSPC, nothing half done, and it goes on when there is room.
. "$(dirname "$0")/../lib.sh"
requires fuse root

mkdir "$work/small"
mount -t tmpfs -o size=24m tmpfs "$work/small"
store=$work/small/store.pfs
mount_store

head -c 200000 /dev/urandom >"$work/piece"
echo precious >"$mnt/precious"
sync "$mnt/precious"
ok 'writes while there is room' cp "$work/piece" "$mnt/first"
wrote=0
error=
for ((i = 0; i < 500; i++)); do
	if ! error=$(cp "$work/piece" "$mnt/fill$i" 2>&1); then
		break
	fi
	wrote=$((wrote + 1))
done
is 'the error is ENOSPC' "$(grep -o 'No space left on device' <<<"$error" | head -n 1)" 'No space left on device'
ok "after a fair number of files ($wrote)" test "$wrote" -gt 20
ok 'reads go on' cmp "$work/piece" "$mnt/first"
is 'all of them' "$(cat "$mnt/precious")" precious
intact=0
for ((i = 0; i < wrote; i++)); do
	! cmp -s "$work/piece" "$mnt/fill$i" || intact=$((intact + 1))
done
is 'what was written is whole' "$intact" "$wrote"
ok 'a removal is possible' rm -f "$mnt"/fill*
ok 'sync' sync "$mnt/precious"
again() { cp "$work/piece" "$mnt/again" && sync "$mnt/again"; }
ok 'there is room again' wait_for 30 again
ok 'and it holds' cmp "$work/piece" "$mnt/again"
ok 'unmounts' unmount_store
check_store
mount_store
is 'nothing fsynced was lost' "$(cat "$mnt/precious")" precious
ok 'nor later' cmp "$work/piece" "$mnt/again"
read -r total free <<<"$(stat -f -c '%b %f' "$mnt")"
ok 'statfs shows the room of the filesystem below' test "$free" -lt "$total"
unmount_store

# Filled by somebody else while it is mounted.
mount_store
head -c 100000000 /dev/zero >"$work/small/hog" 2>/dev/null || true
# ENOSPC at once, or EROFS once a commit has failed
fails_with 'refuses when somebody else fills the disk' 'No space left|Read-only' \
	bash -c "for i in {1..2000}; do head -c 100000 '$work/piece' >'$mnt/q'\$i || exit; done"
rm "$work/small/hog"
ok 'goes on when there is room' wait_for 30 again
ok 'unmounts' unmount_store
check_store

# A refresh of which history keeps what goes has room for that, too, or says what it lacks.
mkdir -p "$work/src/gone"
touch "$work/src/gone"/{1..800}
ln -s target "$work/src/gone/link"
if setfattr -n user.large -v "$(printf '%03000d' 0)" "$work/src/gone"/{1..600} 2>/dev/null; then
	rm -f "$store"*
	primefs import -q "$work/src" "$store"
	rm -r "$work/src/gone"
	mount -o remount,size=8m "$work/small"
	mount_store -o history=2d,links=yes
	fails_with 'a refresh without room for that' '/: its changes need up to [0-9]+ bytes free' primefs refresh "$mnt"
	is 'changes nothing' "$(primefs find "$store" /gone | wc -l)" 802
	mount -o remount,size=24m "$work/small"
	ok 'with room it goes on' primefs refresh "$mnt"
	is 'and has removed all' "$(find "$mnt" -mindepth 1 | wc -l)" 0
	unmount_store
	check_store
else
	skip 'no attributes'
fi
