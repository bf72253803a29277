#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What is mounted below a source is known by what its nodes say, not by numbers of devices: these change, and a bind
# mount has that of its disk.
. "$(dirname "$0")/../lib.sh"
requires root sqlite3
in_own_namespace || skip_all 'skipped: no mount namespaces'

src=$work/src
outside=$work/outside
paths() { primefs export --format=paths "$store" | xargs; }
change() { primefs query "$store" "$@" >/dev/null; }
number() { primefs query "$store" "SELECT ino FROM nodes WHERE path = '$1'" | tail -n 1; }
sql() { sqlite3 "$store" "$@"; }
said() { primefs refresh -l "$@" | sed '$d'; }
counts() { (primefs refresh "$@" || true) | sed -n 's/.*: \(.* added, .* removed, .* moved\),.*/\1/p'; }
unread='its filesystem is not mounted there'
begin() { # a source without anything, and no store
	while read -r _ _ _ _ at _; do umount "$at"; done < <(grep -F " $work/" /proc/self/mountinfo | tac)
	rm -rf --one-file-system "$src" "$outside" "$store"*
	mkdir -p "$src"/{m,k,d/e} "$outside"
	echo f >"$src/d/e/f"
}
import() { primefs import -q --cross-mounts --exclude=lost+found "$src" "$store"; }
tmpfs() { mount -t tmpfs none "$1"; }
fill() { # a directory gets something
	mkdir -p "$1/x"
	for name in x/y z; do echo "$1/$name" >"$1/$name"; done
}
stays() { # WHAT WHICH: refreshes tell that these nodes are not read, and leave all
	local before how options hows=(--cross-mounts '--cross-mounts --quick' '--cross-mounts --dry-run')
	before=$(paths)
	[[ -n ${nested-} ]] || hows+=('' --quick) # which do not look into what is mounted
	for how in "${hows[@]}"; do
		read -ra options <<<"$how"
		exits "$1 is not seen $how" 1 primefs refresh "${options[@]}" "$store"
		is 'and stays' "$(paths)" "$before"
	done
	is 'which is said' "$(said --cross-mounts "$store" | cut -d: -f1 | sort | xargs)" "$2"
}
as_before() { # WHAT STATEMENT: a store of before nodes said what is mounted
	sql "UPDATE node SET flags = flags & ~128; UPDATE source_root SET mode = mode & 65535; ${1-}"
	rm -f "$store.img"
}
flagged() { sql 'SELECT count(*) FROM node WHERE flags & 128'; }
begin
tmpfs "$src/m" 2>/dev/null || skip_all 'skipped: nothing can be mounted'

# ---- a bind mount of the same disk ----
bind() {
	begin
	fill "$outside"
	mount --bind "$outside" "$src/m"
	import
}
bind
is 'a node says that something is mounted there' "$(flagged)" 1
ok 'a bind mount is as it was' grep -q ' 0 added, 0 removed, 0 moved, 0 changed, ' \
	<(primefs refresh --cross-mounts "$store")
umount "$src/m"
stays 'a bind mount of the same disk' 'unread /m'
is 'as of a path in it' "$(said "$store" /m/x/y)" "unread /m: $unread"
echo other >"$src/m/z"
mkdir "$src/m/x"
stays 'a bind mount in whose place something of the same names lies' 'unread /m'
is 'as of a path in it' "$(said "$store" /m/x)" "unread /m: $unread"
rm -r "${src:?}/m"
stays 'a bind mount whose mount point is gone' 'unread /m'
mkdir "$src/m"
mount --bind "$outside" "$src/m"
rm "$outside/z"
ok 'it is mounted again, and has lost a file' primefs refresh --cross-mounts "$store"
is 'which goes' "$(paths)" '/d /d/e /d/e/f /k/ /m /m/x /m/x/y'
umount "$src/m"
ok 'it will not be mounted again' primefs refresh --unmounted "$store"
is 'and goes' "$(paths)" '/d /d/e /d/e/f /k/ /m/'
is 'so that no node says any more that something is mounted' "$(flagged)" 0
ok 'from then on without a word' primefs refresh "$store"

bind
change "UPDATE nodes SET path = '/k/zz' WHERE path = '/m/z'"
umount "$src/m"
stays 'what the store moved out of a bind mount' 'unread /k/zz unread /m'
for how in without with; do
	begin
	echo f >"$outside/f"
	mount --bind "$outside" "$src/m"
	import
	change "UPDATE nodes SET path = '/k/f' WHERE path = '/m/f'"
	umount "$src/m"
	if [[ $how = with ]]; then mkdir "$src/m/other"; fi
	stays "all that a bind mount $how something below it had was moved in the store" 'unread /k/f unread /m'
	for path in '/m' '--quick /m' '/ /m' '--quick /d /'; do
		read -ra asked <<<"$path"
		is "as of a refresh of '$path'" "$(said --cross-mounts "$store" "${asked[@]}" | grep -c "^unread /m: $unread")" 1
	done
	is 'which leave all' "$(paths)" '/d /d/e /d/e/f /k /k/f /m/'
	exits 'as do two more of everything' 1 primefs refresh "$store"
	is 'with what lies elsewhere' "$(paths)" '/d /d/e /d/e/f /k /k/f /m/'
	mount --bind "$outside" "$src/m"
	rm "$outside/f"
	ok 'it is mounted again, and has lost the file' primefs refresh --cross-mounts "$store"
	is 'which goes' "$(paths)" '/d /d/e /d/e/f /k/ /m/'
done
for how in without with; do
	bind
	change "DELETE FROM nodes WHERE under(ino, '/m') AND path != '/m'"
	umount "$src/m"
	if [[ $how = with ]]; then mkdir "$src/m/other"; fi
	stays "a bind mount of which the store has removed all, $how something below it" 'unread /m'
	mount --bind "$outside" "$src/m"
	echo new >"$outside/new"
	ok 'it is mounted again, and has something new' primefs refresh --cross-mounts "$store"
	is 'that comes, and nothing else' "$(paths)" '/d /d/e /d/e/f /k/ /m /m/new'
done
bind
change "UPDATE nodes SET path = '/k/m' WHERE path = '/m'"
umount "$src/m"
stays 'a bind mount that the store moved' 'unread /k/m'
bind
umount "$src/m"
mount --bind "$outside" "$src/k"
inode=$(number /m/x/y)
is 'a bind mount moves, and leaves its mount point' "$(counts --cross-mounts "$store")" '1 added, 1 removed, 1 moved'
is 'with all' "$(paths)" '/d /d/e /d/e/f /k /k/x /k/x/y /k/z /m/'
is 'that it has' "$(number /k/x/y)" "$inode"

begin
mount --bind "$src/d" "$src/d"
import
umount "$src/d"
ok 'a directory that was mounted in its own place' primefs refresh "$store"
is 'is there all the same' "$(paths)" '/d /d/e /d/e/f /k/ /m/'
is 'and known as not mounted' "$(flagged)" 0
rm -r "$src/d"
ok 'when it goes' primefs refresh "$store"
is 'it goes' "$(paths)" '/k/ /m/'

begin
mkdir "$src/b"
mv "$src/d" "$src/b/d"
import
mount --bind "$src/b" "$src/m"
ok 'a directory that the source has is mounted in it once more' primefs refresh --cross-mounts "$store"
is 'and comes there, too' "$(paths)" '/b /b/d /b/d/e /b/d/e/f /k/ /m /m/d /m/d/e /m/d/e/f'
mkdir -p "$src/b/d/g/h"
primefs refresh --cross-mounts "$store" >/dev/null || true
primefs refresh --cross-mounts "$store" >/dev/null || true
is 'as does what comes to it' "$(paths)" \
	'/b /b/d /b/d/e /b/d/e/f /b/d/g /b/d/g/h/ /k/ /m /m/d /m/d/e /m/d/e/f /m/d/g /m/d/g/h/'
is 'from then on nothing changes' "$(counts --cross-mounts "$store")" '0 added, 0 removed, 0 moved'

# ---- while the store is mounted, and watches ----
if has_fuse; then
	bind
	mount_store -o watch
	echo more >"$outside/x/more"
	wait_for 20 test -e "$mnt/m/x/more" || primefs refresh --cross-mounts "$mnt" >/dev/null
	ok 'a file comes to a bind mount' test -e "$mnt/m/x/more"
	umount -l "$src/m" # the daemon may have it open
	touch "$src/seen"
	ok 'it is unmounted, and the source changes' wait_for 20 test -e "$mnt/seen"
	is 'which leaves what it had' "$(cd "$mnt/m/x" && echo *)" 'more y'
	exits 'as a refresh does' 1 primefs refresh "$mnt"
	is 'of everything' "$(cd "$mnt/m/x" && echo *)" 'more y'
	unmount_store
fi

# ---- what a refresh stays out of ----
begin
tmpfs "$src/m"
mkdir "$src/m/d"
primefs import -q "$src" "$store"
is 'a path where something is mounted that is not crossed' "$(said "$store" /m)" ''
is 'nor is what lies there a path' "$(paths)" '/d /d/e /d/e/f /k/ /m/'
if has_fuse; then
	begin
	import
	mkdir "$src/d/e/mnt"
	primefs mount "$store" "$src/d/e/mnt"
	sleep 2 # so that directories are settled
	primefs refresh --cross-mounts "$store" >/dev/null
	before=$(paths)
	primefs refresh -q --cross-mounts "$store" >/dev/null
	is 'a quick refresh does not go where the store itself is mounted' "$(paths)" "$before"
	is 'nor does one of a path' "$(said -n "$store" /d/e/mnt)" ''
	primefs umount "$src/d/e/mnt"
fi

# ---- something is mounted over what the store has ----
for how in 'tmpfs' "mount --bind $outside"; do
	begin
	fill "$outside"
	import
	$how "$src/d"
	fill "$src/d"
	stays "a directory that '$how' covers" 'unread /d'
	is 'as of a path in it' "$(said --cross-mounts "$store" /d/e/f)" "unread /d: $unread"
	umount "$src/d"
	ok 'it is uncovered' primefs refresh --cross-mounts "$store"
	is 'and as it was' "$(paths)" '/d /d/e /d/e/f /k/ /m/'
	$how "$src/d"
	fill "$src/d"
	ok 'what covers it counts if that is said' primefs refresh --cross-mounts --unmounted "$store"
	is 'and is followed' "$(paths)" '/d /d/x /d/x/y /d/z /k/ /m/'
	umount "$src/d"
	stays 'and is then not seen itself' 'unread /d'
done
begin
import
tmpfs "$src/m"
fill "$src/m"
ok 'where nothing was, something is mounted' primefs refresh --cross-mounts "$store"
is 'which comes' "$(paths)" '/d /d/e /d/e/f /k/ /m /m/x /m/x/y /m/z'
umount "$src/m"
stays 'and is not seen when it is unmounted' 'unread /m'

# ---- nested mounts ----
begin
fill "$outside"
tmpfs "$src/m"
mkdir "$src/m"/{n,o}
mount --bind "$outside" "$src/m/n"
tmpfs "$src/m/o"
fill "$src/m/o"
import
before=$(paths)
is 'three are mounted' "$(flagged)" 3
umount "$src/m/n"
nested=1 stays 'one in another' 'unread /m/n'
rmdir "$src/m/n"
nested=1 stays 'one whose mount point in another is gone' 'unread /m/n'
umount "$src/m/o" "$src/m"
stays 'one with all that is mounted in it' 'unread /m'
rmdir "$src/m"
stays 'one without its mount point' 'unread /m'
is 'all are there' "$(paths)" "$before"

# ---- a root that has no record, as it came to a directory that was there ----
begin
echo /own | primefs import -q - "$store"
fill "$outside"
mount --bind "$outside" "$src/m"
primefs import -q --cross-mounts --at / "$src" "$store"
before=$(paths)
umount "$src/m"
for how in /m /m/x /m/x/y /m/z; do
	is "a path at a mount point below it: $how" "$(said "$store" "$how")" "unread /m: $unread"
	is 'stays' "$(paths)" "$before"
done

# ---- a directory into which two roots have put something ----
begin
fill "$outside"
tmpfs "$src/m"
mkdir "$src/m/y"
echo g >"$src/m/y/g"
mkdir "$work/first"
mkdir "$work/first/m"
touch "$work/first/m/f"
primefs import -q "$work/first" "$store"
primefs import -q --cross-mounts --at / "$src" "$store"
before=$(paths)
ok 'it is as it was' primefs refresh --cross-mounts "$store"
umount "$src/m"
for how in '' /m /m/y /m/y/g; do
	# shellcheck disable=SC2086
	is "a filesystem that was mounted there is not seen $how" \
		"$(said --cross-mounts "$store" $how)" "unread /m: $unread"
	is 'and stays' "$(paths)" "$before"
done
mount --bind "$outside" "$src/m"
is 'nor if another one is there' "$(said --cross-mounts "$store")" "unread /m: $unread"
umount "$src/m"
ok 'it will not be mounted again' primefs refresh --unmounted "$store"
is 'and goes, without what the other root has' "$(paths)" '/d /d/e /d/e/f /k/ /m /m/f'
rm -r "$work/first"

# ---- disks that get other numbers ----
disk() { # NAME: makes one
	truncate -s 16M "$work/$1"
	E2FSPROGS_FAKE_TIME=1700000000 mkfs.ext4 -q "$work/$1" # all have the same mark at their roots
}
attach() { # NAME DIRECTORY
	local loop
	loop=$(losetup -f --show "$work/$1") && loops+=("$loop") && mount "$loop" "$2"
}
detach() { # DIRECTORY...: the inner ones first, and all disks
	umount "$@" 2>/dev/null || true
	losetup -nO NAME,BACK-FILE | awk -v work="$work/" 'index($2, work) == 1 { print $1 }' | xargs -r losetup -d
	loops=()
}
loops=()
cleanup_fn detach "$src/m/n" "$src/m" "$src/k" "$src/l"
begin
if ! command -v mkfs.ext4 losetup >/dev/null || ! disk one || ! disk two || ! disk three || ! attach one "$src/m" 2>/dev/null; then
	skip 'skipped: no disk can be mounted'
	check_store
	exit
fi
fill "$src/m"
mkdir "$src/m/n"
attach two "$src/m/n"
fill "$src/m/n"
for name in 1 2 3; do mkdir "$src/m/n/d$name" && echo "$name" >"$src/m/n/d$name/f$name"; done
import
before=$(paths)
numbers=$(stat -c %d "$src/m" "$src/m/n" | xargs)
other_way() { # in the other order
	detach "$src/m/n" "$src/m"
	if ((${1-1})); then
		attach two "$src/k" && umount "$src/k"
		attach one "$src/m"
		mount "${loops[0]}" "$src/m/n"
	else
		attach one "$src/m"
		attach two "$src/m/n"
	fi
}
other_way
[[ $(stat -c %d "$src/m/n" "$src/m" | xargs) = "$numbers" ]] || skip 'skipped: disks have not exchanged their numbers'
is 'nothing has changed' "$(counts --cross-mounts "$store")" '0 added, 0 removed, 0 moved'
touch "$src/m/n/d1/new"
ok 'a file comes, and is found by a refresh of its directory' primefs refresh --cross-mounts "$store" /m/n/d1
touch "$src/m/new" "$src/m/n/new" "$src/m/x/new"
ok 'files come' primefs refresh --cross-mounts "$store"
filesystems() { sql "SELECT count(DISTINCT dev) FROM source WHERE CAST(path AS TEXT) GLOB 'm/n/*'"; }
is 'with the number that their filesystem had' "$(filesystems)" 1
if has_fuse; then
	echo 11 >"$src/m/n/d1/f1"
	mount_store -o links=yes
	is 'a file that has changed is read from a mount' "$(cat "$mnt/m/n/d1/f1")" 11
	unmount_store
	is 'and keeps the number of its filesystem' "$(filesystems)" 1
fi
before=$(paths)
inode=$(number /m/n/d1/f1)
mv "$src/m/n/d1/f1" "$src/m/n/d2/f1"
is 'a file moves' "$(counts --cross-mounts "$store")" '0 added, 0 removed, 1 moved'
is 'and keeps its number' "$(number /m/n/d2/f1)" "$inode"
inode=$(number /m/n/d3/f3)
mv "$src/m/n/d3" "$src/m/n/d4"
is 'a directory, too' "$(counts --quick --cross-mounts "$store")" '0 added, 0 removed, 1 moved'
is 'with what is in it' "$(number /m/n/d4/f3)" "$inode"
before=$(paths)
umount "$src/m/n"
nested=1 stays 'one of the disks' 'unread /m/n'
umount "$src/m"
stays 'none of them' 'unread /m'
is 'all is there' "$(paths)" "$before"
other_way 0
is 'they are mounted in their first order' "$(counts --cross-mounts "$store")" '0 added, 0 removed, 0 moved'
inode=$(number /m/n/d2/f1)
mv "$src/m/n/d2/f1" "$src/m/n/d4/f1"
is 'a file moves on' "$(counts --cross-mounts "$store")" '0 added, 0 removed, 1 moved'
is 'and is the same' "$(number /m/n/d4/f1)" "$inode"
rm -r "$src/m/n/d2"
ok 'what is gone from one' primefs refresh --cross-mounts "$store"
not_ok 'goes' primefs find "$store" /m/n/d2

# ---- disks that are mounted in each other's place, with the same marks at their roots ----
detach "$src/m/n" "$src/m"
begin
attach one "$src/m"
attach two "$src/k"
import
inodes="$(number /m/z) $(number /k/d4/f1)"
umount "$src/m" "$src/k"
mount "${loops[0]}" "$src/k"
mount "${loops[1]}" "$src/m"
is 'two disks change places' "$(counts --cross-mounts "$store")" '0 added, 0 removed, 2 moved'
is 'with their files' "$(number /k/z) $(number /m/d4/f1)" "$inodes"
before=$(paths)
detach "$src/m" "$src/k"
stays 'neither of them' 'unread /k unread /m'
mkdir "$src/l"
attach three "$src/l"
fill "$src/l"
exits 'another disk is none of them' 1 primefs refresh --cross-mounts "$store"
is 'though it has the number and the marks of one' "$(paths | tr ' ' '\n' | grep -v '^/l' | xargs)" "$before"
is 'and comes' "$(paths | tr ' ' '\n' | grep '^/l' | xargs)" '/l /l/x /l/x/y /l/z'
detach "$src/l"

# ---- stores that do not have it yet ----
begin
tmpfs "$src/m"
fill "$src/m"
import
as_before
ok 'an older store is refreshed' primefs refresh --cross-mounts "$store"
is 'and says what is mounted' "$(flagged) $(sql 'SELECT mode >> 16 FROM source_root')" '1 1'
umount "$src/m"
stays 'what is mounted no more' 'unread /m'
as_before
stays 'in an older store' 'unread /m'
is 'which does not say so before it was seen' "$(sql 'SELECT mode >> 16 FROM source_root')" 0
begin
tmpfs "$src/m"
fill "$src/m"
import
as_before "UPDATE source SET dev = dev + 4096 WHERE path = CAST('m/x' AS BLOB)"
ok 'an older store that has two numbers for one device' primefs refresh --cross-mounts "$store"
rm -r "$src/m/x"
ok 'when a directory goes' primefs refresh --cross-mounts "$store"
is 'does not take it for another filesystem' "$(paths)" '/d /d/e /d/e/f /k/ /m /m/z'
check_store
