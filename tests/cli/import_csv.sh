#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# import --format=csv: by path, and by tables of parents and children.
. "$(dirname "$0")/../lib.sh"

import() { rm -f "$store" && primefs import --format=csv "$@" "$store"; }
paths() { primefs export --format=paths "$store" | LC_ALL=C sort | xargs; }

cat >"$work/paths.csv" <<'END'
file,size,note
/a/b,12,"quoted, with a comma"
/a/c,007,"two
lines and a ""quote"""
d,,plain
END
ok '--path' import --path=file "$work/paths.csv"
is 'makes the tree' "$(paths)" '/a /a/b /a/c /d'
primefs export --format=csv "$store" >"$work/out.csv"
ok 'attributes come out again' grep -q '"quoted, with a comma"' "$work/out.csv"
ok 'text stays text' grep -q '007' "$work/out.csv"
ok 'quotes too' grep -q 'lines and a ""quote""' "$work/out.csv"
check_store

cat >"$work/tree.csv" <<'END'
id,parent,name,rank
4,2,lion,species
2,1,cats,family
3,1,dogs,family
1,,animals,kingdom
5,3,wolf,species
END
ok '--id --parent --name, rows in any order' import --id=id --parent=parent --name=name "$work/tree.csv"
is 'makes the tree' "$(paths)" '/animals /animals/cats /animals/cats/lion /animals/dogs /animals/dogs/wolf'
if has_fuse; then
	mount_store
	is 'a leaf is a file with its record' "$(grep -c . "$mnt/animals/cats/lion")" \
		"$(grep -cE '^(id|parent|name|rank): ' "$mnt/animals/cats/lion")"
	ok 'key: value' grep -qx 'rank: species' "$mnt/animals/cats/lion"
	ok 'an inner node is a directory' test -d "$mnt/animals/cats"
	if command -v getfattr >/dev/null; then
		is 'with its attributes' "$(getfattr --only-values -n user.rank "$mnt/animals/cats")" family
	fi
	unmount_store
fi
check_store

tree() { printf 'id,parent,name\n%s\n' "$1" >"$work/bad.csv"; }
bad() { # DESCRIPTION LINE
	fails_with "$1 is reported with its line" "(line |:)$2\\b" \
		import --id=id --parent=parent --name=name "$work/bad.csv"
	not_ok "$1 leaves no store" test -e "$store"
}
tree $'1,,a\n2,9,b'
bad 'an unknown parent' 3
exits 'skipped if asked to' 1 import --on-error=skip --id=id --parent=parent --name=name "$work/bad.csv"
is 'the rest is there' "$(paths)" /a
tree $'1,,a\n2,3,b\n3,2,c'
bad 'a cycle' '[34]'
exits 'skipped if asked to' 1 import --on-error=skip --id=id --parent=parent --name=name "$work/bad.csv"
is 'the rest is there' "$(paths)" /a
tree $'1,,a\n2,1,b\n3,1,b'
bad 'a duplicate sibling name' 4
tree $'1,,a\n1,,b'
bad 'a duplicate id' 3
tree $'1,,a\n2,1,b/c'
bad 'a name with a slash' 3
fails_with 'an unknown column' 'nocolumn' import --path=nocolumn "$work/paths.csv"
printf 'a,b\n"open,1\n' >"$work/bad.csv"
{ echo "path$(printf ',c%s' {1..1900})"; echo a; } >"$work/wide.csv"
fails_with 'more columns than nodes can have' "'c1900' is one column too many" import --path=path "$work/wide.csv"
{ echo "path$(printf ',c%s' {1..1899})"; echo "a$(printf ',%s' {1..1899})"; } >"$work/wide.csv"
ok 'as many as it can have' import --path=path "$work/wide.csv"
is 'are queried' "$(primefs query "$store" "SELECT c1, c1899 FROM nodes WHERE c1899 = 1899" | tail -n 1)" $'1\t1899'
ok 'and sound' primefs check "$store"
if has_fuse; then
	mount_store
	is 'and mounted' "$(tail -n 1 "$mnt/.query/sql/SELECT c1, c1899 FROM nodes WHERE c1899 = 1899")" $'1\t1899'
	ok 'one more can be set' setfattr -n user.c1900 -v x "$mnt/a"
	fails_with 'and is refused as a column by its name' 'c1900' primefs query "$mnt" 'SELECT c1900 FROM nodes'
	is 'nothing else is' "$(primefs query "$mnt" 'SELECT count(c1899) FROM nodes' | tail -n 1)" 1
	unmount_store
	ok 'and it is sound' primefs check "$store"
fi
fails_with 'an open quote' '[0-9]' import --path=a "$work/bad.csv"
printf 'path,v\r\n/x,1\r\n' >"$work/crlf.csv"
ok 'CRLF' import --path=path "$work/crlf.csv"
is 'is read' "$(paths)" /x
printf '\xef\xbb\xbfpath,v\n/x,1\n' >"$work/bom.csv"
ok 'a byte order mark' import --path=path "$work/bom.csv"
