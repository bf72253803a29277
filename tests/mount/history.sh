#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# -o history=: what was there at a time, through the daemon and without it; kept from mount to mount, until it is
# ended; a full disk and kill -9 leave it right.
. "$(dirname "$0")/../lib.sh"
requires fuse

now() { sleep 0.02 && date +%s.%N && sleep 0.02; }
differs() { primefs diff "$@" | sort || true; } # which it says by its status, too

mkdir -p src/a/b
echo one >src/a/one
echo two >src/a/b/two
ln -s one src/a/link
primefs import --content=copy -q src "$store"
fails_with 'no history' 'keeps no history' primefs diff "$store" '1 day ago'
ok 'info says so' grep -qE '^history +no$' <(primefs info "$store")

fails_with 'a bad rule' 'option history: not an age' primefs mount -o history=soon "$store" "$mnt"
fails_with 'not read only' 'mount it for writing' primefs mount -o ro,history=2d "$store" "$mnt"
mount_store -o history=2d
first=$(now)
mv "$mnt/a/b/two" "$mnt/moved"
echo new >"$mnt/a/new"
chmod 600 "$mnt/a/one"
rm "$mnt/a/link"
sync "$mnt"
second=$(now)
rmdir "$mnt/a/b"
mkdir "$mnt/late"
expected=$(printf '%s\n' 'added /a/new' 'changed /a/one: mode was 0644, is 0600' 'moved /moved <- /a/b/two' \
	'removed /a/link')
is 'what happened between two times' "$(differs "$mnt" "$first" "$second")" "$expected"
is 'and since the second' "$(differs "$mnt" "$second")" "$(printf '%s\n' 'added /late' 'removed /a/b')"
at() { primefs query "${2:-$mnt}" "SELECT path FROM nodes_at('$1') WHERE path LIKE '/a%' ORDER BY path" | tail -n +2; }
was=$(printf '%s\n' /a /a/b /a/b/two /a/link /a/one)
is 'a table of a time' "$(at "$first")" "$was"
is 'and of another' "$(at "$second")" "$(printf '%s\n' /a /a/b /a/new /a/one)"
fails_with 'in a statement, too' 'is known from 20' primefs query "$mnt" "SELECT * FROM nodes_at('1 hour ago')"
echo "SELECT count(*) FROM nodes_at('now')" >asked
exec 3<>"$mnt/.query/run"
cat asked >&3
is 'through .query' "$(tail -n 1 <&3)" "$(primefs query "$mnt" 'SELECT count(*) FROM nodes' | tail -n 1)"
exec 3>&-
is 'nothing since now' "$(differs "$mnt" "$(now)")" ''
fails_with 'before it was known' 'is known from 20' primefs diff "$mnt" '1 hour ago'
fails_with 'no time' 'neither a store nor a time' primefs diff "$mnt" whenever
ok 'info tells what it costs' grep -qE '^history +[1-9][0-9]*  bytes, about, kept for 172800 s$' <(primefs info "$mnt")
unmount_store
is 'a table of a time, unmounted' "$(at "$first" "$store")" "$was"
is 'the same unmounted' "$(differs "$store" "$first" "$second")" "$expected"
check_store

before=$(now)
primefs query "$store" "UPDATE nodes SET mode = 511 WHERE path = '/late'" >/dev/null
is 'what a statement changed unmounted' "$(differs "$store" "$before")" 'changed /late: mode was 0755, is 0777'
third=$(now)
mount_in_foreground
setfattr -n user.x -v 7 "$mnt/a/one"
is 'it is kept from mount to mount' "$(differs "$mnt" "$third")" 'changed /a/one: x is 7'
touch "$work/$third" # a file of that name is a store, and none
fails_with 'a file comes before a time' "$third" primefs diff "$store" "$third"
rm "$work/$third"

# a daemon that is killed
for i in 1 2 3 4 5; do
	mkdir "$mnt/dir$i"
	sync "$mnt"
	at[i]=$(now)
	mkdir "$mnt/lost$i"
	kill -9 "$daemon"
	wait "$daemon" 2>/dev/null || true
	force_unmount "$mnt"
	wait_for 10 primefs check "$store" >/dev/null
	mount_in_foreground
	rmdir "$mnt/lost$i" 2>/dev/null || true
done
sync "$mnt"
is 'five kills later' "$(differs "$mnt" "${at[1]}" "${at[5]}" | grep dir)" "$(printf 'added /dir%s\n' 2 3 4 5)"
is 'and what was first is known' "$(differs "$mnt" "$first" "$second")" "$expected"
unmount_store
check_store

mount_store -o history=no
fails_with 'ended' 'keeps no history' primefs diff "$mnt" "$third"
unmount_store
check_store

# a size: the oldest goes
mount_store -o history=16K
fourth=$(now)
for i in 1 2 3 4; do
	for ((n = 0; n < 100; n++)); do
		touch -d "2020-01-0$i 00:00:$((n % 60))" "$mnt/late"
		echo "$n" >"$mnt/a/f$n"
	done
	sync "$mnt"
done
kept() { # sync goes on with what is due
	sync "$mnt"
	[[ $(primefs info "$mnt" | awk '$1 == "history" {print $2}') -le 16384 ]]
}
ok 'no more is kept than was said' wait_for 20 kept
fails_with 'the oldest is forgotten' 'is known from 20' primefs diff "$mnt" "$fourth"
unmount_store
check_store

if is_root; then
	mkdir small
	mount -t tmpfs -o size=12m tmpfs small
	cp "$store" small/store.pfs
	store=$work/small/store.pfs
	mount_store -o history=1h
	sync "$mnt"
	fifth=$(now)
	mkdir "$mnt/full"
	i=0
	while ((i++ < 20000)) && : 2>/dev/null >"$mnt/full/$i"; do :; done
	not_ok 'the disk is full' touch "$mnt/full/more"
	ok 'a removal is possible' rm -r "$mnt/full"
	unmount_store
	check_store
	ok 'and what was there before is known' primefs diff -s "$store" "$fifth"
fi
