#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# import of what options do not name: delimiters, compressed files, broken ones; recognised or refused.
. "$(dirname "$0")/../lib.sh"

import() { rm -f "$store" && primefs import --quiet "$@" "$store"; }
paths() { primefs export --format=paths "$store" | sort | xargs; }
table() { printf '%s\n' "id$1parent$1name$1v" "1$1$1animals$1" "2${1}1$1cats$1x y" "3${1}2$1lion$1"; }
tree='/animals /animals/cats /animals/cats/lion'

# member NAME MODE TEXT: of a cpio archive, in the format "newc".
member() {
	printf '070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\0' 7 "0$2" 0 0 1 1600000000 ${#3} 0 0 0 0 $((${#1} + 1)) 0 "$1"
	head -c $(((4 - (111 + ${#1}) % 4) % 4)) /dev/zero
	printf '%s' "$3"
	head -c $(((4 - ${#3} % 4) % 4)) /dev/zero
}

for delimiter in ',' ';' '|' $'\t'; do
	table "$delimiter" >"$work/table"
	ok "a table with '$delimiter' is recognised" import "$work/table"
	is 'and read' "$(paths)" "$tree"
	is 'with its values' "$(primefs query "$store" "SELECT v FROM nodes WHERE name = 'cats'" | tail -n 1)" 'x y'
done
table $'\t|\t' | sed $'s/$/\t|/' >"$work/table"
ok "one with the NCBI's" import "$work/table"
is 'and read' "$(paths)" "$tree"
table $'\t' >"$work/tab"
ok 'from a pipe, too' import - <"$work/tab"
is 'and read' "$(paths)" "$tree"
table @ >"$work/at"
ok 'any other is named' import --delimiter=@ "$work/at"
is 'and read' "$(paths)" "$tree"
ok 'a tab as \t' import --delimiter='\t' "$work/tab"
exits 'a delimiter of two characters is none' 2 import --delimiter=ab "$work/tab"
exits 'nor does a list have one' 2 import --format=paths --delimiter=, "$work/tab"
printf 'a/b\t12\na/c\t13\n' >"$work/list"
ok 'a list with columns is no table' import --columns=size:int "$work/list"
is 'and read' "$(paths)" '/a /a/b /a/c'
printf 'path\tsize\na/b\t12\n' >"$work/tsv"
ok 'unless it begins with their names' import --columns=size:int "$work/tsv"
is 'and is read as one' "$(paths)" '/a /a/b'
printf 'size (bytes);path\n12;a/b\n' >"$work/odd.csv"
ok 'a name that ends with .csv, whatever the header' import "$work/odd.csv"
is 'and is read' "$(paths)" '/a /a/b'
printf 'one, two\nthree, four\n' >"$work/list"
fails_with 'a list that looks like a table is refused' 'format=paths' import "$work/list"
ok 'until it is called one' import --format=paths "$work/list"

# Names with slashes.
printf 'id,parent,name\n1,,a\n2,1,b/c\n' >"$work/slash.csv"
fails_with 'a name with a slash: the row, the name, the option' ":3: the name 'b/c' has a '/'; --slash=CHAR" import "$work/slash.csv"
rm -f "$store"
is 'kept and reported' "$(primefs import --slash=∕ "$work/slash.csv" "$store" | grep -c "1 names with a '/' have '∕'")" 1
is 'so' "$(paths)" '/a /a/b∕c'
exits 'not by a word' 2 import --slash=ab "$work/slash.csv"
exits 'nor by itself' 2 import --slash=/ "$work/slash.csv"

# Compressed input.
table , >"$work/t.csv"
printf 'a/b\nc\n' >"$work/l"
packed() { # PROGRAM SUFFIX
	command -v "$1" >/dev/null || { skip "no $1" && return; }
	"$1" -c "$work/t.csv" >"$work/t.csv.$2"
	table $'\t' | "$1" -c >"$work/t.tsv.$2"
	"$1" -c "$work/l" >"$work/l.$2"
	ok "a table of $1" import "$work/t.csv.$2"
	is 'is read' "$(paths)" "$tree"
	ok 'from a pipe' import - <"$work/t.csv.$2"
	is 'too' "$(paths)" "$tree"
	ok 'with tabs' import "$work/t.tsv.$2"
	is 'too' "$(paths)" "$tree"
	ok 'and when it is called one' import --format=csv --id=id "$work/t.csv.$2"
	ok "a list of $1" import "$work/l.$2"
	is 'is read' "$(paths)" '/a /a/b /c'
	head -c -9 "$work/t.csv.$2" >"$work/cut.$2"
	fails_with 'one that ends early is refused' "cut\\.$2: " import "$work/cut.$2"
	not_ok 'and leaves nothing' test -e "$store"
}
if has_archives; then
	packed gzip gz
	gzip -c "$work/t.csv" >"$work/t.gz"
	at=$(($(wc -c <"$work/t.gz") - 8))
	{ head -c "$at" "$work/t.gz" && printf 'x' && tail -c 7 "$work/t.gz"; } >"$work/damaged.gz"
	fails_with 'whose checksum is of something else' 'damaged\.gz: it is damaged' import "$work/damaged.gz"
	not_ok 'leaves nothing' test -e "$store"
	{ gzip -c "$work/t.csv" && echo '4,2,tiger,' | gzip -c; } >"$work/two.gz"
	ok 'one after the other' import "$work/two.gz"
	is 'are one' "$(paths)" "$tree /animals/cats/tiger"
	packed xz xz
	packed bzip2 bz2
	packed zstd zst
	packed lz4 lz4
	packed lzma lzma
	mkdir "$work/d" && echo content >"$work/d/f"
	tar -C "$work" -czf "$work/d.tgz" d
	ok 'an archive is one still' import "$work/d.tgz"
	is 'compressed or not' "$(paths)" '/d /d/f'
	is 'and what it is is said' "$(rm "$store" && primefs import --json "$work/d.tgz" "$store" | grep -c '"format": *"tar"')" 1
	for ((i = 0; i < 20000; i++)); do echo "folder $((i % 97))/file $i"; done >"$work/long"
	gzip -c "$work/long" >"$work/long.gz"
	ok 'a long list' import "$work/long.gz"
	read_packed=$(primefs export "$store" | cksum)
	import "$work/long"
	is 'is read to its end' "$read_packed" "$(primefs export "$store" | cksum)"
	tar -C "$work" -cf "$work/d.tar" d
	{ member d 40755 '' && member d/g 100644 $'two\nlines\n' && member TRAILER!!! 0 ''; } >"$work/d.cpio"
	for source in "$work/d.cpio" -; do
		ok "cpio's: $source" import "$source" <"$work/d.cpio"
		is 'and read' "$(paths) $(primefs query "$store" "SELECT size FROM nodes WHERE name = 'g'" | tail -n 1)" '/d /d/g 10'
	done
	gzip -c "$work/d.cpio" >"$work/d.cpio.gz"
	ok 'compressed, too' import "$work/d.cpio.gz"
	head -c 200 "$work/d.cpio" >"$work/cut.cpio"
	fails_with 'not one that ends early' 'cut\.cpio: ' import "$work/cut.cpio"
	head -c 700 "$work/d.tar" >"$work/cut.tar"
	fails_with "nor one of tar's" 'cut\.tar: ' import "$work/cut.tar"
	head -c -30 "$work/d.tgz" >"$work/cut.tgz"
	fails_with 'nor when it is compressed' 'cut\.tgz: ' import "$work/cut.tgz"
	not_ok 'and leaves nothing' test -e "$store"
else
	skip 'skipped: compressed files: built without libarchive'
	printf 'd\0\0' >"$work/d.tar"
fi

# What is none of these.
{ printf 'x' && tail -c +2 "$work/d.tar"; } >"$work/broken.tar"
fails_with 'a broken archive is no list' 'is no archive' import "$work/broken.tar"
not_ok 'and leaves nothing' test -e "$store"
printf 'id,parent,name\n1,,a\n' | iconv -f UTF-8 -t UTF-16 >"$work/utf16" 2>/dev/null || printf '\xff\xfei\0' >"$work/utf16"
fails_with 'UTF-16 is said to be' 'UTF-16' import "$work/utf16"
head -c 3000 /dev/urandom >"$work/noise"
printf '\0' >>"$work/noise"
fails_with 'nor is noise' 'noise: ' import "$work/noise"

# Short ones: the first bytes of what is no list, and of nothing.
for bytes in '\x1f' '\x1f\x8b' '\x1f\x8b\x08' '\xfd7zX' '\xfd7zXZ' '\x5d\0\0' '\x28\xb5\x2f\xfd' '\x04\x22\x4d\x18' BZh9 BZh91AY LZIP 'LZIP\x01' \
	'PK\x03' 'PK\x03\x04' '7z\xbc\xaf\x27\x1c' 'Rar!' 'Rar!\x1a\x07' 070701 070707000000 '!<arch>' MSCF 'xar!' WARC/1.0 \
	'\x01' '\x80' '\xff\xfe' 'a\x02b' '\xc3' '\x1b[0m' '\0'; do
	printf %b "$bytes" >"$work/short"
	said=$(import "$work/short" 2>&1) && status=0 || status=$?
	is "'$bytes' is no list" "$((status > 0)) $(wc -l <<<"$said") $(grep -c "short: " <<<"$said")" '1 1 1'
	not_ok 'and leaves nothing' test -e "$store"
done
for bytes in a 'a/b' 'caf\xc3\xa9' 'P' 'BZ' 'a\xffb\n' 'a\x02b\n' 'BZh9\n'; do
	printf %b "$bytes" >"$work/short"
	ok "'$bytes' is one" import "$work/short"
done
printf 'a\x02b' >"$work/short"
ok 'as is what is said to be' import --format=paths "$work/short"

# What people have besides, and lists whose fields nobody named.
refused() { # DESCRIPTION TEXT NAME BYTES [OPTION]...
	printf %b "$4" >"$work/$3"
	fails_with "$1" "$3: $2" import "${@:5}" "$work/$3"
	not_ok 'and leaves nothing' test -e "$store"
}
refused 'JSON' 'is JSON' d.json '{"a": 1}\n'
refused 'an array of it' 'is JSON' array '[\n{"a": 1}]\n'
refused 'XML' 'is XML' d.xml '<?xml version="1.0"?>\n<a/>\n'
refused 'a PDF file' 'is a PDF' d.pdf '%PDF-1.4\n1 0 obj\n'
refused 'a spreadsheet' 'is a spreadsheet' d.xlsx 'PK\003\004\024\0\n'
primefs import --quiet --format=paths "$work/list" "$work/other.pfs"
fails_with 'a store' 'other\.pfs: is a database, or a primefs store' import "$work/other.pfs"
refused 'a list with fields' 'each line has a field behind a tab' fields '/a/b\t12\n/c\t13\n'
ok 'until they are named' import --columns=n:int "$work/fields"
is 'and read' "$(paths)" '/a /a/b /c'
ok 'or are names' import --format=paths "$work/fields"
is 'and read so' "$(primefs query "$store" "SELECT count(*) FROM nodes WHERE name GLOB '*' || char(9) || '1[23]'" | tail -n 1)" 2
ok 'one line may have a tab' import - <<<$'a\tb\nc'
refused 'a list with the line ends of Windows' 'each line ends with a carriage return' windows '/a\r\n/b\r\n/c'
ok 'unless they are in the names' import --format=paths "$work/windows"
refused 'a table with the line ends of an old Mac' 'its lines end with carriage returns alone' mac.csv 'p,v\r/a,1\r/b,2\r'
refused 'whatever column has the paths' 'its lines end with carriage returns alone' mac.csv 'p,v\r/a,1\r' --path=p
