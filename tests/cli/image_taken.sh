#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What only has the name of a store's image file stays, and people are told that the store cannot have one.
. "$(dirname "$0")/../lib.sh"
requires awk

image=$store.img
told='cannot have an image file: what has its name and .img is something else'
awk 'BEGIN { for (i = 0; i < 70000; i++) printf "/d%d/f%d\n", i % 50, i }' >"$work/list"
echo 'not an image file' >"$work/other"

# occupied WHAT: tells of it in one line each.
occupied() {
	local said
	rm -f "$store"
	is "import beside $1" "$(primefs import --quiet --format=paths "$work/list" "$store" 2>&1 | grep -c "$told")" 1
	fails_with "optimize --image beside $1" "^primefs optimize: .*store.pfs: $told" primefs optimize --image "$store"
	exits "$1 is no damage" 0 primefs check "$store"
	said=$(primefs check "$store")
	is "check beside $1" "$(grep -c "store.pfs: $told" <<<"$said")/$(wc -l <<<"$said")" 1/1
	if has_fuse; then
		mount_in_foreground
		touch "$mnt/new"
		unmount_store
		wait "$daemon" || true
		is "umount beside $1" "$(grep -c "store.pfs: $told" "$work/daemon.log")/$(grep -c img "$work/daemon.log")" 1/1
		rm "$work/daemon.log"
	else
		skip "umount beside $1: no /dev/fuse"
	fi
}

ln -s "$work/other" "$image"
occupied 'a symlink'
is 'which is as it was' "$(cat "$work/other")" 'not an image file'
rm "$image"

mkdir "$image"
occupied 'a directory'
rmdir "$image"

cp "$work/other" "$image"
occupied 'a file'
cmp "$work/other" "$image"
rm "$image"

primefs optimize --image "$store"
ok 'else there is one' wait_for 60 test -e "$image"
is 'and nothing to tell' "$(primefs check "$store")" ''
