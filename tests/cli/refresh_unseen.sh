#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# refresh removes nothing that it cannot look at: in folders that may not be searched, and where a
# filesystem is not mounted.
. "$(dirname "$0")/../lib.sh"
requires root
in_own_namespace || skip_all 'skipped: no mount namespaces'
reachable_programs

src=$work/src
paths() { primefs export --format=paths "$store" | xargs; }
change() { primefs query "$store" "$@" >/dev/null; }

# ---- folders that may not be searched ----
mkdir -p "$src"/{d/e,k}
for name in d/f d/g d/e/h; do echo "$name" >"$src/$name"; done
chown -R "$nobody" "$work"
user() { as "$nobody" primefs "$@"; }
for mode in 0 111 444; do
	rm -f "$store"*
	user import -q "$src" "$store"
	change "UPDATE nodes SET name = 'ff' WHERE path = '/d/f'"
	change "UPDATE nodes SET name = 'ee' WHERE path = '/d/e'"
	change "UPDATE nodes SET path = '/k/gg' WHERE path = '/d/g'"
	chown "$nobody" "$store"
	before=$(paths)
	touch "$src/d"
	chmod "$mode" "$src/d"
	exits "a folder of mode $mode is reported" 1 user refresh "$store"
	is 'and what the store renamed or moved out of it is there' "$(paths)" "$before"
	exits 'as after a quick refresh' 1 user refresh --quick "$store"
	is 'of the same' "$(paths)" "$before"
	chmod 755 "$src/d"
	ok 'the folder may be searched again' user refresh "$store"
	is 'and all is there' "$(paths)" "$before"
	rm "$src"/d/{f,g}
	ok 'two of its files go' user refresh "$store"
	is 'wherever they are' "$(paths)" '/d /d/ee /d/ee/h /k/'
	touch "$src"/d/{f,g}
	chown "$nobody" "$src"/d/*
done

# ---- a filesystem that is not mounted ----
mkdir -p "$src/m/inner"
store=$work/crossed.pfs
mount_inner() {
	mount -t tmpfs none "$src/m/inner"
	mkdir -p "$src/m/inner/x"
	echo y >"$src/m/inner/x/y"
}
if mount_inner 2>/dev/null; then
	primefs import -q --cross-mounts "$src" "$store"
	before=$(paths)
	umount "$src/m/inner"
	for how in '' --quick --cross-mounts; do
		exits "what another filesystem had is not seen $how" 1 primefs refresh $how "$store"
		is 'and stays' "$(paths)" "$before"
	done
	ok 'which is said' grep -q '^unread /m/inner: its filesystem is not mounted' <(primefs refresh "$store" || true)
	exits 'the path alone does not lose it either' 1 primefs refresh "$store" /m/inner
	is 'it is there' "$(paths)" "$before"
	touch "$src/m/other"
	exits 'what is beside it follows' 1 primefs refresh "$store"
	is 'and no more' "$(paths)" "$before /m/other"
	mount_inner
	echo z >"$src/m/inner/z"
	ok 'another filesystem in its place is compared' primefs refresh --cross-mounts "$store"
	ok 'and followed' primefs find "$store" /m/inner/z
	umount "$src/m/inner"
	rm -rf "$src/m"
	ok 'a folder that is gone goes with it' primefs refresh "$store"
	not_ok 'with all that it had' primefs find "$store" /m
	store=$work/uncrossed.pfs
	mkdir -p "$src/m/inner"
	mount_inner
	primefs import -q "$src" "$store"
	umount "$src/m/inner"
	ok 'a filesystem of which the store has nothing is not missed' primefs refresh "$store"
else
	skip 'skipped: nothing can be mounted'
fi
check_store
