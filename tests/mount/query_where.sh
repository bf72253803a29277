#!/bin/bash
# SPDX-License-Identifier: MIT
# .query/where: facets, from a shell.
# shellcheck disable=SC2002,SC2010,SC2012,SC2094 # listings, pipes and files read twice are tested
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse

mkdir -p tree/a/b tree/c tree/d
head -c 3000 /dev/zero >tree/a/x.c
head -c 70000 /dev/zero >tree/a/b/y.iso
echo hi >tree/c/z.c
echo same >tree/c/same.txt
echo same >tree/d/same.txt
: >"tree/d/it's 100% @home"
: >$'tree/d/new\nline'
: >tree/d/trailing.
primefs import tree "$store" >/dev/null
mount_store
w=$mnt/.query/where

names() { (cd "$1" && printf '%s\n' *) | sort | tr '\n' ' '; }

# ---- listings ----
# shellcheck disable=SC2010 # it is what ls prints
is 'columns and ends' "$(ls "$w" | grep -cxE '@paths|@paths0|@count|@result.tsv|under|ext|size|mtime|owner|path')" 10
is '@nodes is named, not listed' "$(ls "$w" "$w/ext/c" "$w/ext/c/type/f" | grep -c @nodes)" 0
is 'values' "$(names "$w/ext")" '@empty @null c iso txt '
is 'values, the most frequent first' "$(ls -U "$w/type" | tr '\n' ' ')" 'f d '
is 'a glob' "$(printf '%s\n' "$w"/ext/[cit]* | sed 's|.*/||' | sort | tr '\n' ' ')" 'c iso txt '
is 'values with odd bytes' "$(names "$mnt/d/.query/where/name" | cat)" "d it's 100%25 @home new%0Aline same.txt trailing. "
is 'children' "$(names "$w/under")" 'a c d '
is 'an operator lists nothing' "$(ls "$w/size.gt")" ''
is 'every listed value can be entered' "$(cd "$mnt/d/.query/where/name" && for v in *; do cat "$v/@count"; done | tr '\n' ' ')" '1 1 1 1 1 '

is 'below a value: the other columns' "$(ls "$w/ext/c" | grep -cxE 'ext|type|size|under|@paths')" 4
is 'under only once' "$(ls "$w/under/a" | grep -cxE 'under|ext|@paths')" 2
is 'their values can be read' "$(ls "$w/ext/c/type"; cat "$w/ext/c/type/@values")" "$(printf '@values\nvalue\tnodes\nf\t2')"
is 'and named; nothing but ends follows' "$(ls "$w/ext/c/type/f" | tr '\n' ' ')" '@count @paths @paths0 @result.csv @result.json @result.tsv @result.txt '
is 'children, too' "$(ls "$w/type/d/under"; cat "$w/type/d/under/a/@count")" "$(printf '@values\n2')"
is 'which can be read' "$(cat "$w/type/d/under/@values")" "$(printf 'value\tnodes\na\t4\nc\t3\nd\t5')"
ok 'du comes to an end' timeout 300 du -s "$mnt/.query/"
walk=$(timeout 300 find "$w" -type d | wc -l)
ok "and so does find: $walk" test "$walk" -lt 20000
is 'no walk comes to the nodes' "$(find "$mnt/.query" -type l | wc -l)" 0

# ---- answers ----
count() { cat "$w/$1/@count"; }
is 'a value' "$(cat "$w/ext/c/@paths")" "$(printf '/a/x.c\n/c/z.c')"
is 'nested: AND' "$(cat "$w/ext/c/size/3/@paths")" /c/z.c
is '.gt with a unit' "$(count size.gt/2K/type/f)" 2
is '.ge' "$(count size.ge/3000/type/f)" 2
is '.lt' "$(count size.lt/3/type/f)" 3
is '.le' "$(count size.le/3/type/f)" 4
is '.ne' "$(count type.ne/f)" 5
is '.like' "$(count name.like/%25.C)" 2
is '.glob' "$(count 'name.glob/*.[ci]*')" 3
is 'a fraction of a unit' "$(count size.ge/2.5K/type/f)" 2
is '@null' "$(cat "$w/ext/@null/type/f/@paths")" "$(printf '/d/it'\''s 100%% @home\n/d/new\nline')"
is '@empty' "$(cat "$w/ext/@empty/@paths")" /d/trailing.
is 'not @null' "$(count ext.ne/@null)" 6
is 'a time' "$(count mtime.gt/2020-01-01)" 13
is 'not yet' "$(count mtime.gt/tomorrow)" 0
for time in yesterday '1 year ago' '-30 days' 'a week ago' '-1 year -2 months' 2020-01-01 2020-01-01T12:00Z; do
	is "a time: $time" "$(count "mtime.gt/$time") $(count "mtime.le/$time")" '13 0'
	ok "which find takes, too: $time" test "$(primefs find "$mnt" -newermt "$time" -print0 | tr -dc '\0' | wc -c)" = 13
done
refuses() { fails_with "$1 is refused" 'No such file' ls "$w/$1" && is 'and says why' "$(cat "$mnt/.query/error")" "$2"; }
words="is no time; write one like '2024-01-31', '2024-01-31 12:00:00', '1 year ago', '-30 days', 'yesterday' or 'today'"
refuses mtime.lt/lastyear "mtime.lt/lastyear: 'lastyear' $words"
refuses subtree_mtime/x "subtree_mtime/x: 'x' $words"
refuses ctime.ge/@empty "ctime.ge/@empty: '' $words"
refuses atime.gt/1700000000 'atime.gt/1700000000: seconds? times here are nanoseconds: write seconds(x) or a date'
refuses size.gt/abc 'size.gt/abc: it is compared with numbers, such as 4096, 1.5K or 2G'
refuses depth/deep 'depth/deep: it is compared with numbers, such as 4096, 1.5K or 2G'
touch -d '1970-01-01 00:00:05 UTC' "$mnt/c/z.c"
is 'a listed time is found, whatever it is' "$(cat "$w"/under/c/type/f/mtime/5000000000/@paths) $(names "$w/mtime" | grep -wc 5000000000)" '/c/z.c 1'
touch "$mnt/c/z.c"
is 'an encoded path' "$(cat "$w/path/%2Fa%2Fx.c/@paths")" /a/x.c
is 'an encoded percent sign' "$(count "name/it's 100%25 @home")" 1
is 'under' "$(cat "$w/under/a/@paths")" "$(printf '/a\n/a/b\n/a/b/y.iso\n/a/x.c')"
is 'under, further down' "$(cat "$w/under/a/under/b/@paths")" "$(printf '/a/b\n/a/b/y.iso')"
is 'no match is empty' "$(count ext/nothing) $(ls "$w/ext/nothing/@nodes")" '0 '
is '@paths0' "$(xargs -0 -n 1 printf '<%s>' <"$w/type/f/under/c/@paths0")" '</c/same.txt></c/z.c>'
is '@result.tsv' "$(head -n 1 "$w/ext/c/@result.tsv" | cut -f 1-3)" "$(printf 'path\tname\text')"
python '@result.json' -c 'import json, sys; assert len(json.load(open(sys.argv[1]))) == 2' "$w/ext/c/@result.json"
is 'in a directory: limited to it' "$(cat "$mnt/a/.query/where/type/f/@paths")" "$(printf '/a/b/y.iso\n/a/x.c')"
refuses nope 'nope: there is no such column; ls lists what there is'
refuses under/nope 'nope: there is no such child; ls lists what there is'
refuses @nope '@nope: there is no such end; ls lists what there is'
statements() { sed -n 's/.*"run": *\([0-9]*\).*/\1/p' "$mnt/.query/stats" | head -n 1; }
ls "$w" >/dev/null
before=$(statements)
ls -l "$w"/ext/c/size "$w"/name/x.c/type "$w"/depth/1/uid >/dev/null
is 'steps ask SQLite for no columns again' "$(($(statements) - before))" 0
fails_with 'no such operator' 'No such file' ls "$w/size.zz"
fails_with 'no such end' 'No such file' ls "$w/@zz"
fails_with 'no such child' 'No such file' ls "$w/under/nope"

# ---- as shells expand patterns ----
glob() { (cd "$w" && bash -O globstar -O extglob -O nullglob -c "printf '%s\n' $1" | LC_ALL=C sort | tr '\n' ' '); }
is 'ls of all values' "$(ls -d "$w"/ext/* | sed 's|.*/||' | LC_ALL=C sort | tr '\n' ' ')" '@empty @null c iso txt '
is 'a level of values' "$(glob 'ext/*/@count')" 'ext/@empty/@count ext/@null/@count ext/c/@count ext/iso/@count ext/txt/@count '
is 'braces' "$(cat "$w"/ext/{c,txt}/@count | tr '\n' ' ')" '2 2 '
is 'extended patterns' "$(glob 'ext/@(c|iso)')" 'ext/c ext/iso '
is 'negated' "$(glob 'ext/!(@*)')" 'ext/c ext/iso ext/txt '
is 'links by a pattern' "$(glob 'ext/*/@nodes/*.[ci]*')" 'ext/c/@nodes/x.c ext/c/@nodes/z.c ext/iso/@nodes/y.iso '
is 'files through links' "$(wc -c "$w"/ext/{c,iso}/@nodes/* | tail -n 1 | tr -dc 0-9)" 73003
if command -v zsh >/dev/null; then
	is 'zsh: alternatives and qualifiers' "$(cd "$w" && zsh -fc 'print -l ext/(c|iso)(/N) ext/*/@nodes/*(@N:t)' | sort | tr '\n' ' ')" \
		"$(cd "$w" && { printf '%s\n' ext/c ext/iso && ls ext/*/@nodes | grep '^[^e]'; } | grep . | sort | tr '\n' ' ')"
	is 'zsh: by size' "$(cd "$w" && zsh -fc 'print -l ext/*/@nodes/*(-.Lk+60N:t)')" y.iso
else
	skip 'no zsh'
fi

# ---- links ----
is 'links' "$(readlink "$w/ext/c/@nodes/z.c")" ../../../../../c/z.c
is 'links lead to the nodes' "$(cat "$w/ext/c/@nodes/z.c")" hi
is 'ls -L: the node itself' "$(stat -Lc %i "$w/ext/c/@nodes/z.c")" "$(stat -c %i "$mnt/c/z.c")"
for link in "$w/name/same.txt/@nodes/"*; do cat "$link"; done >out
is 'a repeated name' "$(tr '\n' ' ' <out)" 'same same '
ok 'has its prime' test -L "$w/name/same.txt/@nodes/same.txt~$(stat -c %i "$mnt/c/same.txt")"
not_ok 'and not alone' test -L "$w/name/same.txt/@nodes/same.txt"
is 'the directory itself' "$(readlink "$w/depth/0/@nodes/%2F")" ../../../../..
is 'below a directory' "$(cat "$mnt/a/.query/where/ext/iso/@nodes/y.iso" | wc -c)" 70000
is 'relative to it' "$(readlink "$mnt/a/.query/where/ext/iso/@nodes/y.iso")" ../../../../../b/y.iso
cp -rL "$w/ext/txt/@nodes" copied
is 'cp -rL' "$(cat copied/* | wc -l)" 2
is 'ls -l shows where they lead' "$(ls -l "$w/ext/c/@nodes" | grep -o '[^ ]* -> .*')" \
	"$(printf 'x.c -> ../../../../../a/x.c\nz.c -> ../../../../../c/z.c')"
mv "$mnt/c/z.c" "$mnt/d/z.c"
is 'moved: the link follows' "$(readlink "$w/name/z.c/@nodes/z.c") $(cat "$w/name/z.c/@nodes/z.c")" '../../../../../d/z.c hi'
rm "$mnt/d/z.c"
not_ok 'removed: no link' test -L "$w/name/z.c/@nodes/z.c"

# ---- many values ----
mkdir "$mnt/many"
(cd "$mnt/many" && seq -f 'f%g.x' 1 1500 | xargs touch)
is 'at most a thousand, then how many more' "$(ls -U "$mnt/many/.query/where/name" | tail -n 1) $(ls -U "$mnt/many/.query/where/name" | wc -l)" '@more-501 1001'
is 'which can be read' "$(wc -l <"$mnt/many/.query/where/name/@more-501")" 1502
is 'nor more of the children' "$(ls -U "$mnt/many/.query/where/under" | tail -n 1) $(ls -U "$mnt/many/.query/where/under" | wc -l)" '@more-500 1001'
is 'which can be read, too' "$(wc -l <"$mnt/many/.query/where/under/@more-500")" 1501
is 'and named' "$(cat "$mnt/many/.query/where/under/f999.x/@paths")" /many/f999.x
is 'all of them as links' "$(ls "$mnt/many/.query/where/type/f/@nodes" | wc -l)" 1500

longest=$(printf 'd%.0s' {1..255})
mkdir -p "$mnt/long/$longest"
is 'a name of 255 bytes is listed' "$(ls "$mnt/long/.query/where/under") $(ls "$mnt/long/.query/where/name" | grep ^d)" "$longest $longest"
unmount_store
check_store
