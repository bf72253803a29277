#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# primefs du prints what du(1) prints, byte for byte, on a mounted store.
# shellcheck disable=SC2154 # variables of tests/lib.sh
. "$(dirname "$0")/../lib.sh"

src=$work/src
mkdir -p "$src"/{a,a-b,'a b'}/{c,d}/e "$src/empty" "$src/wide"
for ((i = 0; i < 60; i++)); do
	head -c $((i * 777)) /dev/zero >"$src/a/c/f$i"
	head -c $((i * 33)) /dev/zero >"$src/a-b/d/e/g$i"
done
head -c 1572864 /dev/zero >"$src/a b/d/big"
truncate -s 5M "$src/a b/d/sparse"
ln -s big "$src/a b/d/link"
touch "$src/new"$'\n'line "$src/a/latin-"$'\xe9' "$src/-dash" "$src/end"$'\n' && mkdir "$src/-d"
(cd "$src/wide" && seq -f 'n%.0f' 10500 | xargs touch && mkdir d1 d2 d3 && echo x >d2/x)
primefs import --content=copy "$src" "$store" >/dev/null
requires fuse
mount_store
[[ -e $mnt/.query/run ]] || skip_all 'skipped: no .query'

# same OPTIONS... : in the mount
same() { cmp <(du "$@") <(primefs du "$@"); }
cd "$mnt"
directories_have_bytes=$(($(du -sb "$src/empty" | cut -f 1) > 0)) # to coreutils before 9.2
for options in '' -a -h -s -sh '-d 0' '-d 1' '-d 2' '-ad 1' -c -sc -k -m -sm -b -sb --apparent-size -ah -abh \
	'-b -d 1' '-h -k' '-k -h' '-h -b' '-b -h' -0 '-a --apparent-size' '-h --apparent-size' --max-depth=1 --summarize --all; do
	if [[ $options == *-apparent* || $options =~ -[a-z]*b ]] && ((!directories_have_bytes)); then
		skip "skipped: this du counts no directory's bytes: $options"
		continue
	fi
	# shellcheck disable=SC2086 # several
	ok "du $options" same $options
done
ok 'of a path' same a
ok 'of several' same -c a a-b 'a b'
ok 'of some that lie in others' same -s a/c/d a/c/f9 a . a
ok 'and files, too' same -ac a/c/f9 a/c/d 'a b/d/big' a 'a b' a/c
ok 'to a depth' same -d 1 a/c/d . a
ok 'of a file' same a/c/f9 'a b/d/big'
ok 'from outside' same "$mnt/a" "$mnt/"
ok 'with a slash' same a/
ok 'of a wide directory, in the order of its numbers' same -a wide
if ((PFS_LONG)); then
	(cd wide && seq 250000 | xargs touch)
	ok 'of a wider one' same -a wide
	rm -r wide
fi
rm -r a/c && head -c 100000 /dev/zero >'a b/new' && mv 'a b/d' a/moved
ok 'after changes' same -a
is 'sorted' "$(primefs du --sort -d 1 a | cut -f 2 | head -n 2 | tr '\n' ' ')" "$(du -d 1 a | sort -rn | cut -f 2 | grep -v '^a$' | head -n 2 | tr '\n' ' ')"
ok 'as a tree' grep -q '└── ' <(primefs du --tree a)
python 'as a picture' -c 'import sys, xml.dom.minidom as m; assert m.parse(sys.argv[1]).documentElement.tagName == "svg"' \
	<(primefs du --svg - .)
exits '-a and -s' 2 primefs du -as
exits 'a path that there is not' 3 primefs du nowhere
ok 'and those that there are' cmp <(du -c a nowhere 'a b' 2>/dev/null) <(primefs du -c a nowhere 'a b' 2>/dev/null)
exits 'a depth that is none' 2 primefs du -d x
cd "$work"
primefs du -a "$mnt" | sed "s|$mnt||; s|\t\$|\t/|" >mounted
is 'the store itself, mounted' "$(primefs du -a "$store" | md5sum)" "$(md5sum <mounted)"
unmount_store
is 'and not' "$(primefs du -a "$store" | md5sum)" "$(md5sum <mounted)"
is 'a path in it' "$(primefs du -s "$store" /a | cut -f 2)" /a
ok 'a picture of it' primefs du --svg "$work/map.svg" "$store" /a
ok 'is one' grep -q '<svg' "$work/map.svg"
