#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# -o watch: what changes in the folder that a store was imported from shows in the mount, by itself.
# timeout: 400
. "$(dirname "$0")/../lib.sh"
requires fuse

src=$work/src
show='%P|%y|%m|%U|%s|%T@|%l\n'
listing() { (cd "$1" && find . -mindepth 1 ! -type d -printf "$show" -o -mindepth 1 -printf '%P|%y|%m|%U\n' | sort); }
equal() { [[ $(listing "$src") == "$(listing "$mnt")" ]]; }
follows() { # DESCRIPTION: the mount is what the source is, soon
	ok "$1" wait_for 30 equal
	equal || diff <(listing "$src") <(listing "$mnt") || true
}
how() { grep '^source' "$mnt/.query/as_of"; }
calm() { # events are on their way for some time after the source stands still
	local before
	before=$(sort "$mnt/.query/paths")
	sleep 1
	[[ $(sort "$mnt/.query/paths") == "$before" ]]
}
settle() { wait_for 30 grep -q '^source [fir]' "$mnt/.query/as_of"; }
fill() {
	rm -rf "$src"
	mkdir -p "$src/a/b/c" "$src/d"
	echo one >"$src/one"
	echo two >"$src/a/two"
	echo three >"$src/a/b/c/three"
	ln -s two "$src/a/link"
	rm -f "$store"
	primefs import -q "$src" "$store"
}

changes() {
	local ino dir_ino
	echo more >>"$src/one"
	follows 'appended'
	echo new >"$src/a/b/new"
	follows 'created'
	is 'what is new can be read' "$(cat "$mnt/a/b/new")" new
	ino=$(stat -c %i "$mnt/a/b/new") dir_ino=$(stat -c %i "$mnt/a/b")
	mv "$src/a/b/new" "$src/d/moved"
	follows 'moved'
	is 'a file that has moved is the same' "$(stat -c %i "$mnt/d/moved")" "$ino"
	mv "$src/a/b" "$src/d/e"
	follows 'a directory moved'
	is 'a directory that has moved is the same' "$(stat -c %i "$mnt/d/e")" "$dir_ino"
	echo in >"$src/d/e/c/in"
	follows 'created below a directory that has moved'
	echo over >"$src/over"
	mv "$src/over" "$src/one"
	follows 'renamed over'
	chmod 640 "$src/a/two"
	chmod 750 "$src/d/e"
	follows 'chmod'
	touch -d '2001-02-03 04:05:06.789' "$src/a/two"
	follows 'touched backwards'
	rm "$src/d/moved"
	follows 'removed'
	mkdir -p "$src/x/y/z"/{1,2,3}/deep
	for dir in "$src"/x/y/z/*/deep; do echo deep >"$dir/file"; done
	follows 'a new tree'
	echo later >"$src/x/y/z/2/deep/later"
	follows 'changed in a new tree'
	mkdir -p "$work/outside/p/q"
	echo outside >"$work/outside/p/q/file"
	mv "$work/outside" "$src/x/inside"
	follows 'a directory moved in'
	echo again >>"$src/x/inside/p/q/file"
	rm "$mnt/.query/none" 2>/dev/null || true
	follows 'changed in one that was moved in'
	mv "$src/x/inside" "$work/outside"
	follows 'moved out'
	rm -r "$work/outside" "$src/x"
	follows 'removed with all below'
	mkdir "$src/swap1" "$src/swap2"
	echo 1 >"$src/swap1/file"
	echo 22 >"$src/swap2/file"
	follows 'two directories'
	mv "$src/swap1" "$src/swap3"
	mv "$src/swap2" "$src/swap1"
	mv "$src/swap3" "$src/swap2"
	follows 'exchanged'
	rm -r "$src/swap1"
	mkdir "$src/swap1"
	echo 333 >"$src/swap1/other"
	follows 'replaced by another'
	ln "$src/a/two" "$src/d/two"
	follows 'another name of a file'
	echo written >>"$src/d/two"
	follows 'both names of what is written by one'
	primefs refresh -q "$mnt" >/dev/null
	mkdir "$src/asked"
	primefs refresh "$mnt" >/dev/null
	echo x >"$src/asked/file"
	follows 'what a refresh that was asked for has found is watched'
	(cd "$src" && for i in {1..300}; do
		mkdir "n$i"
		echo "$i" >"n$i/f"
		mv "n$i/f" "n$((i / 2))/g" 2>/dev/null || true
	done)
	follows 'many changes'
}

rounds() { # SEED ROUNDS: random changes, of which each round is compared
	local round n names=(a b c d e f g h) from to
	RANDOM=$1
	echo "PFS_SEED=$1"
	for ((round = 1; round <= $2; round++)); do
		for ((n = RANDOM % 4 + 1; n; n--)); do
			from=$src/${names[RANDOM % 8]} to=$src/${names[RANDOM % 8]}
			((RANDOM % 2)) || from+=/${names[RANDOM % 8]}
			((RANDOM % 2)) || to+=/${names[RANDOM % 8]}
			case $((RANDOM % 10)) in
			0) mkdir -p "$from" ;;
			1 | 2) echo "$RANDOM" >"$from" ;;
			3) echo "$RANDOM" >>"$from" ;;
			4) mv "$from" "$to" ;;
			5) mv -T "$from" "$to" ;;
			6) rm -rf "$from" ;;
			7) chmod $((RANDOM % 2 ? 700 : 755)) "$from" ;;
			8) touch -d "@$((RANDOM * 1000)).$RANDOM" "$from" ;;
			9) ln "$from" "$to" ;;
			esac 2>/dev/null || true
		done
		"${@:3}" || true
		if ! wait_for 30 equal; then
			echo "round $round"
			diff <(listing "$src") <(listing "$mnt") || true
			return 1
		fi
	done
}
seed=${PFS_SEED:-$$}
n_rounds=40
((!PFS_LONG)) || n_rounds=1000

# ---- fanotify, where it is permitted ----
fill
echo before >"$src/before"
mount_store -o watch
follows 'each mount begins with a refresh'
settle
if how | grep -q fanotify; then
	changes
	ok 'random changes, fanotify' rounds "$seed" "$n_rounds"
	ok 'and none is left' wait_for 30 calm
else
	skip "fanotify: $(how)"
fi
unmount_store
check_store

# ---- inotify ----
fill
mount_in_foreground -o watch=inotify
settle
ok 'inotify' grep -qE '^source inotify watches 5 directories' "$mnt/.query/as_of"
changes
ok 'random changes, inotify' rounds "$seed" "$n_rounds"
ok 'none is left' wait_for 30 calm

# more events than the kernel keeps, while nobody reads them
kill -STOP "$daemon"
mkdir "$src/many"
(cd "$src/many" && for i in {1..40}; do touch {1..500}; done && echo last >last)
echo elsewhere >>"$src/one"
kill -CONT "$daemon"
follows 'events that were lost'
unmount_store
check_store

# ---- fewer watches than directories ----
fill
mount_store -o watch=inotify,watch_limit=2,refresh=1
settle
ok 'the limit is told' grep -qE '^source inotify watches 2 directories; everything is refreshed every 1 s' "$mnt/.query/as_of"
echo deep >>"$src/a/b/c/three"
echo top >>"$src/one"
follows 'all is followed beyond the limit, too'
unmount_store

# ---- the source goes ----
fill
mount_store -o watch,refresh=1
settle
mv "$src" "$work/away"
ok 'a source that is gone does not end the daemon' ls "$mnt"
sleep 1.2
ok 'nor empties the mount' test -e "$mnt/one"
mv "$work/away" "$src"
echo back >"$src/back"
follows 'it comes back'
unmount_store

# ---- when it was compared ----
known() { sed -n 's/^compared \([^ ]*\) \/$/\1/p' "$mnt/.query/as_of"; }
fill
echo 'SELECT path FROM nodes' >"$work/sql"
mount_store -o history=2d
imported=$(known)
ok 'without a watch it is as old as the import' test -n "$imported"
is 'also later' "$(sleep 1.1 && known)" "$imported"
began=$(date +%s)
is 'as_of of a part' "$(sed -n 's/^compared //p' "$mnt/a/.query/as_of")" "$imported /a"
mkdir "$mnt/.query/saved"
cp "$work/sql" "$mnt/.query/saved/sql"
cat "$mnt/.query/saved/paths" >/dev/null
ok 'a saved query says so, too' grep -qx "compared $imported /" "$mnt/.query/saved/as_of"
primefs refresh "$mnt" /a >/dev/null
is 'a part that was refreshed has a line' "$(sed -n 's/^compared [^ ]* //p' "$mnt/.query/as_of" | xargs)" '/ /a'
primefs refresh "$mnt" /one >/dev/null
is 'and a directory of which a file was' "$(sed -n 's/^entries [^ ]* //p' "$mnt/.query/as_of" | xargs)" /
primefs refresh --quick "$mnt" >/dev/null
is 'directories alone, too' "$(sed -n 's/^directories [^ ]* //p' "$mnt/.query/as_of")" /
is 'and are not everything' "$(known)" "$imported"
rmdir "$mnt/.query/saved"
unmount_store
is 'and none of it is a change to anybody' "$(primefs diff "$store" "$(($(date +%s) - began)) seconds ago" 2>&1)" ''
mount_store -o watch
settle
before=$(known)
sleep 1.1
ok 'with a watch it is as new as the watch' test "$(known)" '>' "$before"
echo changed >>"$src/one"
follows 'a change'
sleep 1.1
ok 'also after a change' test "$(known)" '>' "$before"
before=$(known)
unmount_store
mount_store
ok 'which the store keeps' test ! "$(known)" '<' "$before"
unmount_store

# ---- folders that were added to a directory that there was ----
mkdir -p "$work/more/deep"
primefs import -q --at=/d "$work/more" "$store"
mount_store -o watch
settle
touch "$work/more/top" "$work/more/deep/below"
ok 'what comes to one of them' wait_for 10 test -e "$mnt/d/top"
ok 'or below it' wait_for 10 test -e "$mnt/d/deep/below"
rm "$work/more/top"
ok 'and goes' wait_for 10 test ! -e "$mnt/d/top"
unmount_store

# ---- read-only ----
mount_store -o ro,watch
ok 'a mount that is read-only follows nothing' grep -q '^source not followed' "$mnt/.query/as_of"
unmount_store

# ---- a store whose source cannot be followed ----
not_followed='source not followed: nothing in it was imported from a folder whose files are linked'
primefs import -q --content=none "$src" "$work/none.pfs"
store=$work/none.pfs
mount_in_foreground -o watch
ok 'mount warns that it will not be followed' grep -q "none.pfs: $not_followed" "$work/daemon.log"
ok 'as_of says why' wait_for 10 grep -q "^$not_followed" "$mnt/.query/as_of"
ok 'the log too' grep -q 'none.pfs: cannot be refreshed: nothing in it was imported' "$work/daemon.log"
unmount_store
wait "$daemon" || true
store=$work/store.pfs
fails_with 'means' 'option watch: not auto, fanotify, inotify or no' primefs mount -o watch=ears "$store" "$mnt"
fails_with 'limit' 'option watch_limit: not a number' primefs mount -o watch_limit=-1 "$store" "$mnt"
