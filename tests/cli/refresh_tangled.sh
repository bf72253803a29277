#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# refresh: store and source both have moved directories, so that some cannot be where the source has them.
. "$(dirname "$0")/../lib.sh"

src=$work/src
refresh() { timeout 20 primefs refresh -l "$@" "$store" >"$work/said" 2>&1; }
said() { sed '$d' "$work/said" | sort | xargs; }
done_by_it() { sed '$d' "$work/said" | grep -v ^kept | sort | xargs; }
move() { primefs query "$store" "UPDATE nodes SET path = '$2' WHERE path = '$1'" >/dev/null; }
nodes() { primefs find "$store" / -mindepth 1 | sort | xargs; }
inos() { # PATHS...: in this order
	local path
	for path; do primefs find "$store" "$path" -maxdepth 0 -printf '%i '; done
}

# begin DIR...: a store of directories with a file each, of the last name.
begin() {
	local dir
	rm -rf "$store"* "$src"
	mkdir "$src"
	for dir; do mkdir "$src/$dir" && echo "$dir" >"$src/$dir/${dir#*/}"; done
	find "$src" -exec touch -d 2020-02-02 {} +
	primefs import -q "$src" "$store"
}

# settled: nothing is left to do, and all is followed.
settled() {
	local what=$1 file before
	before=$(nodes)
	ok "$what: once more" refresh
	is "$what: nothing is left to do" "$(done_by_it)" ''
	is "$what: all is as it was" "$(nodes)" "$before"
	for file in "${@:2}"; do echo more >>"$src/$file"; done
	ok "$what: files change" refresh
	is "$what: which is followed" "$(done_by_it | wc -w)" $((2 * ($# - 1)))
	check_store
}

# ---- others would come to lie in themselves ----
begin c k m
move /k /m/k
before=$(inos /c /c/c /m/k /m/k/k /m /m/m)
mv "$src/c" "$src/k/c" && mv "$src/m" "$src/k/m"
ok 'one comes to two of which each would come below the other' refresh
is 'it comes to where they are' "$(nodes)" '/m /m/k /m/k/c /m/k/c/c /m/k/k /m/m'
is 'and all are what they were' "$(inos /m/k/c /m/k/c/c /m/k /m/k/k /m /m/m)" "$before"
settled 'two' k/c/c k/k k/m/m

# ---- names that do not get free ----
# keeps NAME NODES: each that comes by the name of one that stays stays, too.
keeps() {
	local before
	move /k /m/k
	before=$(nodes)
	mv "$src/m" "$src/k/m"
	source_moves
	ok "$1" refresh
	is "$1: all are where they were" "$(nodes)" "$before"
	is "$1: which is said" "$(done_by_it)" ''
}
source_moves() { mv "$src/n" "$src/m"; }
begin k m n
keeps 'one comes by the name of one that stays'
settled 'one' k/m/m k/k m/n
source_moves() { mv "$src/b" "$src/m" && mv "$src/o" "$src/b" && mv "$src/a" "$src/o"; }
begin a b k m o
keeps 'one comes by the name of another one that would'
settled 'another' k/m/m k/k m/b b/o o/a
source_moves() { mv "$src/y/x" "$src/m" && mv "$src/y" "$src/m/y"; }
begin k m y y/x
keeps 'one comes to what it would have left'
settled 'left' k/m/m k/k m/x m/y/y
source_moves() {
	mkdir -p "$src/m/d" && touch "$src/m/"{h,d/h} && mv "$src/b/b" "$src/m/d/b"
	mv "$src/n" "$src/m" && mv "$src/o" "$src/n"
}
begin b k m n o
keeps 'a new one comes by the name of one that stays'
settled 'a new one' k/m/m k/k m/d/b m/n/n n/o

# ---- what came with a directory that the store has moved to one that goes ----
# stays_below NAME NODES OPTION...: of that only the directory counts as moved in the store, not what lies in it.
stays_below() {
	local before file
	begin d0 d3 d5
	for file in f g; do echo "$file" >"$src/d3/$file"; done
	ok "$1: more comes" refresh
	move /d3 /d0/s && move /d5/d5 /d0/s/own
	sleep 2.1
	ok "$1: by now times tell of changes" refresh
	before=$(inos /d0/s /d0/s/f /d0/s/g /d0/s/own)
	echo new >"$src/t" && mv "$src/t" "$src/d3/f"
	source_moves
	ok "$1" refresh "${@:3}"
	is "$1: is told once" "$(said | grep -o 'kept [^ ]* <-' | xargs)" 'kept /d0/s <- kept /d0/s/own <-'
	ok "$1: then one of everything" refresh
	# shellcheck disable=SC2086
	is "$1: has all" "$(nodes)" "$(printf "/%s\n" $2 | sort | xargs)"
	# shellcheck disable=SC2046
	is "$1: and they are what they were" "$(inos $(printf "/${2%% *}/s%s " '' /f /g /own))" "$before"
	settled "$1" d3/f d3/g d5/d5
}
for option in --quick --list; do
	source_moves() { mv "$src/d0" "$src/z"; }
	stays_below "moves, $option" 'z z/d0 z/s z/s/d3 z/s/f z/s/g z/s/own d5' $option
	source_moves() { rm -r "$src/d0"; }
	stays_below "goes, $option" 'd0 d0/s d0/s/d3 d0/s/f d0/s/g d0/s/own d5' $option
done

# ---- what comes to a directory by whose name the store has another one ----
for option in --quick --list; do
	begin a b k
	move /a /b/n
	before=$(inos /b/n /b/n/a /k /k/k /b/b)
	mkdir "$src/b/n" && mv "$src/k" "$src/b/n/k" && mv "$src/b/b" "$src/b/n/b"
	ok "some come to a directory by whose name the store has another one, $option" refresh $option
	is "they stay where they are, $option" "$(inos /b/n /b/n/a /k /k/k /b/b)/$(nodes)" "$before//b /b/b /b/n /b/n/a /k /k/k"
	settled "to another, $option" a/a b/n/b b/n/k/k
done

# ---- what lies in a directory that is gone ----
begin v w x x/y
move /w/w /x/y/w
mv "$src/x/y" "$src/v/n"
ok 'a directory in which the store has something is gone from the path' primefs refresh "$store" /x
is 'the rest of it goes' "$(nodes)" '/v /v/v /w /x /x/x /x/y /x/y/w'
ok 'it is found elsewhere' refresh
is 'and has what it had' "$(nodes)" '/v /v/n /v/n/w /v/n/y /v/v /w /x /x/x'
settled 'found elsewhere' v/n/y v/v w/w x/x

begin w x x/y
before=$(inos /x/x)
move /x/x /x/y/x
rm -r "$src/x/y"
ok 'a directory goes to which the store has moved what was beside it' refresh
move /x /w/x
mv "$src/x" "$src/w/x"
ok 'the one above it moves in both' refresh
mv "$src/w" "$src/n"
ok 'and what that is in moves, too' refresh
is 'what was moved is there' "$(nodes)" '/n /n/w /n/x /n/x/y /n/x/y/x'
is 'and is what it was' "$(inos /n/x/y/x)" "$before"
settled 'moves, too' n/w n/x/x
begin w x x/y
before=$(inos /x/x)
move /x/x /x/y/x
rm -r "$src/x/y"
ok 'a directory goes to which the store has moved what was beside it' refresh
mv "$src/x" "$src/n"
ok 'and the one above it moves' refresh
is 'what was moved goes with it' "$(nodes)" '/n /n/y /n/y/x /w /w/w'
is 'and is what it was' "$(inos /n/y/x)" "$before"
settled 'goes with it' n/x w/w
begin d4 d4/d0 d5 w
before=$(inos /d4/d0/d0)
move /d4/d0/d0 /d4/f && move /d4/d0 /e
mv "$src/d4/d0" "$src/e" && rm -r "$src/d4"
ok 'a directory goes to which the store has moved something out of one that has left it' refresh
is 'which stays' "$(inos /d4/f)/$(nodes)" "$before//d4 /d4/f /d5 /d5/d5 /e /w /w/w"
settled 'left it' d5/d5 e/d0 w/w

# ---- one moves to where the store has another one ----
for option in --quick --list; do
	begin d0 d0/d5 f
	move /f/f /d0/d5/d0
	before=$(inos /d0/d0 /d0/d5/d0)
	mv "$src/d0/d0" "$src/d0/d5/d0" && mv "$src/d0" "$src/d3"
	ok "a file moves to where the store has another one, with the directory, $option" refresh $option
	is "both stay what they are, $option" "$(inos /d3/d0 /d3/d5/d0)" "$before"
	settled "moves to where another is, $option" d3/d5/d0 d3/d5/d5 f/f
done
begin d w
before=$(inos /d/d)
move /d/d /w/n
mv "$src/d/d" "$src/f" && rm -r "$src/d"
ok 'a directory goes, and what the store has moved out of it had left it, --quick' refresh --quick
is 'which follows' "$(inos /f)/$(nodes)" "$before//f /w /w/w"
settled 'had left it' f w/w
