#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# diff: a store and its copy, by inode numbers; other stores by paths.
. "$(dirname "$0")/../lib.sh"

src=$work/src
mkdir -p "$src/a/b"
echo one >"$src/a/one"
echo two >"$src/a/b/two"
ln -s one "$src/a/link"
primefs import --content=copy -q "$src" "$store"
cp "$store" before.pfs
ok 'a copy does not differ' primefs diff before.pfs "$store"
change() { primefs query "$store" "$1" >/dev/null; }
change "UPDATE nodes SET path = '/moved' WHERE path = '/a/b/two'"
change "UPDATE nodes SET name = 'uno' WHERE path = '/a/one'"
change "INSERT INTO nodes (path) VALUES ('/a/new')"
change "UPDATE nodes SET mode = 448 WHERE path = '/a/b'"
exits 'one that was changed does' 1 primefs diff before.pfs "$store"
differs() { primefs diff "$@" || true; } # which it says by its status, too
said=$(differs before.pfs "$store" | sort)
is 'what has changed' "$said" "$(printf '%s\n' 'added /a/new' 'changed /a/b: mode was 0755, is 0700' \
	'moved /moved <- /a/b/two' 'renamed /a/uno <- /a/one')"
is 'the totals' "$(differs -s before.pfs "$store")" '1 added, 0 removed, 1 moved, 1 renamed, 1 changed'
is 'the other way' "$(differs "$store" before.pfs | sort | head -n 1)" 'changed /a/b: mode was 0700, is 0755'
ok 'the other way, removed' grep -qx 'removed /a/new' <(differs "$store" before.pfs)
ok 'by paths' grep -qx 'removed /a/one' <(differs --by-path before.pfs "$store")
ok 'a mode in JSON' grep -q '"before": "0755", "after": "0700"' <(differs --json before.pfs "$store" | tr '\n' ' ' | tr -s ' ')
ok 'JSON' grep -q '"renamed": 1' <(differs --json before.pfs "$store")
if has_fuse; then
	mount_store
	echo more >"$mnt/a/more"
	ok 'mounted' grep -qx 'added /a/more' <(differs before.pfs "$mnt")
	unmount_store
fi
cp "$store" same.pfs
primefs optimize same.pfs >/dev/null
ok 'one that was optimized goes by paths' primefs diff "$store" same.pfs
primefs import --content=copy -q "$src" other.pfs
ok 'so does another of the same folder' primefs diff before.pfs other.pfs
fails_with 'a store that is not there' 'none.pfs' primefs diff "$store" none.pfs
is 'nothing is changed' "$(echo ./*.pfs*)" './before.pfs ./other.pfs ./same.pfs ./store.pfs'

printf '/d%.0s' {1..5000} | primefs import --format=paths - deep.pfs >/dev/null
cp deep.pfs deeper.pfs
ok 'a tree that is deeper than a path is long' primefs diff deep.pfs deeper.pfs
last=$(primefs query deep.pfs 'SELECT ino FROM nodes ORDER BY depth DESC LIMIT 1' | tail -n 1)
primefs query deeper.pfs "UPDATE nodes SET mode = 384 WHERE ino = $last" >/dev/null
is 'differs at its end' "$(differs deep.pfs deeper.pfs | tail -c 29)" '/d/d: mode was 0644, is 0600'
