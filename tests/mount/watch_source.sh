#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# -o watch where the source is not as one would wish: another user's, unreadable in part, unmounted.
# timeout: 120
. "$(dirname "$0")/../lib.sh"
requires fuse root
in_own_namespace || skip_all 'skipped: no mount namespaces'

show='%P|%y|%m|%U|%s|%T@|%l\n'
listing() { (cd "$1" && find . -mindepth 1 ! -type d -printf "$show" -o -mindepth 1 -printf '%P|%y|%m|%U\n' | sort); }
equal() { [[ $("${run_as[@]}" bash -c "$(declare -p show); $(declare -f listing); listing $src") == "$("${run_as[@]}" bash -c "$(declare -p show); $(declare -f listing); listing $mnt")" ]]; }
settle() { wait_for 30 "${run_as[@]}" grep -q '^source [fir]' "$mnt/.query/as_of"; }
how() { "${run_as[@]}" grep '^source' "$mnt/.query/as_of"; }

# ---- how long it takes ----
src=$work/src
mkdir -p "$src/a/b"
echo one >"$src/a/b/one"
primefs import -q "$src" "$store"
mount_in_foreground -o watch
settle
longest=0
for i in {1..10}; do
	before=${EPOCHREALTIME/./}
	echo "$i" >"$src/a/b/$i"
	wait_for 10 test -e "$mnt/a/b/$i" || { fail "change $i shows within 10 s"; break; }
	took=$((${EPOCHREALTIME/./} - before))
	((took <= longest)) || longest=$took
done
echo "a change showed after $((longest / 1000)) ms at most; $(how)"
ok 'a change shows within 10 s' test "$longest" -lt 10000000
unmount_store
wait "$daemon" || true

# ---- more events than the kernel keeps ----
# What it keeps is decided as a watch begins: it is lowered for that moment, and nobody reads while much changes.
few_events() {
	local file
	for file in "${queues[@]}"; do
		echo 4 >"$file" || return
	done
}
many_events() {
	local i
	for i in "${!queues[@]}"; do
		echo "${kept[i]}" >"${queues[i]}"
	done
}
queues=(/proc/sys/fs/inotify/max_queued_events)
[[ ! -e /proc/sys/fs/fanotify/max_queued_events ]] || queues+=(/proc/sys/fs/fanotify/max_queued_events)
mapfile -t kept < <(cat "${queues[@]}")
cleanup_fn many_events
mkdir "$src"/dir{1..50}
for means in fanotify inotify; do
	rm -f "$store"*
	primefs import -q "$src" "$store"
	if ! few_events 2>/dev/null; then
		many_events 2>/dev/null || true
		skip "events that are lost, $means: the kernel's limit cannot be lowered"
		continue
	fi
	mount_in_foreground -o "watch=$means"
	settle
	many_events
	if ! grep -q "^source $means" <(how); then
		skip "events that are lost, $means: $(how)"
	else
		kill -STOP "$daemon"
		for i in {1..50}; do echo "$means" >"$src/dir$i/$means"; done
		rm -r "$src/dir50"
		mkdir "$src/dir50"
		kill -CONT "$daemon"
		ok "events that are lost, $means: everything is refreshed" wait_for 30 equal
		echo after >"$src/dir7/after $means"
		ok "and what comes after is followed, $means" wait_for 30 equal
	fi
	unmount_store
	wait "$daemon" || true
	check_store
done

# ---- an ordinary user, who has inotify ----
if [[ -u $(command -v fusermount3) ]] && open_fuse_to_all; then
	mkdir -p "$work/home/src/open" "$work/home/mnt"
	chown -R "$nobody:$nobody" "$work/home"
	src=$work/home/src mnt=$work/home/mnt store=$work/home/store.pfs
	run_as=(as "$nobody")
	"${run_as[@]}" primefs import -q "$src" "$store"
	"${run_as[@]}" primefs mount "$store" "$mnt" -o watch,refresh=1
	settle
	ok 'an ordinary user has inotify' wait_for 10 grep -q inotify <(how)
	"${run_as[@]}" bash -c "echo new >$src/open/new; mkdir $src/other; mv $src/open/new $src/other"
	ok 'and follows' wait_for 30 equal

	# a directory that nobody but root may read: what it held stays, all else follows
	"${run_as[@]}" bash -c "mkdir $src/closed; echo in >$src/closed/in"
	ok 'before it is closed' wait_for 30 "${run_as[@]}" test -e "$mnt/closed/in"
	chmod 000 "$src/closed"
	"${run_as[@]}" bash -c "echo on >$src/open/on"
	ok 'what is beside a directory that cannot be read follows' wait_for 30 "${run_as[@]}" test -e "$mnt/open/on"
	unread() { "${run_as[@]}" sed -n 's/^unread //p' "$mnt/.query/as_of"; }
	is_unread() { [[ $(unread) == '/closed: Permission denied' ]]; }
	ok 'as_of tells which it is' wait_for 30 is_unread
	"${run_as[@]}" bash -c "echo further >$src/open/further"
	ok 'what changes then follows, too' wait_for 30 "${run_as[@]}" test -e "$mnt/open/further"
	is 'and as_of still tells it' "$(unread)" '/closed: Permission denied'
	exits 'what cannot be read is told' 1 "${run_as[@]}" primefs refresh "$mnt"
	is "and stays" "$("${run_as[@]}" primefs query --tsv "$mnt" "SELECT name FROM nodes WHERE name IN ('in')" | tail -n 1)" in
	chmod 755 "$src/closed"
	"${run_as[@]}" bash -c "echo again >$src/closed/again"
	ok 'when it can be read again it follows' wait_for 30 equal
	is_read() { [[ ! $(unread) ]]; }
	ok 'and as_of has nothing to tell' wait_for 30 is_read
	"${run_as[@]}" primefs umount "$mnt"
	run_as=()
else
	skip 'an ordinary user: no fusermount3, or /dev/fuse is not open to all'
fi

# ---- one of two folders is not there ----
src=$work/first mnt=$work/mnt store=$work/two.pfs
other=$work/second
mkdir -p "$src/d" "$other/e"
echo one >"$src/d/one"
echo two >"$other/e/two"
primefs import -q "$src" "$store"
primefs import -q --at=/other "$other" "$store"
known() { sed -n "s|^compared \([^ ]*\) $1\$|\1|p" "$mnt/.query/as_of"; }
for means in auto inotify; do
	mv "$other" "$work/away"
	mount_in_foreground -o "watch=$means,refresh=1"
	settle
	echo "$means" >"$src/d/$means"
	ok "the other one is followed, $means" wait_for 10 test -e "$mnt/d/$means"
	is "as_of tells which is not there, $means" "$(sed -n 's/^unread \([^;]*\);.*/\1/p' "$mnt/.query/as_of")" \
		"/other: $other: no longer the folder that was imported"
	sleep 1.1 # times are told in seconds, and what is as new as all else has no line
	before=$(known /other)
	sleep 2.2
	echo "$means" >>"$src/d/one"
	ok "what it held is there, $means" test -d "$mnt/other/e"
	is "and as old as it was, $means" "$(known /other)" "$before"
	ok "while all else is newer, $means" test "$(known /)" '>' "$before"
	is "the log tells it once, $means" \
		"$(grep -c 'two.pfs: /other is not followed: .*/second: no longer' "$work/daemon.log")" 1
	echo "$means" >>"$work/away/e/two"
	mv "$work/away" "$other"
	ok "it is followed when it is back, $means" wait_for 15 cmp -s "$mnt/other/e/two" "$other/e/two"
	echo "$means" >"$other/e/$means"
	ok "also later, $means" wait_for 10 test -e "$mnt/other/e/$means"
	is_new() { [[ ! $(known /other)$(grep ^unread "$mnt/.query/as_of") ]]; }
	ok "as_of has nothing to tell then, and it is as new as all else, $means" wait_for 10 is_new
	unmount_store
	wait "$daemon" || true
	rm "$work/daemon.log"
	check_store
done
mv "$src" "$work/away"
mv "$other" "$work/away2"
mount_in_foreground -o watch,refresh=1
ok 'as_of tells that none is there' wait_for 10 grep -q "^source not followed: no longer the folder" "$mnt/.query/as_of"
mv "$work/away" "$src"
mv "$work/away2" "$other"
echo back >"$src/back"
ok 'both are followed when they are back' wait_for 15 test -e "$mnt/back"
settle
echo back >"$other/e/back"
ok 'by what the kernel says' wait_for 10 test -e "$mnt/other/e/back"
ok 'and not by refreshes alone' grep -q "^source [fi]" "$mnt/.query/as_of"
unmount_store
wait "$daemon" || true

# ---- another one comes to its path, and the kernel says nothing ----
missed() { grep -q "^$1: no longer the folder" "$mnt/.query/as_of"; }
for means in auto inotify; do
	mount_in_foreground -o "watch=$means,refresh=1"
	settle
	mv "$src" "$work/away"
	mkdir "$src"
	ok "replaced, $means: as_of tells" wait_for 10 missed "unread /: $src"
	before=$(known /)
	sleep 2.1
	is "replaced, $means: what it held is as old as it was" "$(known /)" "$before"
	ok "replaced, $means: it is still there" test -e "$mnt/back"
	rmdir "$src"
	mv "$work/away" "$src"
	ok "back, $means: it is followed" wait_for 15 settle
	echo "$means" >"$src/again $means"
	ok "back, $means: what changes then shows" wait_for 10 test -e "$mnt/again $means"
	unmount_store
	wait "$daemon" || true
done
mount_in_foreground -o watch,refresh=600
settle
mv "$src" "$work/away"
mv "$other" "$work/away2"
not_ok 'a refresh that is asked for finds none' primefs refresh "$mnt"
ok 'as_of tells it at once' wait_for 5 missed 'source not followed'
mv "$work/away" "$src"
mv "$work/away2" "$other"
unmount_store
wait "$daemon" || true
check_store

# ---- the source is unmounted in the middle ----
src=$work/disk mnt=$work/mnt store=$work/disk.pfs
mkdir "$src"
mount -t tmpfs none "$src"
mkdir -p "$src/d"
for i in {1..200}; do echo "$i" >"$src/d/$i"; done
primefs import -q "$src" "$store"
for means in auto inotify; do
	mount_in_foreground -o "watch=$means,refresh=1"
	settle
	echo changed >>"$src/d/1"
	umount -l "$src"
	sleep 0.5
	ok "unmounted, $means: nothing is lost" test "$(find "$mnt/d" -mindepth 1 | wc -l)" = 200
	ok "unmounted, $means: the daemon answers" grep -q "^source" "$mnt/.query/as_of"
	ok "unmounted, $means: it still runs" kill -0 "$daemon"
	ok "unmounted, $means: as_of tells" wait_for 10 grep -q '^source not followed: no longer the folder' "$mnt/.query/as_of"
	mount -t tmpfs none "$src" # another one: not the folder that was imported
	echo other >"$src/other"
	sleep 1.2
	not_ok "another filesystem, $means: it is not taken for the source" test -e "$mnt/other"
	ok "another filesystem, $means: nothing is lost" test "$(find "$mnt/d" -mindepth 1 | wc -l)" = 200
	unmount_store
	wait "$daemon" || true
	check_store
	umount "$src"
	mount -t tmpfs none "$src"
	mkdir -p "$src/d"
	for i in {1..200}; do echo "$i" >"$src/d/$i"; done
	rm -f "$store"*
	primefs import -q "$src" "$store"
done
