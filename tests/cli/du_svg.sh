#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The picture of primefs du --svg and of .query/treemap.svg: one XML file that needs no other, whatever
# names are, and of bounded size, however many they are.
# shellcheck disable=SC2154 # variables of tests/lib.sh
. "$(dirname "$0")/../lib.sh"

mkdir tree
odd=('<b>&"x' "it's]]>" $'\x01ctl\x1b[31m' $'\x7fdel' $'in\xff\xfe' $'\xed\xa0\x80half' $'\xef\xbf\xbenone' $'new\nline'
	'--><script>' '日本語' '&amp;' '-dash')
for name in "${odd[@]}"; do
	truncate -s 5M "tree/$name"
done
mkdir 'tree/<dir&>' && truncate -s 9M 'tree/<dir&>/in'
primefs import --content=none tree "$store" >/dev/null

# sound FILE: XML, an svg, with nothing from elsewhere in it, and no program.
cat >sound.py <<'END'
import sys, xml.dom.minidom as dom
svg = dom.parse(sys.argv[1]).documentElement
assert svg.tagName == 'svg' and svg.namespaceURI == 'http://www.w3.org/2000/svg'
for element in svg.getElementsByTagName('*'):
    assert element.tagName in ('style', 'rect', 'text', 'title', 'g'), element.tagName
    for name, value in element.attributes.items():
        assert not name.startswith('on') and 'href' not in name and 'url(' not in value, name
style = ''.join(e.firstChild.data for e in svg.getElementsByTagName('style'))
assert 'import' not in style and 'url' not in style
titles = [e.firstChild.data for e in svg.getElementsByTagName('title')]
for wanted in sys.argv[2:]:
    assert any(title.startswith(wanted + ', ') for title in titles), (wanted, titles)
END

ok 'a picture' primefs du --svg all.svg "$store"
python 'names are escaped' sound.py all.svg '<b>&"x' "it's]]>" '--><script>' '日本語' '&amp;' '-dash' '<dir&>' in
! command -v xmllint >/dev/null || ok 'xmllint agrees' xmllint --noout --nonet all.svg
ok 'sizes are there' grep -q 'in, 9.0 MiB' all.svg
ok 'of a directory' primefs du --svg part.svg "$store" '/<dir&>'
python 'its name is escaped, too' sound.py part.svg in
ok 'to standard output' cmp <(primefs du --svg - "$store") all.svg
exits 'of two' 2 primefs du --svg two.svg "$store" / '/<dir&>'
exits 'of what there is not' 3 primefs du --svg none.svg "$store" /nowhere
ok 'which makes no file' test ! -e none.svg
echo before >was.svg
exits 'nor takes the place of one' 3 primefs du --svg was.svg "$store" /nowhere
is 'which stays' "$(cat was.svg)" before
ln was.svg named.svg
exits 'nor empties one of two names' 3 primefs du --svg was.svg "$store" /nowhere
is 'which stays, too' "$(cat was.svg)" before
ok 'which a picture' primefs du --svg was.svg "$store"
ok 'has by both' cmp all.svg named.svg
exits 'where there is no folder' 3 primefs du --svg "$work/none/x.svg" "$store"
fails_with 'the store itself is not written over' 'is a store; name another file' primefs du --svg "$store" "$store"
ok 'and is whole' primefs check "$store"
fails_with 'a full disk is noticed' 'No space' primefs du --svg /dev/full "$store"

# ---- many ----
mkdir many
(cd many && seq 30000 | xargs truncate -s 1M && mkdir -p deep/{1..40}/{1..20} &&
	for folder in deep/*/*; do truncate -s "$((RANDOM + 1000))K" "$folder"/{1..4}; done)
primefs import --content=none many many.pfs >/dev/null
ok 'of many' primefs du --svg many.svg many.pfs
python 'is sound' sound.py many.svg deep
ok 'and no larger than a few megabytes' test "$(stat -c %s many.svg)" -lt 4000000
said=$(primefs du --svg none/x.svg many.pfs 2>&1) || true
is 'a file that cannot be made is told of in a line' "$said" 'primefs du: none/x.svg: No such file or directory'
rm -r many
primefs import --format=paths - nothing.pfs </dev/null >/dev/null
ok 'of nothing' primefs du --svg nothing.svg nothing.pfs
python 'is sound as well' sound.py nothing.svg

requires fuse
mount_store
ok 'the file of a mount is the same' cmp "$mnt/.query/treemap.svg" all.svg
ok 'in each directory' cmp "$mnt/<dir&>/.query/treemap.svg" part.svg
fails_with 'the store that is mounted is not written over' 'is a store' primefs du --svg "$store" "$mnt"
fails_with 'nor what lies beside it' 'a store has beside it' primefs du --svg "$store-shm" "$mnt"
said=$(primefs du --svg none/x.svg "$mnt" 2>&1) || true
is 'a file that cannot be made is told of in a line' "$said" 'primefs du: none/x.svg: No such file or directory'
ok 'asked by the command' cmp <(primefs du --svg - "$mnt/<dir&>") part.svg
ok 'and by the store' cmp <(primefs du --svg - "$store" '/<dir&>') part.svg
truncate -s 20M "$mnt/grown"
ok 'it has what is new' grep -q 'grown, 20.0 MiB' "$mnt/.query/treemap.svg"
unmount_store
