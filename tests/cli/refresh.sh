#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# refresh: a store follows the folder that it was imported from.
# timeout: 400
. "$(dirname "$0")/../lib.sh"

src=$work/src
mkdir -p "$src"/{a,b/deep,c/d}
for name in a/one a/two b/deep/three c/d/four; do echo "$name" >"$src/$name"; done
ln -s ../a/one "$src/b/soft"
ln "$src/a/one" "$src/b/hard"
mkfifo "$src/fifo"
show='%P|%y|%m|%U|%G|%T@|%l|%s\n'
source_is() { (cd "$src" && find . -mindepth 1 -printf "$show"); }
store_is() { primefs find "$store" / -mindepth 1 -printf "$show"; }
# The sizes of directories are their filesystem's own.
listing() { "$1" | sed 's/^\([^|]*|d|.*\)|[0-9]*$/\1/' | sort; }
follows() { is "$1" "$(listing store_is)" "$(listing source_is)"; }
prime() { primefs resolve "$store" <<<"$1" | cut -f1; }
field() { sed -n "s/.*\"$1\": *\\([0-9]*\\).*/\\1/p"; }
refresh() { primefs refresh "$@" "$store" >"$work/said" 2>&1; }
said() { sed '$d' "$work/said" | sort; }

tagged=0
setfattr -n user.tag -v mine "$src/a/two" "$src/b/deep" 2>/dev/null && tagged=1
primefs import "$src" "$store" >/dev/null
ok 'refreshing at once' refresh -l
is 'changes nothing' "$(said)" ''
follows 'and it is the same'

# ---- each kind of change ----
two=$(prime /a/two) deep=$(prime /b/deep) three=$(prime /b/deep/three) four=$(prime /c/d/four)
echo new >"$src/a/new"
rm "$src/a/one"
mv "$src/a/two" "$src/c/second"
mv "$src/b/deep" "$src/moved"
echo more >>"$src/c/d/four"
chmod 700 "$src/c"
ln -s nowhere "$src/c/link"
mkdir -p "$src/fresh/er"
echo x >"$src/fresh/er/x"
cp "$store" "$work/before.pfs"
ok 'a dry run' primefs refresh -n "$store"
ok 'changes nothing' cmp "$store" "$work/before.pfs"
ok 'refresh' refresh -l
is 'says what changed' "$(said)" 'added /a/new
added /c/link
added /fresh
added /fresh/er
added /fresh/er/x
changed /b/hard
changed /c
changed /c/d/four
moved /c/second <- /a/two
moved /moved <- /b/deep
removed /a/one'
follows 'the store follows'
is 'a moved file keeps its prime' "$(prime /c/second)" "$two"
is 'a moved directory, too' "$(prime /moved)" "$deep"
is 'and what is in it' "$(prime /moved/three)" "$three"
is 'a changed file, too' "$(prime /c/d/four)" "$four"
if ((tagged)); then
	is 'attributes move with nodes' \
		"$(primefs query --tsv "$store" "SELECT path FROM nodes WHERE tag = 'mine' ORDER BY path" | tail -n +2 | xargs)" \
		'/c/second /moved'
else
	skip 'attributes: no setfattr here'
fi
is 'a name of a file that has others goes' "$(prime /a/one)" -
check_store
rm "$work/before.pfs"

# ---- names that change places ----
echo 1 >"$src/p"
echo 2 >"$src/q"
mkdir "$src/out" "$src/out/in"
echo inner >"$src/out/in/file"
refresh
p=$(prime /p) q=$(prime /q) out=$(prime /out) in=$(prime /out/in)
mv "$src/p" "$src/t" && mv "$src/q" "$src/p" && mv "$src/t" "$src/q"
mv "$src/out/in" "$src/in" && mv "$src/out" "$src/in/out"
ok 'names exchanged, a directory turned inside out' refresh -l
follows 'the store follows'
is 'by their primes' "$(prime /p) $(prime /q) $(prime /in) $(prime /in/out)" "$q $p $in $out"
mv "$src/q" "$src/p"
ok 'a name moved over another' refresh -l
is 'that one is gone' "$(prime /p)" "$p"
echo edited >"$src/new" && mv "$src/new" "$src/p"
ok 'a file written anew, as editors do' refresh -l
is 'stays the node' "$(prime /p)" "$p"
rm -r "$src/in" && echo file >"$src/in"
ok 'a file in place of a directory' refresh -l
rm "$src/p" && mkdir "$src/p" && touch "$src/p/x"
ok 'and the other way round' refresh -l
follows 'the store follows'
check_store

# ---- what the store has changed stays ----
four=$(prime /c/d/four)
primefs query "$store" "UPDATE nodes SET name = 'fourth' WHERE path = '/c/d/four'"
primefs query "$store" "UPDATE nodes SET mode = mode - 4 WHERE path = '/c/second'"
primefs query "$store" "DELETE FROM nodes WHERE path = '/moved/three'"
primefs query "$store" "UPDATE nodes SET path = '/moved/hard' WHERE path = '/b/hard'"
echo other >"$src/c/d/other"
echo other >"$src/a/other"
touch "$src/b" "$src/moved"
ok 'refresh after changes in the store' refresh
is 'what is kept is said' "$(said)" 'kept /c/d/fourth <- four: renamed in the store
kept /c/second: attributes changed in the store
kept /moved/hard <- b/hard: moved in the store
kept /moved/three: removed in the store'
is 'the name stays' "$(prime /c/d/fourth)" "$four"
is 'what was removed stays away' "$(prime /moved/three)" -
is 'what comes beside it comes' "$(primefs find "$store" /a /c/d -name other | xargs)" '/a/other /c/d/other'
chmod 600 "$src/c/second"
echo longer >>"$src/c/d/four"
refresh -l
is 'a mode that the source changes follows' "$(primefs find "$store" /c/second -printf %m)" 600
is 'so does what has another name' "$(primefs find "$store" /c/d/fourth -printf %s)" "$(stat -c %s "$src/c/d/four")"
rm "$src/c/d/four" "$src/b/hard"
refresh -l
is 'what is gone goes, wherever it is' "$(said | grep '^removed')" 'removed /c/d/fourth
removed /moved/hard'
check_store

# ---- options ----
rm "$src/c/second"
ok 'keep' refresh --keep -l
is 'says what is gone' "$(said | grep '^removed')" 'removed /c/second'
is 'and marks it' "$(primefs query --tsv "$store" "SELECT path FROM nodes WHERE gone IS NOT NULL" | tail -n +2)" /c/second
ok 'once' refresh --keep -l
is 'and no more' "$(said | grep '^removed' || true)" ''
refresh
is 'it goes without keep' "$(prime /c/second)" -
ln -s zz "$src/c/weak"
mkfifo "$src/c/reed"
refresh
mv "$src/c/weak" "$src/c/reed" "$work"
ok 'keep a symlink and a pipe' refresh --keep -l
is 'says that they are gone' "$(said | grep '^removed' | xargs)" 'removed /c/reed removed /c/weak'
gone() { primefs query --tsv "$store" "SELECT path, gone > '2' FROM nodes WHERE gone IS NOT NULL ORDER BY path" | tail -n +2 | xargs; }
is 'and marks them' "$(gone)" '/c/reed 1 /c/weak 1'
ok 'only once' refresh --keep -l
is 'as said' "$(said | grep '^removed' || true)" ''
if has_archives; then
	ok 'an archive takes the mark' primefs export --format=tar -o "$work/marked.tar" "$store"
else
	skip 'skipped: archives: built without libarchive'
fi
mv "$work/weak" "$src/c"
refresh --keep
is 'what comes back loses its mark' "$(gone)" '/c/reed 1'
check_store
rm "$src/c/weak"
refresh
is 'what is marked goes without keep' "$(prime /c/reed)$(prime /c/weak)" --
ln -s x "$src/c/weak"
mkfifo "$src/c/reed"
mkdir "$src/c/dir"
refresh
weak=$(prime /c/weak) reed=$(prime /c/reed) dir=$(prime /c/dir)
mv "$src/c/weak" "$src/c/reed" "$work" # so that their numbers are not used again
ln -s y "$src/c/weak"
mkfifo "$src/c/reed"
mv "$src/c/dir" "$work" && touch "$src/c/dir"
ok 'keep what others have taken the place of' refresh --keep -l
is 'the others are added' "$(said | grep '^added' | xargs)" 'added /c/dir added /c/reed added /c/weak'
is 'and are there' "$(primefs find "$store" /c \( -name dir -o -name reed -o -name weak \) -printf '%f %y %l\n' | sort | xargs)" 'dir f reed p weak l y'
is 'what was there is kept aside' "$(gone)" "/c/dir~$dir 1 /c/reed~$reed 1 /c/weak~$weak 1"
ok 'and once more' refresh --keep -l
is 'nothing is new' "$(said)" "$(said | grep '^kept')"
check_store
refresh
is 'what is aside goes without keep' "$(gone)" ''
rm -r "$src"/c/{weak,reed,dir} "$work"/{weak,reed,dir}
refresh
mkdir -p "$src/c/back/deep/er"
touch "$src"/c/back/{first,deep/{second,third},deep/er/fourth}
refresh
rm "$src/c/back/first"
refresh --keep
sleep 1.1 # marks are of another second
mv "$src/c/back" "$work"
refresh --keep
is 'a directory is kept with all below it' "$(gone | wc -w)" 14
rm "$work/back/deep/third"
mv "$work/back" "$src/c"
for how in --quick --keep; do
	refresh --keep "$how"
	is "what comes back with it loses its mark, $how" "$(gone)" '/c/back/deep/third 1 /c/back/first 1'
done
check_store
rm -r "$src/c/back"
refresh
echo 1 >>"$src/a/other"
echo 2 >>"$src/c/d/other"
ok 'a path alone' primefs refresh "$store" /c
is 'that one is followed' "$(primefs find "$store" /c/d/other -printf %s)" "$(stat -c %s "$src/c/d/other")"
is 'others are not' "$(primefs find "$store" /a/other -printf %s)" 6
fails_with 'a path that is not there' '/nowhere: No such file' primefs refresh "$store" /nowhere
mv "$src" "$work/away"
fails_with 'a folder that is gone' "$src: no longer the folder" primefs refresh "$store"
mkdir "$src"
fails_with 'or another one' "$src: no longer the folder" primefs refresh "$store"
rmdir "$src"
mv "$work/away" "$src"
empty_store "$work/paths.pfs"
fails_with 'a store of paths' 'nothing in it was imported from a folder' primefs refresh "$work/paths.pfs"
if ((EUID == 0)); then
	skip 'root may read everything'
else
	chmod 0 "$src/moved"
	exits 'a directory that cannot be read' 1 primefs refresh "$store"
	chmod 755 "$src/moved"
fi

# ---- listings are read only where something changed ----
sleep 3.1
refresh
is 'no listing is read when nothing changed' "$(primefs refresh --json "$store" | field listed)" 0
touch "$src/c/d/another"
is 'that of a directory that changed is' "$(primefs refresh --json "$store" | tee "$work/json" | field listed)" 1
is 'JSON has each node that changed' "$(tr -d ' \n' <"$work/json" | grep -o '"entries":\[.*\]' | grep -o '{[^}]*another[^}]*}')" \
	'{"what":"added","path":"/c/d/another"}'
mkdir -p "$src/quick/er/lowest"
refresh
sleep 2.1
refresh
ok 'quick, when nothing changed' primefs refresh --quick "$store"
echo x >"$src/quick/er/lowest/file"
mkdir "$src/c/d/below"
mv "$src/quick/er" "$src/c/d/below/er"
lowest=$(prime /quick/er/lowest)
ok 'quick, after changes in directories without others' primefs refresh --quick "$store"
is 'finds what is new and what has moved' "$(primefs find "$store" /c/d/below -printf '%P|')" '|er|er/lowest|er/lowest/file|'
is 'which keeps its prime' "$(prime /c/d/below/er/lowest)" "$lowest"
rm -r "$src/quick" "$src/c/d/below"
sleep 2.1 # or the folder counts as changed
refresh
echo quick >>"$src/c/d/another"
ok 'quick' primefs refresh --quick "$store"
is 'does not look at files' "$(primefs find "$store" /c/d/another -printf %s)" 0

# ---- mounted ----
if has_fuse; then
	mount_store
	ok 'refresh of a mountpoint' primefs refresh "$mnt"
	is 'a new size is seen' "$(stat -c %s "$mnt/c/d/another")" 6
	ls "$mnt/a" >/dev/null
	echo seen >"$src/a/seen"
	mkdir "$src/a/dir"
	mv "$src/c/d" "$src/a/dir/d"
	ok 'and again, by the store' primefs refresh "$store"
	is 'new files are read at once' "$(cat "$mnt/a/seen")" seen
	is 'in moved directories, too' "$(cat "$mnt/a/dir/d/another")" quick
	ok 'nothing is left where it was' test ! -e "$mnt/c/d"
	rm "$src/a/seen"
	primefs refresh "$store" >/dev/null
	ok 'what is gone is not seen' test ! -e "$mnt/a/seen"
	unmount_store
	check_store
else
	skip 'mounted: no FUSE'
fi

# ---- when each part was compared ----
# The times that nodes have, in seconds, as many as they have different ones.
compared() { primefs query --tsv "$store" "SELECT DISTINCT compared / 1000000000 FROM nodes WHERE $1" | tail -n +2 | xargs; }
later() { sleep 1.1; }
newer() { ok "$1" test "$(compared "$2")" -gt "$(compared "$3")"; } # DESCRIPTION NODES OTHERS
rm -rf "$store" "${src:?}"/*
mkdir -p "$src"/{a/b,c/d}
touch "$src"/{a,a/b,c,c/d}/file
before=$(date +%s)
primefs import -q "$src" "$store"
imported=$(compared 1)
ok 'an import says when it began' test "$imported" -ge "$before"
later
primefs refresh -n "$store" >/dev/null
is 'a dry run compares for nobody' "$(compared 1)" "$imported"
primefs refresh "$store" /a/b /c/file >/dev/null
newer 'a directory that was refreshed' "under(ino, '/a/b')" "name = 'a'"
newer 'a file that was refreshed' "path = '/c/file'" "name = 'a'"
is 'with what is beside it' "$(compared "name IN ('c', 'd')")" "$(compared "path = '/c/file'")"
is 'nothing else' "$(compared "NOT under(ino, '/a/b') AND path NOT IN ('/c', '/c/d', '/c/file')")" "$imported"
later
primefs refresh -q "$store" >/dev/null
primefs refresh -q "$store" /c/d/file >/dev/null
newer 'a quick refresh of directories' "type = 'd'" "path = '/a/b/file'"
is 'leaves files' "$(compared "path = '/c/d/file'")" "$imported"
later
primefs refresh "$store" >/dev/null
ok 'everything' test "$(compared 1)" -gt "$imported"
is 'which is one time then' "$(compared 1 | wc -w)" 1
is 'and one that is kept' "$(primefs query --tsv "$store" "SELECT count(*) FROM nodes WHERE compared > '1 hour ago'" | tail -n 1)" \
	"$(primefs query --tsv "$store" 'SELECT count(*) FROM nodes' | tail -n 1)"
refreshed=$(compared 1)
primefs optimize -q "$store" 2>/dev/null || primefs optimize "$store" >/dev/null
is 'optimize keeps it' "$(compared 1)" "$refreshed"
# ---- folders that were added ----
mkdir -p "$work"/{two/x,three/y/z}
touch "$work"/{two,two/x,three,three/y}/{file2,file3}
later
primefs import -q --at=/c/new "$work/two" "$store"
newer 'a folder that is added says when' "under(ino, '/c/new')" "path = '/c'"
later
primefs import -q --at=/c "$work/three" "$store"
newer 'also one that is added to what is there' "under(ino, '/c/y')" "path = '/c/new'"
is 'and nothing that was there' "$(compared "path IN ('/', '/c', '/c/file', '/c/d')")" "$refreshed"
added=$(compared "under(ino, '/c/y')")
is 'all of them are followed' "$(primefs refresh "$store" | sed 's/.*: //; s/ in .*//')" '0 added, 0 removed, 0 moved, 0 changed, 0 kept'
later
touch "$work/three/y/more" "$work/two/x/more" "$src/c/more" "$work/three/top"
is 'each is' "$(primefs refresh --list "$store" | head -n -1 | sort)" "$(printf 'added %s\n' /c/more /c/new/x/more /c/top /c/y/more)"
ok 'each says when' test "$(compared "under(ino, '/c/y') OR under(ino, '/c/new')" | tr ' ' '\n' | sort -n | head -n 1)" -gt "$added"
# ---- lists and archives that were added ----
added=$(compared "under(ino, '/c/y')")
later
primefs import -q --at=/c --format=paths /dev/stdin "$store" <<<$'listed/deep/file\nalone'
newer 'a list that is added says when' "under(ino, '/c/listed')" "path = '/c/y'"
is 'and nothing that was there' "$(compared "under(ino, '/c/y')")" "$added"
for how in none copy; do
	primefs import -q --content=$how "$src" "$work/$how.pfs"
	ok "a folder whose files are not linked does, too: $how" \
		test "$(primefs query --tsv "$work/$how.pfs" 'SELECT coalesce(min(compared), 0) / 1000000000 FROM nodes' | tail -n 1)" -ge "$added"
done
check_store

# ---- a directory takes the name of another ----
# The one becomes the other's node: what has the same name in both need not be the same file.
replace() { mv "$1" "$src/t" && mkdir "$1"; } # DIRECTORY
rm -rf "$store" "${src:?}"/*
mkdir -p "$src"/{within,over,whole}/low/lowest
for name in within over whole; do touch "$src/$name/file" "$src/$name/low/file" "$src/$name/low/lowest/file"; done
sleep 2.1
primefs import "$src" "$store" >/dev/null
replace "$src/within" && mv "$src/t" "$src/within/below" && echo other >"$src/within/file"
replace "$src/over" && mv "$src/t"/* "$src/over/" && rmdir "$src/t"
ln "$src/over/low/file" "$src/link"
ln "$src/over/low/lowest/file" "$src/lowest"
ok 'quick, after directories took the names of others' refresh --quick -l
is 'says of nothing that is there that it is gone' "$(said | grep '^removed' || true)" ''
refresh
follows 'and no file is lost'
replace "$src/whole" && mv "$src/t"/* "$src/whole/" && rmdir "$src/t"
ok 'the same of a whole refresh' refresh -l
is 'nothing is gone' "$(said | grep '^removed' || true)" ''
follows 'the store follows'
mkdir -p "$src/outer/inner" && touch "$src/outer/inner"/{both,goes,stays}
refresh
mv "$src/outer" "$src/elsewhere"
replace "$src/elsewhere/inner" && mv "$src/t" "$src/elsewhere/inner/inner"
rm "$src/elsewhere/inner/inner/goes" && touch "$src/elsewhere/inner/both"
ok 'and of one that lies in a directory that moved' refresh
follows 'the store follows'
mkdir "$src/low" && touch "$src/low/file"
refresh
low=$(prime /low)
mkdir "$src/high" && mv "$src/low" "$src/high/low" && mkdir "$src/low"
ok 'and of one that moved into a new one' refresh
is 'which keeps its prime' "$(prime /high/low)" "$low"
follows 'the store follows'
mkdir "$src/n" "$src/n/n" "$src/n/n/n" && touch "$src/n/n/n/file" && mkdir "$src/n/n/n/n" # which two have the same times
sleep 2.1
refresh
replace "$src/n" && mv "$src/t" "$src/n/n"
ok 'and where each of several takes the name of the next' refresh
follows 'the store follows'
# ---- what is kept, and whose name another file got ----
echo 1 >"$src/first" && ln "$src/first" "$src/second" && echo 2 >"$src/third"
refresh
mv -f "$src/third" "$src/first"
ok 'keep a file whose name another one got' refresh --keep
is 'both are there' "$(primefs find "$store" / -maxdepth 1 -name 'first*' | wc -l)" 2
mv -f "$src/second" "$src/first"
ok 'and its other name comes there' refresh --keep
ok 'without keep' refresh -l
is 'nothing counts as renamed' "$(said | grep '^kept' || true)" ''
follows 'what is gone goes'
mkdir "$src/moves" && touch "$src/moves/goes" "$src/moves/stays"
refresh
mv "$src/moves" "$src/moved" && rm "$src/moved/goes"
refresh --keep
ok 'what went from a directory that moved goes, too' refresh
follows 'and the directory has the times of the source'
mkdir -p "$src/way/low/goes" "$src/way/comes" && touch "$src/way/low/goes/file" "$src/way/comes/file"
refresh
rm -r "$src/way/low/goes" && mv "$src/way/comes/file" "$src/way/low/was" && mv "$src/way" "$src/ways"
echo >"$src/way" && rm "$src/ways/low/was"
refresh --keep
ok 'what went from below one that moved goes, where a file is what that was' refresh
follows 'and all else is as in the source'
mkdir "$src/one" && echo 1 >"$src/one/file"
refresh
rm "$src/one/file" && mv "$src/one" "$src/two" && mkdir "$src/one" && echo 2 >"$src/one/file"
refresh --keep
echo 3 >"$src/another" && mv "$src/another" "$src/one/file"
ok 'and does not take over what comes to where it was' refresh
follows 'the store follows'
mkdir -p "$src/left/moves" && touch "$src/left/goes"
refresh
mv "$src/left/moves" "$src/moves" && rm -r "$src/left" && echo x >"$src/left"
ok 'keep a directory that something moved out of, and whose name a file got' refresh --keep
is 'the file is there' "$(primefs find "$store" /left -printf '%y')" f
ok 'and so is what it had' test -n "$(primefs find "$store" / -path '/left~*/goes')"
ok 'all at once' refresh -l --keep
is 'with nothing left to do' "$(said)" ''
refresh
follows 'without keep it goes'
touch "$src/first" && refresh
twice=$(prime /first)
rm "$src/first" && mkdir "$src/first" && refresh --keep
echo 2 >"$src/first~$twice" && refresh --keep
ok 'a kept node that gave its name up twice' refresh -l --keep
is 'was not renamed in the store' "$(said)" ''
refresh
follows 'and goes without keep'

# ---- random changes ----
ROUNDS_TIME=900 # seconds, after which no other round begins: 10,000 take half an hour at least
rm -rf "$store" "${src:?}"/*
for i in 1 2 3; do mkdir -p "$src/$i/$i" && echo "$i" >"$src/$i/file"; done
RANDOM=${SEED:=$((RANDOM))}
echo "seed $SEED"
change() {
	local entry dir file other all=() dirs=() files=()
	mapfile -t all < <(find "$src" -mindepth 1 -printf '%y%p\n') # once: processes are what takes the time
	for entry in "${all[@]}"; do
		case $entry in
		d*) dirs+=("${entry#?}") ;;
		f*) files+=("${entry#?}") ;;
		esac
	done
	if ((!${#dirs[@]} || !${#files[@]})); then # there is always something of each type
		rm -rf "$src/always" && mkdir "$src/always" && echo x >"$src/always/file"
		return
	fi
	dir=${dirs[RANDOM % ${#dirs[@]}]} file=${files[RANDOM % ${#files[@]}]}
	other=${all[RANDOM % ${#all[@]}]#?}
	case $((RANDOM % 17)) in
	0) echo "$RANDOM" >"$dir/n$RANDOM" ;;
	1) mkdir "$dir/d$RANDOM" && echo x >"$dir/y$RANDOM" ;;
	2) echo more >>"$file" ;;
	3) mv "$file" "$dir/m$RANDOM" ;;
	4) mv "$other" "$dir/m$RANDOM" ;;
	5) mv -f "$file" "${files[RANDOM % ${#files[@]}]}" ;;
	6) chmod $((600 + RANDOM % 8)) "$file" ;;
	7) chmod 7$((RANDOM % 8))$((RANDOM % 8)) "$dir" ;;
	8) touch -d '2001-02-03 04:05:06' "$other" ;;
	9) ln "$file" "$dir/l$RANDOM" ;;
	10) ln -s "$RANDOM" "$dir/s$RANDOM" ;;
	11) rm -rf "$other" ;;
	12) cp "$file" "$src/tmp" && mv -f "$src/tmp" "$file" ;;
	13) mv "$other" "$src/t" && mv "$file" "$other" && mv "$src/t" "$file" ;;
	14) replace "$dir" && mv "$src/t" "$dir/${dir##*/}" ;;
	15) replace "$dir" && mv "$src/t" "$src/r$RANDOM" ;;
	16) replace "$dir" && mv "$src/t"/* "$dir/" && rm -r "$src/t" ;;
	esac
}
changes() { # AT_MOST
	local i
	for ((i = RANDOM % $1; i >= 0; i--)); do change 2>/dev/null || true; done
}
# Another refresh than the one after which all is compared.
refresh_some() {
	local dirs=()
	case $((RANDOM % 6)) in
	0) refresh --quick ;;
	1) refresh --keep ;;
	2)
		mapfile -t dirs < <(cd "$src" && find . -type d -printf '/%P\n')
		primefs refresh "$store" "${dirs[RANDOM % ${#dirs[@]}]}" >"$work/said" 2>&1 || true # the store may not have it
		;;
	*) return 0 ;;
	esac
	changes 4
}
primefs import "$src" "$store" >/dev/null
rounds=$((PFS_LONG ? 10000 : 25)) bad=0 began=$SECONDS
: >"$work/again"
for ((round = 0; round < rounds && SECONDS - began < ROUNDS_TIME && !bad; round++)); do
	bad=1 # until the round is over: an error in arithmetic ends the loop, and the script goes on behind it
	changes 12
	refresh_some
	if refresh && [[ $(listing store_is) == "$(listing source_is)" ]] && primefs refresh -l "$store" >"$work/again" &&
		grep -q ': 0 added, 0 removed, 0 moved, 0 changed, 0 kept' "$work/again"; then
		bad=0
	else
		cat "$work/said" "$work/again"
		diff <(listing store_is) <(listing source_is) || true
	fi
done
echo "$round rounds of random changes"
is 'the store is the source after each of many random changes, with nothing kept or left to do' "$bad" 0
check_store
