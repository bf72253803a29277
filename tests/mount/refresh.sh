#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# -o refresh: a mounted store follows the folder that it was imported from.
. "$(dirname "$0")/../lib.sh"
requires fuse

src=$work/src
mkdir -p "$src/d"
echo one >"$src/d/one"
primefs import "$src" "$store" >/dev/null
echo before >"$src/before"
mount_store -o refresh=1
ok 'what came before is there soon' wait_for 30 test -e "$mnt/before"
ino=$(stat -c %i "$mnt/d/one")
ls "$mnt/d" >/dev/null
mv "$src/d/one" "$src/moved"
echo two >"$src/d/two"
ok 'what comes later, too' wait_for 30 test -e "$mnt/d/two"
ok 'a listing that the kernel has kept shows it' grep -qx two <(wait_for 5 test -e "$mnt/d/two"; sleep 0.2; ls "$mnt/d")
is 'it can be read' "$(cat "$mnt/d/two")" two
is 'what moved is the same' "$(stat -c %i "$mnt/moved")" "$ino"
rm "$src/d/two"
ok 'what goes is gone' wait_for 30 test ! -e "$mnt/d/two"
ok 'a refresh that was asked for' primefs refresh "$mnt"
ok 'is no trouble to the other' primefs refresh "$store"
names() { (cd "$1" && find . -mindepth 1 | sort); }
names "$mnt" >/dev/null # the kernel keeps the listings,
not_ok 'before' test -e "$mnt/d/asked" # and that there is no such name
echo asked >"$src/d/asked"
mv "$src/moved" "$src/d/again"
primefs refresh "$mnt" >/dev/null
is 'what it has found is listed when it has ended' "$(names "$mnt")" "$(names "$src")"
ok 'a name that there was none of is there' test -e "$mnt/d/asked"
not_ok 'and one that moved is not' test -e "$mnt/moved"
mkdir "$src/closed"
mkfifo "$src/pipe"
primefs refresh "$mnt" >/dev/null
for mode in 700 711; do
	stat "$mnt/closed" "$mnt/pipe" >/dev/null # the kernel keeps them
	chmod "$mode" "$src/closed" "$src/pipe"
	primefs refresh "$mnt" >/dev/null
	is "rights of directories and pipes are new when it has ended: $mode" \
		"$(stat -c %a "$mnt/closed" "$mnt/pipe" | xargs)" "$mode $mode"
done
rm "$src/pipe"
unmount_store
check_store
echo later >"$src/later"
mount_store -o ro,refresh=1
ok 'a mount that is read-only follows nothing' test ! -e "$mnt/later"
unmount_store
fails_with 'seconds' 'option refresh: not seconds' primefs mount -o refresh=soon "$store" "$mnt"

# What was removed from the store of a folder that had just been made.
mkdir "$work/young"
echo 1 >"$work/young/one"
echo 2 >"$work/young/two"
chmod 755 "$work/young" # no file in it was changed later
primefs import "$work/young" "$work/young.pfs" >/dev/null
primefs mount "$work/young.pfs" "$mnt"
rm "$mnt/two"
unmount_store
echo 3 >"$work/young/three"
ok 'a refresh' primefs refresh "$work/young.pfs"
is 'what was removed from the store stays so' "$(primefs ls "$work/young.pfs" / | xargs)" 'one three'

# A store that is mounted in its own source is no part of it: else its daemon would read what it answers, and would not end.
mkdir -p "$work/round/mnt"
echo 1 >"$work/round/one"
primefs import "$work/round" "$work/round.pfs" >/dev/null
primefs mount "$work/round.pfs" "$work/round/mnt"
echo 2 >"$work/round/two"
for _ in 1 2; do
	ok 'a refresh that crosses mounts' primefs refresh --cross-mounts "$work/round.pfs"
done
ok 'and a quick one' primefs refresh --cross-mounts --quick "$work/round.pfs"
is 'finds what is beside the mount, and not the mount again' "$(find "$work/round/mnt" -mindepth 1 -printf '%P ' | xargs -n 1 | sort | xargs)" \
	'mnt one two'
is 'what there is can be read' "$(cat "$work/round/mnt/two")" 2
ok 'and it is unmounted' primefs umount "$work/round/mnt"
