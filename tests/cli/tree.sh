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
	is "$1: count of a file" "$(primefs tree --engine=host "$store" count /a-b/w)" 1
	is "$1: count as JSON" "$(primefs tree --json "$store" count /e)" '{"count": 1}'
	is "$1: NUL after each path" "$(primefs tree -0 "$store" children / | tr '\0' ,)" '/a,/a-b,/e,'
	exits "$1: nothing to print" 1 primefs tree "$store" children /e
}

questions 'imported'
ino=$(primefs tree --ino "$store" subtree / | sed -n 's|\t/$||p')
is 'the root has prime 2' "$ino" 2
fails_with 'no such path' '/nowhere: No such file' primefs tree "$store" subtree /nowhere
exits 'an unknown question is wrong usage' 2 primefs tree "$store" sisters /a
exits 'an unknown engine is wrong usage' 2 primefs tree --engine=abacus "$store" count /

ok 'optimize a store of paths' primefs optimize "$store"
questions 'optimized'

mkdir source
mkdir -p source/deep/er
echo content >source/deep/er/file
ln -s target source/deep/link
head -c 200000 /dev/urandom >source/large
primefs import --content=copy --at=/copied source "$store" >/dev/null
primefs export --format=tar "$store" >before.tar
ok 'optimize' primefs optimize "$store"
ok 'it is clean afterwards' primefs check "$store"
primefs export --format=tar "$store" >after.tar
mkdir 1 2
tar -C 1 -xf before.tar
tar -C 2 -xf after.tar
ok 'content, links and attributes are the same' diff -r --no-dereference 1 2
heaviest=$(primefs tree --ino "$store" children / | sort -n | head -n 1 | cut -f 2)
is 'the heaviest directory has the smallest prime' "$heaviest" /a
is 'no temporary file is left' "$(ls -- "$store"*)" "$store"
not_ok 'a file that is no store is refused' primefs optimize list
