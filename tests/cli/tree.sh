#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# primefs tree and primefs optimize: questions about subtrees from the command line, before and
# after a store was laid out anew.
. "$(dirname "$0")/../lib.sh"

printf '%s\n' a/b/c/x a/b/c/y a/b/d/z a-b/w e/ >list
primefs import --format=paths list "$store" >/dev/null

questions() {
	is "$1: subtree, in component-wise pre-order" "$(primefs tree "$store" subtree /a /a-b | tr '\n' ' ')" \
		'/a /a/b /a/b/c /a/b/c/x /a/b/c/y /a/b/d /a/b/d/z /a-b /a-b/w '
	is "$1: the root's subtree" "$(primefs tree "$store" subtree / | wc -l)" 11
	is "$1: ancestors" "$(primefs tree "$store" ancestors /a/b/c/x | tr '\n' ' ')" '/ /a /a/b /a/b/c '
	is "$1: children" "$(primefs tree "$store" children /a/b | tr '\n' ' ')" '/a/b/c /a/b/d '
	is "$1: common" "$(primefs tree "$store" common /a/b/c/x /a/b/d/z | tr '\n' ' ')" '/ /a /a/b '
	is "$1: count" "$(primefs tree "$store" count /a)" 7
	is "$1: paths that lie in each other are printed once" \
		"$(primefs tree "$store" subtree /a/b/d /a/b /a/b/d/z /a/b | tr '\n' ' ')" \
		'/a/b /a/b/c /a/b/c/x /a/b/c/y /a/b/d /a/b/d/z '
	is "$1: the directories above all, when one is above the other" \
		"$(primefs tree "$store" common /a/b/c/x /a/b | tr '\n' ' ')" '/ /a '
	is "$1: the directories above any" \
		"$(primefs tree "$store" ancestors /a/b/c/x /a-b/w | tr '\n' ' ')" '/ /a /a/b /a/b/c /a-b '
	is "$1: the children of any" \
		"$(primefs tree "$store" children /a/b/c /a-b /a/b/d | tr '\n' ' ')" '/a/b/c/x /a/b/c/y /a/b/d/z /a-b/w '
	is "$1: what paths lie in, once, and the root in nothing" \
		"$(primefs tree "$store" parents /a/b/c/x /a/b/c/y /a-b / | tr '\n' ' ')" '/ /a/b/c '
	is "$1: the deepest that all lie under" "$(primefs tree "$store" deepest /a/b/c/x /a/b/d/z)" /a/b
	is "$1: the deepest is one of them" "$(primefs tree "$store" deepest /a/b/c/x /a/b)" /a/b
	is "$1: the deepest of one file is itself" "$(primefs tree "$store" deepest /a/b/c/x /a/b/c/x)" /a/b/c/x
	exits "$1: the root lies in nothing" 1 primefs tree "$store" parents /
	exits "$1: nothing is above the root" 1 primefs tree "$store" ancestors /
	is "$1: count of a file" "$(primefs tree --engine=host "$store" count /a-b/w)" 1
	is "$1: count as JSON" "$(primefs tree --json "$store" count /e)" '{"count": 1}'
	is "$1: NUL after each path" "$(primefs tree -0 "$store" children / | tr '\0' ,)" '/a,/a-b,/e,'
	exits "$1: nothing to print" 1 primefs tree "$store" children /e
}

questions 'imported'
ino=$(primefs tree --ino "$store" subtree / | sed -n 's|\t/$||p')
is 'the root has prime 2' "$ino" 2
fails_with 'no such path' '/nowhere: No such file' primefs tree "$store" subtree /nowhere
is 'the node of a code' "$(primefs tree --ino "$store" node 2)" "$(printf '2\t/')"
prime=$(primefs tree --ino "$store" subtree / | sed -n 's|\t/a$||p')
is 'nodes of codes, in their order; not those of none' \
	"$(primefs tree "$store" node "$((2 * prime))" 4 2 | tr '\n' ' ')" '/a / '
exits 'no node of that code' 1 primefs tree "$store" node 4
fails_with 'no code' 'x2: no code; ' primefs tree "$store" node x2
exits 'an unknown question is wrong usage' 2 primefs tree "$store" sisters /a
exits 'an unknown engine is wrong usage' 2 primefs tree --engine=abacus "$store" count /
if primefs tree --engine=cuda "$store" count / >/dev/null 2>&1; then
	is 'on a device' "$(primefs tree --engine=cuda "$store" count /)" 11
else
	fails_with 'without a device it says so' 'engine cuda: no CUDA device .*; try auto$' \
		primefs tree --engine=cuda "$store" count /
	fails_with 'so does check' 'engine cuda: no CUDA device .*; try auto$' primefs check --engine=cuda "$store"
	fails_with 'and mount' 'engine cuda: no CUDA device .*; try auto$' primefs mount --engine=cuda "$store" "$mnt"
	is 'auto is the host, then' "$(primefs tree --engine=auto "$store" count /)" 11
fi


# More paths than go into one pass over the codes.
for ((i = 0; i < 150; i++)); do echo "many/$i/file"; done | primefs import --format=paths - many.pfs >/dev/null
mapfile -t many < <(primefs tree many.pfs children /many)
is 'count of 150 directories' "$(primefs tree many.pfs count "${many[@]}")" 300
is 'their subtrees' "$(primefs tree many.pfs subtree "${many[@]}")" \
	"$(primefs tree many.pfs subtree /many | tail -n +2)"
is 'their common ancestors' "$(primefs tree many.pfs common "${many[@]}" | tr '\n' ' ')" '/ /many '
is 'the deepest of them, by the greatest common divisor' "$(primefs tree many.pfs deepest "${many[@]}")" /many

# Names may hold anything; the code of whoever is listed is the product of the primes above it.
mkdir -p 'odd/new
line/tab	here'
primefs import --content=none odd odd.pfs >/dev/null
is '--print0 keeps a newline apart' "$(primefs tree -0 odd.pfs subtree / | tr '\0\n\t' ',NT')" \
	'/,/newNline,/newNline/tabThere,'
is '--ino comes before the path' "$(primefs tree --ino odd.pfs subtree / | head -n 2 | tr '\t\n' ' ,')" '2 /,3 /new,'
fails_with 'a path through what is no directory' 'Not a directory' primefs tree "$store" subtree /a-b/w/x
fails_with 'no store' "$work/none.pfs" primefs tree "$work/none.pfs" count /
exits 'no path is wrong usage' 2 primefs tree "$store" subtree

primefs query "$store" 'CREATE INDEX p ON nodes(path)' >/dev/null
if command -v sqlite3 >/dev/null; then
	sqlite3 "$store" "INSERT INTO path_index (name, definition) VALUES (x'71', CAST('path of a newer program' AS BLOB))"
fi
ok 'optimize a store of paths' primefs optimize "$store"
questions 'optimized'
fails_with 'the index of paths is still there' 'already an index named p' \
	primefs query "$store" 'CREATE INDEX p ON nodes(path)'
if command -v sqlite3 >/dev/null; then
	is 'so is one that a newer program has made' "$(sqlite3 "$store" \
		"SELECT CAST(name AS TEXT), CAST(definition AS TEXT) FROM path_index ORDER BY name")" \
		"$(printf 'p|path\nq|path of a newer program')"
fi

mkdir source
mkdir -p source/deep/er
echo content >source/deep/er/file
ln -s target source/deep/link
head -c 200000 /dev/urandom >source/large
primefs import --content=copy --at=/copied source "$store" >/dev/null
# copy_out DIR: the store's nodes with their content, by an archive or through a mount.
copy_out() {
	mkdir "$1"
	if has_archives; then
		primefs export --format=tar "$store" | tar -C "$1" -xf -
	else
		mount_store -o ro
		cp -a "$mnt/." "$1"
		primefs umount "$mnt"
	fi
}
if has_archives || has_fuse; then
	copy_out 1
	ok 'optimize' primefs optimize "$store"
	ok 'it is clean afterwards' primefs check "$store"
	copy_out 2
	ok 'content, links and attributes are the same' diff -r --no-dereference 1 2
else
	skip 'skipped: optimize and content: no libarchive, and no mount'
	primefs optimize "$store"
fi
heaviest=$(primefs tree --ino "$store" children / | sort -n | head -n 1 | cut -f 2)
is 'the heaviest directory has the smallest prime' "$heaviest" /a
is 'no temporary file is left' "$(ls -- "$store"*)" "$store"
not_ok 'a file that is no store is refused' primefs optimize list
