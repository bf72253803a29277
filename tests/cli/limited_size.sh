#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Where no file may grow beyond a size (ulimit -f), a write fails as on a full disk: no command and no daemon is
# ended by a signal, and what was there stays.
# shellcheck disable=SC2154 # variables of tests/lib.sh
. "$(dirname "$0")/../lib.sh"

limited() { # KILOBYTES COMMAND...
	(ulimit -f "$1" && "${@:2}")
}
mkdir "$work/src"
head -c 500000 /dev/urandom >"$work/src/large"
primefs import -q --content=copy "$work/src" "$store"

fails_with 'an import' 'new.pfs: .*may not become larger here.*ulimit -f' limited 100 primefs import --content=copy "$work/src" "$work/new.pfs"
is 'leaves nothing' "$(find "$work" -name 'new.pfs*')" ''
if has_archives; then
	fails_with 'an export' 'File too large' limited 100 primefs export --format=tar -o "$work/out" "$store"
else
	skip 'skipped: archives: built without libarchive'
fi
fails_with 'optimize' 'store.pfs: .*may not become larger here' limited 100 primefs optimize "$store"
check_store
is 'and nothing is beside it' "$(find "$work" -name 'store.pfs?*')" ''

requires fuse
empty_store "$work/run.pfs"
primefs mount "$work/run.pfs" "$mnt"
# shellcheck disable=SC2016 # the shells that find runs expand it
ok 'a program that find runs is ended by the signal as it would be' \
	primefs find "$mnt" -maxdepth 0 -exec bash -c 'bash -c "kill -XFSZ \$\$"; (($? == 153)) && touch "$1"/ended' - "$mnt" ';'
ok 'which it was' test -e "$mnt/ended"
# shellcheck disable=SC2016
ok 'and is not where who called find ignores the signal' test -n "$(
	trap '' XFSZ
	primefs find "$mnt" -maxdepth 0 -exec bash -c 'kill -XFSZ $$; echo alive' ';' | grep alive
)"
primefs umount "$mnt"

fails_with 'a mount says what it needs' 'store.pfs: .*may not become larger here' limited 30 primefs mount "$store" "$mnt"
limited 1000 primefs mount "$store" "$mnt"
echo small >"$mnt/small"
ok 'what has room is kept' sync "$mnt/small"
not_ok 'what has none is not' dd if=/dev/urandom of="$mnt/huge" bs=64k count=64 conv=fsync status=none
is 'the mount is there' "$(cat "$mnt/small")" small
ok 'and what was in it' cmp "$mnt/large" "$work/src/large"
fails_with 'an unmount says that not all is kept' 'cannot commit: File too large; not unmounted' \
	primefs umount "$mnt"
primefs umount -l "$mnt"
check_store
is 'what was kept is' "$(primefs ls "$store" / | grep -c small)" 1
