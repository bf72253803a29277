#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# refresh: what the store has moved is not lost, whatever moves in the source, and is followed.
# timeout: 300
. "$(dirname "$0")/../lib.sh"

src=$work/src
refresh() { # OPTION... [PATH...]
	local options=()
	while [[ ${1-} == -* ]]; do options+=("$1") && shift; done
	primefs refresh -l "${options[@]}" "$store" "$@" >"$work/said" 2>&1
}
said() { sed '$d' "$work/said" | sort; }
summary() { tail -n 1 "$work/said" | sed 's/.*pfs: //; s/ in .*//'; }
move() { primefs query "$store" "UPDATE nodes SET path = '$2' WHERE path = '$1'" >/dev/null; }
make() { primefs query "$store" "INSERT INTO nodes (path, type) VALUES ('$1', '${2:-f}')" >/dev/null; }
drop() { primefs query "$store" "DELETE FROM nodes WHERE path = '$1'" >/dev/null; }
nodes() { primefs find "$store" / -mindepth 1 | sort | xargs; }
inos() { # PATHS...
	local paths
	read -ra paths <<<"$*"
	primefs find "$store" "${paths[@]}" -printf '%p:%i\n' | sort -u
}
size() { primefs find "$store" "$1" -printf %s; }
fill() {
	local name
	rm -rf "$store"* "$src"
	mkdir -p "$src"/{x/y/z,w,v}
	for name in x/f x/g x/y/h x/y/z/i w/j top; do echo "$name" >"$src/$name"; done
	touch -d '2020-02-02' "$src"/{x/{f,g,y/{h,z/i,z},y},x,w/j,w,v,top}
	primefs import -q "$src" "$store"
}

# follows NAME NODES KEPT: the store's part is `store_moves`, the source's `source_moves`; every refresh leaves the
# nodes KEPT where they are, and one that looks at what moved makes all of NODES.
follows() {
	local name=$1 there=$2 kept before way first
	read -ra kept <<<"$3"
	for way in '' --quick /x2 '/w /x2' '/w' "${kept[0]}" '--quick /x2'; do
		fill
		store_moves
		before=$(inos "${kept[@]}")
		source_moves
		# shellcheck disable=SC2086
		refresh -n $way || true
		first=$(said)
		# shellcheck disable=SC2086
		refresh $way || true
		is "$name: refresh $way does what its dry run has said" "$(said)" "$first"
		is "$name: refresh $way loses nothing" "$(inos "${kept[@]}" 2>&1)" "$before"
		[[ $way == *x2* || ${way-} != */* ]] && is "$name: refresh $way follows" "$(nodes)" "$there"
		ok "$name: then one of everything" refresh
		is "$name: follows after $way" "$(nodes)" "$there"
		is "$name: and loses nothing after $way" "$(inos "${kept[@]}" 2>&1)" "$before"
		ok "$name: the next one" refresh
		is "$name: has nothing to do after $way" "$(said | grep -v ^kept)/$(summary | sed 's/, [0-9]* kept//')" \
			'/0 added, 0 removed, 0 moved, 0 changed'
		is "$name: and leaves all as it is after $way" "$(nodes)" "$there"
		# what it is the node of is known: it follows
		echo more >>"$src/$followed"
		ok "$name: a file changes" refresh
		is "$name: which is followed after $way" "$(size "${kept[0]}")" "$(stat -c %s "$src/$followed")"
	done
}
source_moves() { mv "$src/x" "$src/x2"; }

followed=x2/f
store_moves() { move /x/f /w/f; }
follows 'a file' '/top /v /w /w/f /w/j /x2 /x2/g /x2/y /x2/y/h /x2/y/z /x2/y/z/i' /w/f
store_moves() { move /x/f /w/f && make /x/f; }
follows 'something else by the old name' '/top /v /w /w/f /w/j /x2 /x2/f /x2/g /x2/y /x2/y/h /x2/y/z /x2/y/z/i' '/w/f'
store_moves() { move /x/f /w/f && move /x/g /x/f; }
follows 'another one by the old name' '/top /v /w /w/f /w/j /x2 /x2/f /x2/y /x2/y/h /x2/y/z /x2/y/z/i' '/w/f'
store_moves() { make /w/n d && move /x/f /w/n/f && move /w/n/f /v/f2 && drop /w/n; }
follows 'twice' '/top /v /v/f2 /w /w/j /x2 /x2/g /x2/y /x2/y/h /x2/y/z /x2/y/z/i' /v/f2
store_moves() { make /n d && make /n/m d && move /x/f /n/m/f; }
follows 'to what the store has made' '/n /n/m /n/m/f /top /v /w /w/j /x2 /x2/g /x2/y /x2/y/h /x2/y/z /x2/y/z/i' /n/m/f
followed=x2/y/h
store_moves() { move /x/y/h /v/h && make /x/y/h; }
follows 'from further below' '/top /v /v/h /w /w/j /x2 /x2/f /x2/g /x2/y /x2/y/h /x2/y/z /x2/y/z/i' /v/h
followed=x2/y/z/i
store_moves() { move /x/y /w/y && move /w/y/z /v/z && move /v/z/i /i; }
follows 'one after the other' '/i /top /v /v/z /w /w/j /w/y /w/y/h /x2 /x2/f /x2/g' '/i /v/z /w/y /w/y/h'
store_moves() { move /x/y /w/y && move /w/y/z/i /v/i && make /w/y/z/i; }
follows 'out of what was moved' '/top /v /v/i /w /w/j /w/y /w/y/h /w/y/z /w/y/z/i /x2 /x2/f /x2/g' '/v/i /w/y /w/y/h /w/y/z/i'

# ---- more that moves in the source ----
followed=x2/f
store_moves() { move /x/f /w/f; }
source_moves() { mv "$src/x" "$src/x2" && rm -r "$src/w"; }
follows 'to a directory that goes' '/top /v /w /w/f /x2 /x2/g /x2/y /x2/y/h /x2/y/z /x2/y/z/i' /w/f
source_moves() { mv "$src/x" "$src/x2" && mkdir "$src/x" && echo new >"$src/x/f"; }
follows 'and another one takes the name' '/top /v /w /w/f /w/j /x /x/f /x2 /x2/g /x2/y /x2/y/h /x2/y/z /x2/y/z/i' /w/f
source_moves() { mv "$src/x" "$src/t" && mv "$src/v" "$src/x" && mv "$src/t" "$src/x/x" && mv "$src/x" "$src/x2"; }
followed=x2/x/f
follows 'into another one that moves' '/top /w /w/f /w/j /x2 /x2/x /x2/x/g /x2/x/y /x2/x/y/h /x2/x/y/z /x2/x/y/z/i' /w/f
source_moves() { mv "$src/x/y" "$src/v/y2" && mv "$src/x" "$src/x2" && mv "$src/v" "$src/x2/v"; }
followed=x2/v/y2/h
store_moves() { move /x/y/h /w/h; }
follows 'out of one that moves out of another' '/top /w /w/h /w/j /x2 /x2/f /x2/g /x2/v /x2/v/y2 /x2/v/y2/z /x2/v/y2/z/i' /w/h
source_moves() { mv "$src/x" "$src/x2" && ln -s x2 "$src/x"; }
followed=x2/f
store_moves() { move /x/f /w/f; }
follows 'and a symlink takes the name' '/top /v /w /w/f /w/j /x /x2 /x2/g /x2/y /x2/y/h /x2/y/z /x2/y/z/i' /w/f
source_moves() { mv "$src/x" "$src/t" && mv "$src/v" "$src/x" && mv "$src/t" "$src/v" && mv "$src/v" "$src/x2"; }
follows 'and another one is moved to the name' '/top /w /w/f /w/j /x /x2 /x2/g /x2/y /x2/y/h /x2/y/z /x2/y/z/i' /w/f

# ---- the source moves it, too ----
# same NAME NODES KEPT: to where the store has moved it.
same() {
	local before
	fill
	store_moves
	before=$(inos "$3")
	source_moves
	ok "$1: to where the store has moved it" refresh "${@:4}"
	is "$1: is where it is" "$(inos "$3")" "$before"
	is "$1: with all below it" "$(nodes)" "$2"
	for file in $(cd "$src" && find . -type f -printf '/%P\n'); do
		echo more >>"$src$file"
	done
	ok "$1: files change" refresh
	is "$1: and are followed" "$(said | xargs)" 'changed /top changed /w/f changed /w/j changed /w/y/h changed /w/y/z/i changed /x/g'
}
store_moves() { move /x/f /w/f && move /x/y /w/y; }
source_moves() { mv "$src/x/f" "$src/w/f" && mv "$src/x/y" "$src/w/y"; }
same 'a file and a directory' '/top /v /w /w/f /w/j /w/y /w/y/h /w/y/z /w/y/z/i /x /x/g' '/w/f /w/y /w/y/h /w/y/z/i'
for way in --quick /w /x '--quick /w' '--quick /x'; do
	# shellcheck disable=SC2086
	same "a file and a directory, $way" '/top /v /w /w/f /w/j /w/y /w/y/h /w/y/z /w/y/z/i /x /x/g' '/w/f /w/y /w/y/h /w/y/z/i' $way
done
# again NAME OPTION...: once that is known, the store moves it on.
again() {
	local before
	fill
	store_moves
	before=$(inos "$moved" | cut -d: -f2)
	source_moves
	ok "$1: to where the store has moved it" refresh "${@:2}"
	move "$moved" /v/on
	ok "$1: the store moves it on" refresh
	is "$1: nothing is lost" "$(inos /v/on | cut -d: -f2)/$(said | grep -v ^kept)" "$before/"
}
moved=/w/f
store_moves() { move /x/f /w/f; }
source_moves() { mv "$src/x/f" "$src/w/f"; }
for way in --quick '--quick /w'; do
	# shellcheck disable=SC2086
	again "a file, $way" $way
done
moved=/x/n
store_moves() { move /x/f /x/n; }
source_moves() { mv "$src/x/f" "$src/x/n"; }
again 'a name, --quick' --quick
moved=/w/h
store_moves() { move /x/y/h /w/h; }
source_moves() { mv "$src/x/y/h" "$src/w/h" && rm -r "$src/x/y"; }
again 'out of a directory that is gone since, --quick' --quick
fill
move /x/f /x/n
before=$(inos /x/n /w/j)
mv "$src/w/j" "$src/x/n"
ok 'another one comes to the name that the store has given it, --quick' refresh --quick
is 'both stay what they are' "$(inos /x/n /w/j)/$(nodes)" "$before//top /v /w /w/j /x /x/g /x/n /x/y /x/y/h /x/y/z /x/y/z/i"

# ---- another one comes to where the store has moved it ----
fill
move /x/f /w/f && move /x/y /w/y && move /x/g /w/g
before=$(inos /w/f /w/y /w/y/h /w/y/z/i /w/g)
mkdir -p "$src"/w/{y/z,g} && echo other >"$src/w/f" && echo other >"$src/w/y/h" && echo other >"$src/w/g/g"
ok 'others by the names that nodes have got' refresh
is 'do not take their places' "$(inos /w/f /w/y /w/y/h /w/y/z/i /w/g)" "$before"
is 'nor change anything' "$(nodes)" '/top /v /w /w/f /w/g /w/j /w/y /w/y/h /w/y/z /w/y/z/i /x'
ok 'once more' refresh
is 'neither' "$(inos /w/f /w/y /w/y/h /w/y/z/i /w/g)/$(summary | sed 's/, [0-9]* kept//')" "$before/0 added, 0 removed, 0 moved, 0 changed"

# appears NAME KIND ORIGINAL: something else comes to where the store has moved the original, which goes then, at once
# or later; it is added, and the node removed.
appears() {
	local to=/w/${3##*/} added way later
	for way in '' --quick /x; do for later in 0 1; do
		fill
		move "/$3" "$to"
		before=$(inos "$to")
		"$2" "$src$to"
		((!later)) || ok "$1 comes to where the store has moved it" refresh
		((!later)) || is "$1 does not change it" "$(said | grep -v ^kept)/$(inos "$to")" "/$before"
		rm -r "${src:?}/$3"
		# shellcheck disable=SC2086
		ok "$1 is there, the original is not ($later), refresh $way" refresh $way
		added=$(cd "$src" && find ".$to" | sed 's/^\./added /' | sort | xargs)
		is "$1 is added ($later) by refresh $way" "$(said | grep ^added | xargs)" "$added"
		is "$1 takes the name ($later), $way" "$(said | grep ^removed | head -n 1)" "removed $to"
		is "$1 is all there ($later), $way" "$(nodes)" "$(cd "$src" && find . -mindepth 1 -printf '/%P\n' | sort | xargs)"
		ok "$1: once more ($later), $way" refresh
		is "$1: nothing is left ($later), $way" "$(said)" ''
	done; done
}
a_file() { echo other >"$1"; }
a_directory() { mkdir "$1" && echo other >"$1/h"; }
appears 'a file' a_file x/f
appears 'a directory' a_directory x/f
appears 'another directory' a_directory x/y
appears 'a file by the name of a directory' a_file x/y
for way in '' --quick '/x /v'; do
	fill
	move /x/f /w/f
	before=$(inos /w/f | cut -d: -f2)
	a_file "$src/w/f"
	ok "another file comes to where the store has moved one, $way" refresh
	mv "$src/x/f" "$src/v/n"
	# shellcheck disable=SC2086
	ok "the original is moved, refresh $way" refresh $way
	is "which its node follows, and the other one is added, $way" "$(said)/$(inos /v/n | cut -d: -f2)" "added /w/f
moved /v/n <- /w/f/$before"
	ok "once more, $way" refresh
	is "nor is anything left to do, $way" "$(said)" ''
done
fill
move /x/f /w/f
before=$(inos /w/f /w/j)
mv "$src/w/j" "$src/w/f"
ok 'a file gets the name that the store has given to another one' refresh
is 'its node stays, and so does the other one' "$(inos /w/f /w/j)" "$before"
ok 'once more' refresh
is 'nor is there more to do' "$(said | grep -v ^kept)/$(inos /w/f /w/j)" "/$before"

# ---- what changes in the source ----
fill
move /x/f /w/f && move /x/g /w/g && move /x/y /w/y
if has_fuse; then
	mount_store
	echo mine >>"$mnt/w/g"
	unmount_store
	echo more and more >>"$src/x/g"
else
	skip 'content: no /dev/fuse'
fi
mine=$(size /w/g)
echo more >>"$src/x/f" && chmod 600 "$src/x/y/h" && touch -d '2021-01-01' "$src/x/f"
ok 'files that the store has moved change' refresh
is 'which is said' "$(said | grep '^changed' | xargs)" 'changed /w/f changed /w/y/h'
is 'they have their size and time' "$(primefs find "$store" /w/f -printf '%s %T@')" "$(stat -c '%s %.9Y0' "$src/x/f")"
is 'and mode' "$(primefs find "$store" /w/y/h -printf %m)" 600
is 'what the store has written stays' "$(size /w/g)" "$mine"
ok 'once more' refresh
is 'nothing has changed' "$(summary | sed 's/, [0-9]* kept//')" '0 added, 0 removed, 0 moved, 0 changed'
if has_fuse; then
	mount_store
	is 'what is read is theirs' "$(cat "$mnt/w/f" "$mnt/w/y/h")" "$(cat "$src/x/f" "$src/x/y/h")"
	unmount_store
fi
# ---- what the store has removed ----
fill
for name in a b c; do echo "$name" >"$src/v/$name"; done
sleep 0.1 && echo more >>"$src/v/a" # later than the directory's own change
sleep 3.1 && rm "$store" && primefs import -q "$src" "$store"
drop /v/a && drop /v/b
echo new >"$src/v/n" && echo old >"$src/v/o" && touch -d '2001-01-01' "$src/v/o" && mv "$src/w/j" "$src/v/j"
ok 'something comes beside what the store has removed' refresh
is 'which stays away, also if it was changed before the import' "$(said)" 'added /v/n
added /v/o
kept /v/a: removed in the store
kept /v/b: removed in the store
moved /v/j <- /w/j'
sleep 0.1 && echo more >>"$src/v/n"
sleep 3.1
ok 'a file that has come is changed' refresh
drop /v/n
echo more >>"$src/v/b" && echo new >"$src/v/p"
ok 'the store removes it' refresh
is 'it stays away; what has changed since comes back' "$(said)" 'added /v/b
added /v/p
kept /v/a: removed in the store
kept /v/n: removed in the store'

# ---- both have changed a directory in the same tick ----
fill
sleep 3.1 && rm "$store" && primefs import -q "$src" "$store"
move /x/f /w/f
before=$(inos /w/f)
mv "$src/x/g" "$src/v/g" && touch -d "@$(primefs find "$store" /x -maxdepth 0 -printf %T@)" "$src/x"
ok 'both have changed a directory' refresh
sleep 3.1 && mv "$src/x/f" "$src/x/n"
ok 'the source changes it again' refresh --quick
is 'and what the store has moved follows' "$(inos /x/n | cut -d: -f2)/$(nodes)" \
	"${before#*:}//top /v /v/g /w /w/j /x /x/n /x/y /x/y/h /x/y/z /x/y/z/i"

# ---- what the store has renamed ----
for what in f d; do
	fill
	move /x/f /x/f2 && make /x/f $what && move /x/y /x/y2 && make /x/y
	before=$(inos /x/f2 /x/y2 /x/y2/h)
	echo new >"$src/x/new" # so that the listing is read
	ok 'a name that the store has given to something else' refresh
	is 'takes no node away' "$(inos /x/f2 /x/y2 /x/y2/h)" "$before"
	echo more >>"$src/x/f" && echo more >>"$src/x/y/h" && echo new >"$src/x/new2"
	ok 'originals change' refresh
	is 'which is followed' "$(said | grep -v ^kept | xargs)" 'added /x/new2 changed /x/f2 changed /x/y2/h'
done

# ---- another file takes the place of the original ----
has_size() { [[ $(stat -c %s "$1") == "$2" ]]; }
save() { echo saved >"$src/t" && mv "$src/t" "$src/$1"; } # as editors do
for way in '' --quick /w /w/f /x; do
	fill
	move /x/f /w/f
	before=$(inos /w/f)
	save x/f
	# shellcheck disable=SC2086
	ok "an original is saved anew, refresh $way" refresh $way
	is "its node is changed by refresh $way" "$(said | xargs)" 'changed /w/f kept /w/f <- x/f: moved in the store'
	ok "refresh after $way" refresh
	is "leaves it after $way" "$(said | grep -v ^kept)/$(inos /w/f)/$(nodes)" "/$before//top /v /w /w/f /w/j /x /x/g /x/y /x/y/h /x/y/z /x/y/z/i"
	is "with the size of the new one after $way" "$(size /w/f)" 6
done
for to in x/n v/n; do
	for way in '' --quick '/x /v'; do
		fill
		move /x/f /w/f
		before=$(inos /w/f | cut -d: -f2)
		mv "$src/x/f" "$src/$to"
		# shellcheck disable=SC2086
		ok "an original gets the name $to, refresh $way" refresh $way
		is "its node follows to $to, refresh $way" "$(said)" "moved /$to <- /w/f"
		ok "refresh after $way, $to" refresh
		is "$to stays what it is after $way" "$(inos "/$to" | cut -d: -f2)/$(said)" "$before/"
	done
done
fill
move /x/f /w/f && make /x/f
before=$(inos /w/f /x/f)
save x/f
ok 'an original is saved anew by whose name the store has something else' refresh
is 'and its node is changed' "$(said | grep -v ^kept)/$(inos /w/f /x/f)" "changed /w/f/$before"
fill
move /x/f /w/f
before=$(inos /x/g | cut -d: -f2)
mv "$src/x/g" "$src/x/f"
ok 'an original goes, since another one has its name' refresh
is 'and so does its node' "$(said | grep -v ^kept | xargs)/$(inos /x/f | cut -d: -f2)" "moved /x/f <- /x/g removed /w/f/$before"
fill
move /x/f /w/f && move /x/g /x/f
before=$(inos /x/f)
mv "$src/x/g" "$src/x/f"
ok 'and if the store has given it that name, too' refresh
is 'it keeps it' "$(said | grep -v ^kept | xargs)/$(inos /x/f)" "removed /w/f/$before"

# ---- into one another ----
fill
move /v /x/y/v
before=$(inos /x /x/y/v)
mv "$src/x" "$src/v/x"
ok 'a directory comes to one that the store has moved below it' refresh
is 'which stays, and so does the other one' "$(inos /x /x/y/v)" "$before"
is 'which is said' "$(said | xargs)" 'kept /x <- v/x: moved in the store kept /x/y/v <- v: moved in the store'
echo more >>"$src/v/x/f"
ok 'something changes' refresh
is 'and is followed' "$(said | grep -v ^kept)" 'changed /x/f'

# ---- a directory that goes, with something that does not ----
fill
make /x/y/z/own && move /w/j /x/j
rm -r "$src/x"
ok 'a directory goes in which the store has something' refresh
is 'of which the rest goes' "$(said)" 'kept /x/j <- w/j: moved in the store
kept /x: something in it is not gone
removed /x/f
removed /x/g
removed /x/y/h
removed /x/y/z/i'
is 'the directories stay' "$(nodes)" '/top /v /w /x /x/j /x/y /x/y/z /x/y/z/own'
ok 'once more' refresh
is 'they are not said to go' "$(said | xargs)/$(nodes)" \
	'kept /x/j <- w/j: moved in the store kept /x: something in it is not gone//top /v /w /x /x/j /x/y /x/y/z /x/y/z/own'

# ---- what cannot be read ----
# unread NAME NODES KEPT CLOSED: nothing is lost by a refresh that may not read CLOSED.
unread() {
	local before
	fill
	store_moves
	before=$(inos "$3")
	source_moves
	chmod 0 "$src/$4"
	exits "$1: $4 cannot be read" 1 refresh
	exits "$1: once more" 1 refresh
	is "$1: nothing is lost" "$(inos "$3")" "$before"
	chmod 755 "$src/$4"
	ok "$1: it can be read again" refresh
	is "$1: nor then" "$(inos "$3")" "$before"
	is "$1: all is followed" "$(nodes)" "$2"
	ok "$1: the next one" refresh
	is "$1: has nothing to do" "$(said | grep -v ^kept)" ''
}
if ((EUID == 0)); then
	skip 'root may read everything'
else
	source_moves() { mv "$src/x" "$src/x2"; }
	store_moves() { move /x/f /w/f && move /x/y /w/y && move /w/y/h /v/h; }
	all='/top /v /v/h /w /w/f /w/j /w/y /w/y/z /w/y/z/i /x2 /x2/g'
	moved='/w/f /w/y /w/y/z /w/y/z/i /v/h'
	for closed in w v x2 x2/y x2/y/z; do unread 'all that was moved' "$all" "$moved" "$closed"; done
	store_moves() { move /x/y/h /v/h && move /x/y/z /w/z; }
	all='/top /v /v/h /w /w/j /w/z /w/z/i /x2 /x2/f /x2/g /x2/y'
	for closed in w v x2 x2/y; do unread 'out of what lies in it' "$all" '/v/h /w/z /w/z/i' "$closed"; done
fi

# ---- watched ----
if has_fuse; then
	fill
	mount_store -o watch
	mv "$mnt/x/f" "$mnt/w/f" && mv "$mnt/x/y" "$mnt/w/y" && mv "$mnt/w/y/h" "$mnt/v/h"
	before=$(stat -c %i "$mnt/w/f" "$mnt/w/y" "$mnt/w/y/z/i" "$mnt/v/h")
	mv "$src/x" "$src/x2"
	ok 'a directory moves that is watched' wait_for 30 test -e "$mnt/x2/g"
	is 'nothing is lost' "$(stat -c %i "$mnt/w/f" "$mnt/w/y" "$mnt/w/y/z/i" "$mnt/v/h")" "$before"
	is 'nor comes twice' "$(ls "$mnt/x2")" g
	is 'all is read' "$(cat "$mnt/w/f" "$mnt/w/y/z/i" "$mnt/v/h" | xargs)" 'x/f x/y/z/i x/y/h'
	touch "$src/w/new"
	ok 'something comes where they are' wait_for 30 test -e "$mnt/w/new"
	is 'and takes nothing away' "$(stat -c %i "$mnt/w/f" "$mnt/w/y" "$mnt/w/y/z/i" "$mnt/v/h")" "$before"
	unmount_store
	fill
	mount_store -o watch
	mv "$mnt/x/f" "$mnt/w/f" && mv "$mnt/x/g" "$mnt/w/g"
	before=$(stat -c %i "$mnt/w/f" "$mnt/w/g")
	mv "$src/x/f" "$src/x/n" && save x/g
	ok 'originals in a directory that is watched get other names, and are saved' wait_for 30 test -e "$mnt/x/n"
	ok 'and what is saved has its size' wait_for 30 has_size "$mnt/w/g" 6
	is 'their nodes follow' "$(stat -c %i "$mnt/x/n" "$mnt/w/g")" "$before"
	is 'and come once' "$(cd "$mnt" && echo x/[fgn] w/[fgn])" 'x/n w/g'
	unmount_store
	fill
	mount_store -o watch
	mv "$mnt/x/f" "$mnt/w/f"
	echo other >"$src/w/f" && echo new >"$src/w/new"
	ok 'something comes to where the store has moved one, which is watched' wait_for 30 test -e "$mnt/w/new"
	rm "$src/x/f"
	ok 'the original goes, and it is added' wait_for 30 grep -qs other "$mnt/w/f"
	unmount_store
else
	skip 'watched: no /dev/fuse'
fi

# ---- what goes ----
rm -r "$store"* "$src"
fill
move /x/f /w/f
rm "$src/x/f"
ok 'one goes' refresh
is 'with it the node' "$(said | grep '^removed')" 'removed /w/f'
check_store
