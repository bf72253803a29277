#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# primefs refresh --from: a newer version of a table, a list or an archive; inode numbers stay.
. "$(dirname "$0")/../lib.sh"

ino() { primefs find "$store" "$1" -maxdepth 0 -printf '%i\n'; }
attr() { primefs query --tsv "$store" "SELECT $2 FROM nodes WHERE path = '$1'" | tail -n 1; }
paths() { primefs find "$store" / -mindepth 1 -printf '%P\n' | sort; }
log() { primefs query --tsv "$store" "SELECT what, path, was, field, before, after FROM refreshes" | tail -n +2; }

# ---- a table by ids ----
cat >old.csv <<'T'
id,parent,name,rank:x
1,,life,root
2,1,beasts,kingdom
3,1,plants,kingdom
4,2,cat,species
5,2,dog,species
6,3,oak,species
7,1,birds,class
8,7,owl,species
9,7,robin,species
10,1,swapped,a
11,1,places,b
12,4,kitten,young
T
cat >new.csv <<'T'
id,parent,name,rank:x
1,,life,root
2,1,beasts,kingdom
3,1,flora,kingdom
4,2,cat,family
5,3,dog,species
6,3,oak,genus
8,2,owl,species
9,2,robin,species
10,1,places,a
11,1,swapped,b
13,1,fungi,kingdom
14,13,yeast,species
15,6,acorn,
12,4,kitten,young
T
before=$(date +%s)
primefs import -q old.csv "$store"
known() { primefs query --tsv "$1" "SELECT coalesce(min(compared), 0) / 1000000000 FROM nodes" | tail -n 1; }
imported=$(known "$store")
ok 'an import says when it began' test "$imported" -ge "$before"
dog=$(ino /life/beasts/dog) plants=$(ino /life/plants) owl=$(ino /life/birds/owl) swapped=$(ino /life/swapped)

ok 'a dry run' primefs refresh --from=new.csv --dry-run "$store"
ok 'says what would change' grep -qx 'moved /life/flora/dog <- /life/beasts/dog' <(primefs refresh --from=new.csv -n "$store")
ok 'and changes nothing' test "$(ino /life/beasts/dog)" = "$dog"
is 'nor does it say when' "$(known "$store")" "$imported"
sleep 1.1
begun=$(date +%s)
primefs refresh --from=new.csv --list "$store" >said
ok 'each node says when' test "$(known "$store")" -ge "$begun"
ok 'counts' grep -qF '4 added, 1 removed, 1 merged, 3 moved, 3 renamed, 1 changed, 0 kept' said
for line in \
	'merged /life/birds -> /life/beasts' \
	'moved /life/flora/dog <- /life/beasts/dog' \
	'renamed /life/flora <- /life/plants' \
	'renamed /life/places <- /life/swapped' \
	'changed /life/beasts/cat: rank:x was species, is family' \
	'added /life/fungi/yeast'; do
	ok "told: $line" grep -qxF "$line" said
done
is 'what moved is the same' "$(ino /life/flora/dog)" "$dog"
is 'what was renamed is the same' "$(ino /life/flora)" "$plants"
is 'what lay in what was merged is the same' "$(ino /life/beasts/owl)" "$owl"
is 'names are exchanged' "$(ino /life/places)" "$swapped"
primefs import -q new.csv fresh.pfs
is 'the tree is what importing makes' "$(paths)" "$(primefs find fresh.pfs / -mindepth 1 -printf '%P\n' | sort)"
primefs export --format=csv "$store" >out.csv
is 'the table comes back' "$(sort out.csv)" "$(sort new.csv)"
is 'the log tells a value' "$(log | grep rank)" $'changed\t/life/beasts/cat\t\trank:x\tspecies\tfamily'
primefs refresh --from=new.csv --list "$store" >said
ok 'again: nothing has changed' grep -qF '0 added, 0 removed, 0 merged, 0 moved, 0 renamed, 0 changed, 0 kept' said
check_store
ok 'JSON' grep -q '"added": 0' <(primefs refresh --from=new.csv --json "$store")

# ---- back again, with something of the store's own ----
primefs query "$store" "INSERT INTO nodes (path, type) VALUES ('/life/fungi/mine', 'f')" >/dev/null
primefs refresh --from=old.csv "$store" >said
ok 'what has something of the own is kept' grep -qx 'kept /life/fungi' said
ok 'as that is' test "$(ino /life/fungi/mine)" -gt 0
is 'what moved back is the same' "$(ino /life/beasts/dog)" "$dog"
not_ok 'what is beside it goes' primefs find "$store" /life/fungi/yeast
check_store

# ---- mistakes ----
if has_fuse; then
	mount_store
	fails_with 'a mounted store' 'mounted' primefs refresh --from=new.csv "$store"
	unmount_store
fi
sed 's/rank:x/other/' new.csv >columns.csv
fails_with 'other columns' '^primefs refresh: columns.csv:1: has other columns' primefs refresh --from=columns.csv "$store"
printf 'id,parent,name,rank:x\n1,9,a,b\n' >orphan.csv
fails_with 'a broken table' '^primefs refresh: orphan.csv:2: no row has the id of its parent' primefs refresh --from=orphan.csv "$store"
fails_with 'no file' '^primefs refresh: none.csv: No such file' primefs refresh --from=none.csv "$store"
fails_with 'options for folders' 'with --from there are only' primefs refresh --from=new.csv --keep "$store"
fails_with 'columns alone' 'goes with --from' primefs refresh --columns=a "$store"
is 'nothing is left beside the store' "$(echo store.pfs*)" store.pfs
cp "$store" logged.pfs
primefs query logged.pfs "DROP TABLE refreshes" >/dev/null
primefs query logged.pfs "CREATE TABLE refreshes (time TEXT, mine TEXT)" >/dev/null
all_paths() { primefs find logged.pfs / -printf '%i %p\n' | sort; }
was=$(all_paths)
fails_with 'a table of that name with other columns' 'table refreshes cannot be written, and nothing was changed: .*what' \
	primefs refresh --from=new.csv logged.pfs
is 'nothing has changed' "$(all_paths)" "$was"
primefs query logged.pfs "DROP TABLE refreshes" >/dev/null
primefs query logged.pfs "CREATE TABLE refreshes (mine TEXT, what TEXT, time TEXT, ino, source, id, path, was, field, before, after)" >/dev/null
ok 'one that has these columns, too, is used' primefs refresh --from=new.csv logged.pfs
ok 'JSON has each node that changed' grep -q '/life/plants' <(primefs refresh --from=old.csv --json logged.pfs)
ok 'each for what it is' test "$(primefs query --tsv logged.pfs "SELECT count(*) FROM refreshes WHERE what = 'moved' AND time > '2' AND mine IS NULL" | tail -n 1)" -gt 0

# ---- random tables, and refreshes that are killed ----
store=$work/random.pfs
seed=${PFS_SEED:-$$} rounds=8
((!PFS_LONG)) || rounds=200
echo "PFS_SEED=$seed"
RANDOM=$seed
table() { # SEED: ids up to 400, three of four, each below a smaller one
	awk -v seed="$1" 'BEGIN {
		srand(seed); print "id,parent,name,value"; print "1,,top,0"; have[1] = 1
		for (i = 2; i <= 400; i++) {
			if (rand() < 0.25) continue
			do up = int(rand() * (i < 40 ? i - 1 : 39)) + 1; while (!(up in have))
			have[i] = 1
			print i "," up "," (rand() < 0.2 ? "other" : "n") i "," int(rand() * 3)
		}
	}'
}
table "$seed" >table.csv
primefs import -q table.csv "$store"
ids() { primefs query --tsv "$1" 'SELECT id, path, value FROM nodes WHERE id IS NOT NULL ORDER BY id'; }
inos() { primefs query --tsv "$1" 'SELECT id, ino, type FROM nodes WHERE id IS NOT NULL' | sort; }
same=1 kept=1 killed=0
for ((round = 1; round <= rounds; round++)); do
	table "$((seed + round))" >table.csv
	inos "$store" >before
	if ((round % 2)); then
		primefs refresh --from=table.csv "$store" >/dev/null 2>&1 &
		victim=$!
		sleep "0.0$((RANDOM % 90 + 10))"
		kill -9 "$victim" 2>/dev/null && killed=$((killed + 1))
		wait "$victim" 2>/dev/null || true
		primefs check "$store" >/dev/null || same=0
	fi
	primefs refresh --from=table.csv "$store" >/dev/null || same=0
	rm -f fresh.pfs
	primefs import -q table.csv fresh.pfs
	diff <(ids "$store") <(ids fresh.pfs) >/dev/null || same=0
	# an id that was a directory, or is what it was, has its number still
	inos "$store" | join before - | awk '$2 != $4 && !($3 == "f" && $5 == "d") {exit 1}' || kept=0
done
echo "$killed were killed"
is 'random tables: the store is what importing makes' "$same" 1
is 'nothing is left beside it' "$(echo random.pfs*)" random.pfs
is 'and ids keep their inode numbers' "$kept" 1
check_store

# ---- a list by paths ----
store=$work/list.pfs
printf 'a/b/c\t1\na/b/d\t2\nx/y\t3\n' >old.list
printf 'a/b/c\t1\na/b/d\t5\nz\t4\n' >new.list
primefs import -q --format=paths --columns=size_kb:int old.list "$store"
c=$(ino /a/b/c)
fails_with 'a table for a list' 'a table, but none was imported' primefs refresh --from=new.csv "$store"
primefs refresh --from=new.list --columns=size_kb:int --list "$store" >said
ok 'counts' grep -qF '1 added, 2 removed, 0 merged, 0 moved, 0 renamed, 1 changed, 0 kept' said
ok 'a value' grep -qxF 'changed /a/b/d: size_kb was 2, is 5' said
is 'the same node' "$(ino /a/b/c)" "$c"
is 'its value' "$(attr /a/b/d size_kb)" 5
is 'the paths' "$(paths)" "$(printf '%s\n' a a/b a/b/c a/b/d z)"
check_store

# ---- an archive by paths ----
if has_archives; then
	store=$work/tar.pfs
	mkdir -p tree/d
	echo one >tree/one
	echo two >tree/d/two
	ln -s one tree/link
	tar -C tree -cf old.tar .
	primefs import -q old.tar "$store"
	two=$(ino /d/two)
	echo three >tree/d/two
	chmod 700 tree/d
	rm tree/one
	ln -sfn elsewhere tree/link
	mkdir tree/e
	echo new >tree/e/new
	tar -C tree -cf new.tar .
	primefs refresh --from=new.tar "$store" >said
	is 'the same file' "$(ino /d/two)" "$two"
	primefs import -q new.tar fresh2.pfs
	show='%P|%y|%m|%s|%T@|%l\n'
	is 'the archive' "$(primefs find "$store" / -mindepth 1 -printf "$show" | sort)" \
		"$(primefs find fresh2.pfs / -mindepth 1 -printf "$show" | sort)"
	mkdir back
	primefs export --format=tar "$store" >back.tar
	tar -C back -xf back.tar
	ok 'and its content' diff -r --no-dereference tree back
	check_store
else
	skip 'no archives'
fi

# ---- the wrong file, or the wrong store ----
before=$(primefs export fresh.pfs)
head -n 1 new.csv >header.csv
: >nothing
fails_with 'a table without rows removes nothing' 'header.csv: has no entries' primefs refresh --from=header.csv fresh.pfs
is 'and all is there' "$(primefs export fresh.pfs)" "$before"
printf '/a/b\n' | primefs import -q - few.pfs
fails_with 'nor does an empty list' 'nothing: has no entries' primefs refresh --from=nothing few.pfs
is 'and all is there, too' "$(primefs export few.pfs)" $'/a\n/a/b'
mkdir -p folder/sub
echo text >folder/sub/file
primefs import -q folder folder.pfs
printf '/a/b\n' >list
fails_with 'a list takes the place of no folder' 'folder.pfs: a folder was imported to / or below it, .*without --from' \
	primefs refresh --from=list folder.pfs
fails_with 'nor of a part of one' 'folder.pfs: a folder was imported to /sub' primefs refresh --from=list folder.pfs /sub
is 'which is there' "$(primefs export folder.pfs)" $'/sub\n/sub/file'
primefs import -q --at=/list list folder.pfs
printf '/c\n' >list
ok 'but of a list beside it' primefs refresh --from=list folder.pfs /list
is 'which follows' "$(primefs export folder.pfs)" $'/list\n/list/c\n/sub\n/sub/file'
for content in copy none; do
	rm -f folder.pfs*
	primefs import -q --content=$content folder folder.pfs
	fails_with "nor of one with --content=$content" 'folder.pfs: a folder was imported to / or below it, .*import it again' \
		primefs refresh --from=list folder.pfs
	fails_with "nor of a part of that" 'folder.pfs: a folder was imported to /sub' primefs refresh --from=list folder.pfs /sub
	printf '/a/b\n' >beside
	primefs import -q --at=/list beside folder.pfs
	ok 'but of a list beside that' primefs refresh --from=list folder.pfs /list
	fails_with 'though not of both' 'folder.pfs: a folder was imported to /' primefs refresh --from=list folder.pfs
	is 'which follows, too' "$(primefs export folder.pfs)" $'/list\n/list/c\n/sub\n/sub/file'
	primefs import -q --at=/ beside folder.pfs
	fails_with 'nor of a list among its files' 'folder.pfs: a folder was imported to /' primefs refresh --from=list folder.pfs
	primefs query folder.pfs "DELETE FROM nodes WHERE path <> '/'" >/dev/null
	primefs import -q --at=/ beside folder.pfs
	ok 'but of a list that came when all its files were gone' primefs refresh --from=list folder.pfs
	is 'which follows in its place' "$(primefs export folder.pfs)" '/c'
done
# ---- plain files that were copied to a directory of the store ----
mkdir flat several
echo text >flat/file
(cd several && seq -f 'd%g' 1030 | xargs mkdir)
printf '/a\n' >list
printf '/b\n' >other_list
empty() { primefs query "$1" "DELETE FROM nodes WHERE path <> '/'" >/dev/null; }
for content in copy none; do
	for before in list emptied; do
		rm -f flat.pfs*
		if [[ $before = emptied ]]; then
			primefs import -q --content=$content flat flat.pfs
			empty flat.pfs
			primefs import -q --at=/ list flat.pfs
		else
			primefs import -q list flat.pfs
		fi
		primefs import -q --content=$content --at=/ flat flat.pfs
		fails_with "a list removes no plain files with --content=$content beside it ($before)" \
			'flat.pfs: a folder was imported to /' primefs refresh --from=other_list flat.pfs
		is 'which are there' "$(primefs export flat.pfs)" $'/a\n/file'
	done
	empty flat.pfs
	primefs import -q --content=$content --at=/ flat flat.pfs
	fails_with 'nor those that came to an emptied root' 'flat.pfs: a folder was imported to /' primefs refresh --from=list flat.pfs
	empty flat.pfs
	primefs import -q --at=/ list flat.pfs
	ok 'but what a list takes the place of' primefs refresh --from=other_list flat.pfs
	is 'which follows' "$(primefs export flat.pfs)" /b
done
primefs import -q --content=copy --at=/ several flat.pfs
fails_with 'nor more directories than say when they were compared' 'flat.pfs: a folder was imported to /' \
	primefs refresh --from=list flat.pfs
fails_with 'nor what is in one of those' 'flat.pfs: a folder was imported to /d7' primefs refresh --from=list flat.pfs /d7
rm -f flat.pfs*
printf '/sub/a\n' | primefs import -q - flat.pfs
primefs import -q --at=/sub/in list flat.pfs
mkdir -p deep/sub/in
cp flat/file deep/sub/in
primefs import -q --content=copy --at=/ deep flat.pfs
fails_with 'nor those that came to a directory of another list' 'flat.pfs: a folder was imported to /sub/in' \
	primefs refresh --from=list flat.pfs /sub/in
fails_with 'nor from above it' 'flat.pfs: a folder was imported to /' primefs refresh --from=list flat.pfs
primefs query flat.pfs "DELETE FROM nodes WHERE path GLOB '/sub/in/*'" >/dev/null
primefs import -q --at=/sub/in list flat.pfs
ok 'until that is emptied and gets a list' primefs refresh --from=other_list flat.pfs /sub/in
ok 'and so above it' primefs refresh --from=list flat.pfs
is 'where nothing was copied' "$(primefs export flat.pfs)" /a
primefs import -q --content=copy deep in.pfs
primefs query in.pfs "DELETE FROM nodes WHERE path GLOB '/sub/*'" >/dev/null
primefs import -q --at=/sub list in.pfs
ok 'a list in an emptied directory of a copied folder is compared' primefs refresh --from=other_list in.pfs /sub
fails_with 'the folder is not' 'in.pfs: a folder was imported to /' primefs refresh --from=other_list in.pfs
rm -f flat.pfs*
printf '/file\n' | primefs import -q - flat.pfs
attrs=$(primefs query flat.pfs 'SELECT * FROM nodes')
exits 'what is there already' 1 primefs import -q --content=copy --at=/ flat flat.pfs
is 'leaves the directory as it was' "$(primefs query flat.pfs 'SELECT * FROM nodes')" "$attrs"
ok 'and brings no file that a list could remove' primefs refresh --from=list flat.pfs
# ---- a table below a list ----
rm -f flat.pfs*
printf '/a\n/table/b\n' | primefs import -q - flat.pfs
primefs import -q --at=/table old.csv flat.pfs
rows=$(primefs find flat.pfs /table/life | sort)
primefs refresh --from=list --list flat.pfs >said
ok 'a list keeps the directory of a table that is not in it' grep -qx 'kept /table' said
is 'and all its rows' "$(primefs find flat.pfs /table/life | sort)" "$rows"
ok 'but nothing else' grep -qx 'removed /table/b' said
ok 'the table can be refreshed' primefs refresh --from=new.csv flat.pfs /table
rm -f folder.pfs*
printf '/c\n' >list
mkdir other
echo text >other/file
primefs import -q other folder.pfs
primefs import -q --content=copy --at=/copied folder folder.pfs
primefs refresh folder.pfs >/dev/null
fails_with 'nor of one that was copied below another that has been refreshed' 'folder.pfs: a folder was imported to /copied' \
	primefs refresh --from=list folder.pfs /copied
# ---- copies beside and below a list ----
rm -f flat.pfs*
mkdir -p lnk/d copy/photos/2020
echo text >lnk/d/f
echo text >copy/photos/2020/p
ln -s 2020 copy/photos/last
printf '/a\n' >list
primefs import -q lnk flat.pfs
primefs import -q --at=/list list flat.pfs
primefs import -q --content=copy --at=/ flat flat.pfs
sleep 1.1
primefs refresh flat.pfs >/dev/null
ok 'a list among copied files can be refreshed after the folder beside it' primefs refresh --from=other_list flat.pfs /list
is 'and follows' "$(primefs export flat.pfs)" $'/d\n/d/f\n/file\n/list\n/list/b'
fails_with 'but not all' 'flat.pfs: a folder was imported to /' primefs refresh --from=other_list flat.pfs
rm -f flat.pfs*
printf '/list/a\n' | primefs import -q - flat.pfs
primefs import -q --content=copy --at=/copied copy flat.pfs
primefs query flat.pfs "UPDATE nodes SET path = '/list/photos' WHERE path = '/copied/photos'" >/dev/null
ok 'a list below which a copy was moved is refreshed' primefs refresh --from=other_list flat.pfs /list
is 'and leaves it' "$(primefs find flat.pfs /list -printf '%p %y\n' | sort)" \
	$'/list d\n/list/b f\n/list/photos d\n/list/photos/2020 d\n/list/photos/2020/p f\n/list/photos/last l'
