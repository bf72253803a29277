#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# import --at adds to a store and leaves all else in it as it was: side tables, saved queries,
# attributes, inode numbers; totals take in what is new.
# shellcheck disable=SC2154 # variables of tests/lib.sh
. "$(dirname "$0")/../lib.sh"

mkdir -p one/a/b two/x
echo hello >one/a/f.c
head -c 5000 /dev/zero >one/a/b/g
head -c 70000 /dev/zero >two/x/h
echo hi >two/f.c
touch -d '2030-01-01 UTC' two/x/h
has_xattrs=0
if command -v setfattr >/dev/null && setfattr -n user.kind -v new two/f.c 2>/dev/null; then
	has_xattrs=1
fi

query() { primefs query "$store" "$@"; }
rows() { query "$@" | tail -n +2; }
tab=$'\t'

primefs import --content=copy one "$store" >/dev/null
query "CREATE TABLE owners (ext TEXT, who TEXT)"
query "INSERT INTO owners VALUES ('c', 'Ana'), ('h', 'Bo')"
query "CREATE INDEX owners_ext ON owners (ext)"
printf 'f.d\told\t7\n' | primefs import --quiet --format=paths --columns=kind:text,weight:int --at=/a - "$store"
if has_fuse; then
	mount_store
	mkdir "$mnt/.query/large" "$mnt/a/.query/here"
	echo 'SELECT path FROM nodes WHERE size BETWEEN 4999 AND 5000' >"$mnt/.query/large/sql"
	echo 'SELECT count(*) FROM nodes' >"$mnt/a/.query/here/sql"
	unmount_store
fi
before=$(query 'SELECT path, ino, kind, weight, mode, mtime, ctime FROM nodes WHERE path <> '\''/a'\''')
tables=$(query 'SELECT name, sql FROM sqlite_master ORDER BY name')

ok 'a directory is added' primefs import --content=copy --at=/a/new two "$store"
is 'what there was is as it was' \
	"$(query "SELECT path, ino, kind, weight, mode, mtime, ctime FROM nodes WHERE path <> '/a' AND NOT under(ino, '/a/new')")" "$before"
is 'side tables' "$(query 'SELECT name, sql FROM sqlite_master ORDER BY name')" "$tables"
is 'and what is in them' "$(rows 'SELECT ext, who FROM owners ORDER BY ext')" "c${tab}Ana
h${tab}Bo"
is 'they join with what is new' "$(rows "SELECT path, who FROM nodes JOIN owners USING (ext) ORDER BY path")" \
	"/a/f.c${tab}Ana
/a/new/f.c${tab}Ana"
is 'totals' "$(rows "SELECT path, subtree_count, subtree_size FROM nodes WHERE ancestor_of(ino, '/a/new/x/h') ORDER BY path")" \
	"/${tab}10${tab}75009
/a${tab}9${tab}75009
/a/new${tab}4${tab}70003
/a/new/x${tab}2${tab}70000"
is 'the newest time' "$(rows "SELECT subtree_mtime FROM nodes WHERE path = '/'")" 1893456000000000000
((!has_xattrs)) || is 'attributes, of old and of new' "$(rows "SELECT path, kind FROM nodes WHERE kind IS NOT NULL ORDER BY path")" \
	"/a/f.d${tab}old
/a/new/f.c${tab}new"
check_store

printf '/p/q.c\tblue\t5\n/p/r\tred\t6\n' >list
ok 'a list of paths with columns is added' primefs import --format=paths --columns=colour:text,weight:int --at=/a/b list "$store"
is 'its columns beside the old ones' "$(rows "SELECT path, colour, weight FROM nodes WHERE weight IS NOT NULL ORDER BY path")" \
	"/a/b/p/q.c${tab}blue${tab}5
/a/b/p/r${tab}red${tab}6
/a/f.d${tab}${tab}7"
if has_archives; then
	tar cf two.tar two
	ok 'an archive is added' primefs import --at=/tar two.tar "$store"
else
	skip 'skipped: archives: built without libarchive'
	primefs import --quiet --content=copy --at=/tar/two two "$store"
fi
printf 'id,parent,name\n1,,top\n2,1,sub\n' >taxa.csv
ok 'a table is added' primefs import --id=id --parent=parent --name=name --at=/table taxa.csv "$store"
is 'each in its place' "$(rows "SELECT path, subtree_count FROM nodes WHERE path IN ('/tar', '/table', '/a/b') ORDER BY path")" \
	"/a/b${tab}5
/table${tab}3
/tar${tab}5"
is 'side tables are still there' "$(rows 'SELECT count(*) FROM owners')" 2
check_store

all=$(query "SELECT * FROM nodes")
exits 'what there is already is left out, and said' 1 primefs import --content=copy --at=/a/new two "$store"
exits 'a file is no place' 3 primefs import --content=copy --at=/a/f.c two "$store"
printf '/ok\n/ok/../x\n' >bad
exits 'what is wrong stops it' 3 primefs import --format=paths --at=/bad bad "$store"
is 'and nothing of it is there' "$(rows "SELECT count(*) FROM nodes WHERE path GLOB '/bad*'")" 0
is 'what was there is as it was' "$(query "SELECT * FROM nodes")" "$all"
check_store

requires fuse
mount_store
is 'a saved query is there' "$(cat "$mnt/.query/large/paths")" /a/b/g
is 'that of a directory sees what came' "$(tail -n 1 "$mnt/a/.query/here/result.tsv")" 12
is 'attributes' "$(cat "$mnt/.query/where/kind/old/@paths")" /a/f.d
is 'content' "$(cat "$mnt/a/new/f.c" "$mnt/a/f.c" "$mnt/tar/two/f.c" | xargs)" 'hi hello hi'
ok 'du, by totals' cmp <(du -a "$mnt") <(primefs du -a "$mnt")
exits 'nothing is added to it while it is mounted' 3 primefs import --at=/z two "$store"
unmount_store
ok 'optimize keeps it all' primefs optimize "$store"
is 'tables, too' "$(rows 'SELECT count(*) FROM owners')" 2
check_store
