#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What only has the name of a store's image file stays, and people are told that the store cannot have one.
. "$(dirname "$0")/../lib.sh"
requires awk

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

for suffix in .img .img.part; do
	image=$store$suffix
	told="cannot have an image file: what has its name and $suffix is something else; move that away"

	ln -s "$work/other" "$image"
	occupied "a symlink, $suffix"
	is 'which is as it was' "$(cat "$work/other")" 'not an image file'
	rm "$image"

	mkdir "$image"
	occupied "a directory, $suffix"
	rmdir "$image"

	cp "$work/other" "$image"
	occupied "a file, $suffix"
	cmp "$work/other" "$image"
	rm "$image"
done
: >"$store.img.part"
ok 'what was begun and never finished is nothing else' primefs optimize --image "$store"
ok 'so there is one' wait_for 60 test -e "$store.img"
is 'and nothing to tell' "$(primefs check "$store")" ''
