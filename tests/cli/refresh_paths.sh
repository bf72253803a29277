#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# refresh of paths that are gone, new or moved, and of stores that several folders were imported to.
# timeout: 120
. "$(dirname "$0")/../lib.sh"

one=$work/one two=$work/two
refresh() { primefs refresh "$@" >"$work/said" 2>&1; }
said() { sed '$d' "$work/said" | sort; }
summary() { tail -n 1 "$work/said" | sed 's/.*pfs: //; s/ in .*//'; }
nodes() { primefs find "$store" "${1:-/}" -mindepth 1 | sort | xargs; }
fill() {
	rm -rf "$store"* "$one" "$two"
	mkdir -p "$one"/{x/y/z,w} "$two/t"
	for name in x/f x/y/g x/y/z/h w/i top; do echo "$name" >"$one/$name"; done
	echo j >"$two/t/j"
	primefs import -q "$one" "$store"
}

# ---- a path that is gone ----
fill
rm -r "$one/x/y"
ok 'a directory that is gone' refresh -l "$store" /x/y
is 'is removed' "$(said | xargs)" 'removed /x/y removed /x/y/g removed /x/y/z removed /x/y/z/h'
is 'with what lay in it, alone' "$(nodes)" '/top /w /w/i /x /x/f'
fails_with 'once more, it is nowhere' '^primefs refresh: /x/y: No such file or directory in the store, nor in its source$' \
	primefs refresh "$store" /x/y
rm "$one/x/f"
ok 'a file' refresh -l "$store" /x/f
is 'goes, too' "$(said)" 'removed /x/f'
fill
rm -r "$one/x"
ok 'a file whose directory is gone with those above it' refresh -l "$store" /x/y/z/h
is 'all of which go' "$(nodes)" '/top /w /w/i'
fill
rm -r "$one/x/y"
ok 'what would go' refresh -n "$store" /x/y
is 'is told' "$(said | xargs)" 'removed /x/y removed /x/y/g removed /x/y/z removed /x/y/z/h'
ok 'what is gone is kept if so wished' refresh --keep "$store" /x/y
is 'and marked' "$(primefs query --tsv "$store" "SELECT path FROM nodes WHERE gone IS NOT NULL ORDER BY path" | tail -n +2 | xargs)" \
	'/x/y /x/y/g /x/y/z /x/y/z/h'
fill
rm -r "$one/x/y" && echo file >"$one/x/y"
ok 'a directory that has become a file' refresh "$store" /x/y
is 'is one' "$(primefs find "$store" /x -mindepth 1 -printf '%p:%y ')" '/x/f:f /x/y:f '
rm "$one/x/y" && mkdir "$one/x/y" && echo k >"$one/x/y/k"
ok 'and the other way round' refresh "$store" /x/y
is 'with what is in it' "$(nodes /x)" '/x/f /x/y /x/y/k'

# ---- a path that the store does not have yet ----
fill
mkdir -p "$one/x/new/deep" && echo n >"$one/x/new/deep/n" && echo beside >"$one/w/beside"
ok 'what is new is added' refresh -l "$store" /x/new/deep/n
is 'with what is above and below it, not elsewhere' "$(said | xargs)" 'added /x/new added /x/new/deep added /x/new/deep/n'
fails_with 'what is nowhere is an error' '^primefs refresh: /nowhere: No such file or directory in the store, nor in its source$' \
	primefs refresh "$store" /nowhere
is 'of one line' "$(primefs refresh "$store" /nowhere /x 2>&1 | wc -l)" 1
exits 'and a failure' 3 primefs refresh "$store" /w /nowhere
ok 'nobody else is looked at' test "$(primefs refresh --json "$store" /w/beside 2>&1 | sed -n 's/.*"looked_at": *\([0-9]*\).*/\1/p' | head -n 1)" -lt 8
echo later >"$one/w/later"
ok 'a slash at the end does no harm' refresh "$store" /w/later/ /x/
for path in //w/a /w//b /w/./c /w/d/. /./w/../w/e; do
	mkdir "$one/w/${path: -1}" 2>/dev/null || mkdir "$one/w/d"
	ok "$path would be added" refresh -n "$store" "$path"
	ok 'and is' refresh "$store" "$path"
done
fails_with 'what lies below a file is nowhere' '^primefs refresh: /top/z: Not a directory in the store$' \
	primefs refresh "$store" /top/z
rm "$one/top" && mkdir "$one/top" && echo z >"$one/top/z"
ok 'until that is a directory' refresh -n "$store" /top/z
ok 'as it would be' refresh -l "$store" /top/z
is 'with what is in it' "$(nodes /top)" '/top/z'
mkdir "$one/w/old" && echo f >"$one/w/old/f"
ok 'a directory' refresh "$store" /w
mv "$one/w/old" "$one/w/renamed"
ok 'that has moved would bring what it has' refresh -n "$store" /w/renamed/f
ok 'and brings it' refresh "$store" /w/renamed/f
fill
mv "$one/x" "$one/x2" && mkdir -p "$one/x2/n/n2" && mv "$one/x2/f" "$one/x2/n" && echo h >"$one/x2/n/n2/h"
for path in /x2/n/f /x2/n/n2/h /x2/n; do ok "what lies in a new directory in it would be brought: $path" refresh -n "$store" "$path"; done
exits 'and nothing else' 3 primefs refresh -n "$store" /x2/n/h
fill
primefs query "$store" "UPDATE nodes SET name = 'xx' WHERE path = '/x'" >/dev/null
mkdir -p "$one/x/n/n2" && echo h >"$one/x/n/n2/h"
ok 'a directory comes to one that the store has renamed' refresh -n "$store"
is 'which is said of all that is in it' "$(said | grep '^added' | xargs)" 'added /xx/n added /xx/n/n2 added /xx/n/n2/h'
fill
mkdir "$one/x/d" && echo k >"$one/x/y/k"
primefs refresh -q "$store" >/dev/null
mv "$one/w" "$one/v" && mv "$one/x" "$one/w" && mv "$one/w/y" "$one/w/d/y2" && mv "$one/w/d" "$one/w/d2"
echo n >"$one/w/d2/y2/n" && rm "$one/w/d2/y2/k"
for path in /w/d2/y2 /w/d2/y2/g /w/d2/y2/z/h /w/d2/y2/n /v/i; do
	ok "what lies below directories that move and take each other's names: $path" refresh -n "$store" "$path"
done
for path in /w/d2/y2/k /w/d2/y2/i /v/f; do
	exits "what does not: $path" 3 primefs refresh -n "$store" "$path"
done
ok 'what would be there' refresh "$store"
ok 'is' primefs find "$store" /w/d2/y2 /w/d2/y2/g /w/d2/y2/z/h /w/d2/y2/n /v/i
for path in /w/d2/y2/k /w/d2/y2/i /v/f; do not_ok "and what would not, is not: $path" primefs find "$store" "$path"; done

# ---- paths that overlap ----
fill
for name in new n2 y/deep; do echo "$name" >"$one/x/$name"; done
mkdir "$one/x/nd" && echo z >"$one/x/nd/z" && echo changed >>"$one/x/y/z/h"
for paths in '/x/new /x/nd /x/n2' '/x /x' '/x/f /x/y/g' '/x /x/y' '/x/y /x' '/x/y/deep /x' '/x/y/z/h /x/new /x/y/deep' '/w /x/y/z /x/y'; do
	read -ra asked <<<"$paths"
	ok "a refresh of $paths" refresh -n "$store" "${asked[@]}"
	is 'tells nothing twice' "$(said | uniq -d)" ''
done
ok 'a directory with one below it' refresh -l "$store" /x/y/deep /x/y /x /x/y/z
is 'comes to each once, and to all' "$(said | xargs)" \
	'added /x/n2 added /x/nd added /x/nd/z added /x/new added /x/y/deep changed /x/y/z/h'
fill
rm "$one/x/f" && mkdir "$one/x/f" "$one/x/nd" && echo n >"$one/x/new" && echo z >"$one/x/nd/z"
ok 'two new ones beside a file that became a directory' refresh "$store" /x/new /x/nd
is 'are added' "$(nodes /x)" '/x/f /x/nd /x/nd/z /x/new /x/y /x/y/g /x/y/z /x/y/z/h'
fill
mv "$one/x/y" "$work/aside" && mkdir -p "$one/x/y/z" && echo k >"$one/x/y/z/k"
ok 'a directory whose place another one has, with one below it' refresh -l "$store" /x/y /x/y/z
is 'comes once' "$(said | uniq -d)/$(nodes /x)" '//x/f /x/y /x/y/z /x/y/z/k'
rm -r "$work/aside"
fill
mv "$one/x/y/z" "$one/w/z"
ok 'what moved between two' refresh -l "$store" /w /x/f /x /x/y
is 'has moved once' "$(said | xargs)" 'moved /w/z <- /x/y/z'
fill
mv "$one/x/y/z" "$one/w/z"
ok 'quickly, too' refresh -ql "$store" / /x/y /w
is 'once' "$(said | xargs)" 'moved /w/z <- /x/y/z'

# ---- a path that the store has moved ----
if has_fuse; then
	fill
	mount_store
	mv "$mnt/x/f" "$mnt/w/f"
	mv "$mnt/x/y" "$mnt/w/y"
	unmount_store
	ok 'a file that was moved in the store' refresh -l "$store" /w/f
	is 'stays, and its directory is not taken for another one' "$(said)" 'kept /w/f <- x/f: moved in the store'
	is 'nothing is lost' "$(nodes)" '/top /w /w/f /w/i /w/y /w/y/g /w/y/z /w/y/z/h /x'
	echo more >"$one/x/y/more"
	ok 'a directory that was' refresh "$store" /w/y
	is 'is followed' "$(nodes /w/y)" '/w/y/g /w/y/more /w/y/z /w/y/z/h'
	ok 'with what is above and below it' refresh -l "$store" /w/y /w /w/y/z
	is 'it is told once' "$(said | uniq -c | xargs)" '1 kept /w/f <- x/f: moved in the store 1 kept /w/y <- x/y: moved in the store'
	rm "$one/x/f"
	ok 'and goes when its original does' refresh -l "$store" /w/f
	is 'it alone' "$(said)" 'removed /w/f'
else
	skip 'moved in the store: no /dev/fuse'
fi

# in a directory that the store has moved, and its original likewise, out of one that is gone since
fill
primefs query "$store" "UPDATE nodes SET path = '/y' WHERE path = '/x/y'" >/dev/null
before=$(primefs find "$store" /y -printf '%i ')
mv "$one/x/y" "$one/y" && rm -r "$one/x"
ok 'a file of a directory that is no longer below where it was' refresh -l "$store" /y/g
is 'nothing is lost' "$(primefs find "$store" /y -printf '%i ')" "$before"
ok 'then everything' refresh "$store"
is 'nor then' "$(primefs find "$store" /y -printf '%i ')/$(nodes)" "$before//top /w /w/i /y /y/g /y/z /y/z/h"

# ---- what the store has removed of a directory that moves ----
# Imports once directories are settled, and have been changed later than the files in them.
settle() {
	sleep 0.1
	find "$one" -type d -exec touch {} +
	sleep 3.1
	rm -f "$store"*
	primefs import -q "$one" "$store"
}
for how in '' --quick; do
	fill
	settle
	primefs query "$store" "DELETE FROM nodes WHERE path IN ('/x/f', '/x/y/z/h')" >/dev/null
	mv "$one/x" "$one/x2" && mv "$one/x2/y" "$one/w/y"
	# shellcheck disable=SC2086
	ok "two directories of which the store has removed something move $how" refresh -l $how "$store"
	is 'they have moved' "$(said | grep '^moved' | xargs)" 'moved /w/y <- /x/y moved /x2 <- /x'
	is 'it stays removed' "$(nodes)" '/top /w /w/i /w/y /w/y/g /w/y/z /x2'
	echo new >"$one/x2/new"
	ok 'something comes' refresh "$store"
	is 'and nothing else' "$(nodes)" '/top /w /w/i /w/y /w/y/g /w/y/z /x2 /x2/new'
done
fill
settle
primefs query "$store" "DELETE FROM nodes WHERE path = '/x/f'" >/dev/null
mkdir "$work/other" && echo f >"$work/other/f"
rm -r "$one/x" && mv "$work/other" "$one/x"
ok 'another directory comes in the place of one' refresh "$store"
is 'with all that it has' "$(nodes /x)" '/x/f'

# ---- what the store has moved out of a directory that moves ----
move() { primefs query "$store" "UPDATE nodes SET path = '$2' WHERE path = '$1'" >/dev/null; }
for how in '' --quick; do
	fill
	mkdir "$one/x/y/d" && echo e >"$one/x/y/d/e"
	settle
	move /x/y /w/y
	move /w/y/d /w/y/z/dd
	move /w/y/z/h /w/y/hh
	before=$(nodes)
	mv "$one/x" "$one/x2"
	# shellcheck disable=SC2086
	ok "a directory moves of which the store has moved something out $how" refresh -l $how "$store"
	is 'which stays there' "$(said | xargs)" "kept /w/y <- x2/y: moved in the store \
kept /w/y/hh <- x2/y/z/h: moved in the store kept /w/y/z/dd <- x2/y/d: moved in the store \
moved /x2 <- /x"
	is 'as all does' "$(nodes)" "${before//x/x2}"
	ok 'once more' refresh -l "$store"
	is 'and no more is kept than what was moved' "$(said | cut -d' ' -f1,2 | xargs)" 'kept /w/y kept /w/y/hh kept /w/y/z/dd'
	is 'nothing else' "$(nodes)" "${before//x/x2}"
	echo new >"$one/x2/y/d/new" && rm "$one/x2/y/g"
	ok 'what it has in the source' refresh -l "$store"
	is 'is followed' "$(said | grep -v '^kept' | xargs)" \
		'added /w/y/z/dd/new removed /w/y/g'
done
fill
move /x/f /w/f
mv "$one/x" "$one/x2" && mv "$one/x2/f" "$one/x2/ff"
ok 'what moves in the source, too' refresh -l "$store"
is 'goes where that has it' "$(said | grep f)" 'moved /x/ff <- /w/f'
fill
ln "$one/x/f" "$one/x/f2"
primefs refresh "$store" >/dev/null
move /x/f /w/f
f=$(primefs query "$store" "SELECT ino FROM nodes WHERE path = '/w/f'")
mv "$one/x" "$one/v" && mv "$one/v/f2" "$one/v/f3"
ok 'a file of two names, of which the store has moved one, and the source the other' refresh -l "$store"
is 'has both' "$(said | xargs)" 'kept /w/f <- v/f: moved in the store moved /v <- /x moved /x/f3 <- /x/f2'
is 'with their nodes' "$(primefs query "$store" "SELECT ino FROM nodes WHERE path = '/w/f'")" "$f"

# ---- several folders ----
# The times that nodes have, as many as they have different ones.
compared() { primefs query --tsv "$store" "SELECT DISTINCT compared / 1000000000 FROM nodes WHERE $1" | tail -n +2 | xargs; }
away="unread /b: $two: no longer the folder that was imported; bring it back"
fill
primefs import -q --at=/b "$two" "$store"
b=$(compared "path GLOB '/b*'")
sleep 1.1
ok 'two folders' refresh "$store"
newer=$(compared "path GLOB '/b*'")
ok 'both are compared' test "$newer" -gt "$b"
mv "$two" "$work/elsewhere"
echo changed >>"$one/top" && rm "$one/x/f" && echo 2 >>"$work/elsewhere/t/j"
sleep 1.1
exits 'one of them is not there' 1 refresh "$store"
is 'which is told in a line' "$(grep -c "^$away" "$work/said")/$(grep -c unread "$work/said")" 1/1
is 'and the other one is refreshed' "$(summary)" '0 added, 1 removed, 0 moved, 1 changed, 0 kept'
is 'what came with it stays' "$(nodes /b)" '/b/t /b/t/j'
is 'and is as old as it was' "$(compared "path GLOB '/b*'")" "$newer"
ok 'what came with the other one is newer' test "$(compared "NOT path GLOB '/b*'")" -gt "$newer"
ok 'a path of the other one asks for nothing else' refresh "$store" /x
fails_with 'a path of it fails' "^primefs refresh: $two: no longer the folder" primefs refresh "$store" /b/t
if has_fuse; then
	mount_store
	is 'as_of has both' "$(sed -n 's/^compared [^ ]* //p' "$mnt/.query/as_of" | sort | head -n 2 | xargs)" '/ /b'
	mv "$work/elsewhere" "$two"
	ok 'when it is back, a mount that began without it refreshes it' refresh "$mnt"
	is 'and reads it' "$(xargs <"$mnt/b/t/j")" 'j 2'
	mv "$one" "$work/elsewhere" && mkdir "$one" && echo other >"$one/other"
	exits 'another folder in the place of one' 1 refresh "$mnt"
	is 'is not taken for it' "$(nodes /x)/$(test -e "$mnt/other" && echo other)" '/x/y /x/y/g /x/y/z /x/y/z/h/'
	rm -r "$one" && mv "$work/elsewhere" "$one"
	unmount_store
else
	mv "$work/elsewhere" "$two"
	skip 'as_of: no /dev/fuse'
fi
begun=$(date +%s)
ok 'all is well again' refresh "$store"
is 'nothing is older than that' "$(compared "compared < $begun * 1000000000")" ''
mv "$one" "$work/1" && mv "$two" "$work/2"
fails_with 'both are gone' "^primefs refresh: $one: no longer the folder" primefs refresh "$store"
mv "$work/1" "$one" && mv "$work/2" "$two"
if ((EUID == 0)); then
	skip 'root may read everything'
else
	chmod 0 "$two"
	exits 'one that cannot be read' 1 refresh "$store"
	is 'is told, too' "$(grep -c "^unread /b: $two: the folder that was imported cannot be read" "$work/said")" 1
	chmod 755 "$two"
fi
fill
primefs import -q --at=/b "$two" "$store"
mv "$two" "$work/elsewhere"
exits 'something new in one that is not there, and in one that is' 1 refresh "$store" /b/new /w
is 'is not said to be nowhere' "$(grep -c "^$away" "$work/said")/$(summary)" '1/0 added, 0 removed, 0 moved, 0 changed, 0 kept'
mv "$work/elsewhere" "$two"

# ---- a table in a folder ----
fill
printf '/t1/a\n/t1/b\n' | primefs import -q --format=paths --at=/x - "$store"
list=$(compared "path GLOB '/x/t1*'")
sleep 1.1
ok 'a folder that a list was added to' refresh "$store"
is 'is compared without it' "$(compared "path GLOB '/x/t1*'")" "$list"
check_store
