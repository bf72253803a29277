#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A mount point knows the filesystem that was mounted there: another one in its place is not mixed with it.
. "$(dirname "$0")/../lib.sh"
requires root sqlite3
in_own_namespace || skip_all 'skipped: no mount namespaces'

src=$work/src
paths() { primefs export --format=paths "$store" | xargs; }
change() { primefs query "$store" "$@" >/dev/null; }
number() { primefs query "$store" "SELECT ino FROM nodes WHERE path = '$1'" | tail -n 1; }
note() { primefs query "$store" "SELECT note FROM nodes WHERE path = '$1'" | tail -n 1; }
sql() { sqlite3 "$store" "$@"; }
said() { primefs refresh -l "$@" | sed '$d'; }
counts() { (primefs refresh --cross-mounts "$@" || true) | sed -n 's/.*: \(.* added, .* removed, .* moved\),.*/\1/p'; }
known() { sql "SELECT count(*) FROM attr JOIN attr_name ON id = attr.name WHERE CAST(attr_name.name AS TEXT) = 'primefs.filesystem'"; }
import() { primefs import -q --cross-mounts --exclude=lost+found "$src" "$store"; }
unread='its filesystem is not mounted there'
begin() { # a source without anything, and no store
	while read -r _ _ _ _ at _; do umount "$at"; done < <(grep -F " $src/" /proc/self/mountinfo | tac)
	rm -rf --one-file-system "$src" "$store"*
	mkdir -p "$src"/{m,k}
}
fill() { # DIRECTORY WHAT: gets files of the same names as any other
	mkdir -p "$1/x"
	for name in x/y z "$2"; do echo "$2" >"$1/$name"; done
}
stays() { # WHAT: what refreshes find at the mount point is another filesystem, and all is left
	local before how options
	before=$(paths)
	for how in --cross-mounts '--cross-mounts --quick' '--cross-mounts --dry-run'; do
		for path in '' /m /m/x /m/x/y /m/z; do
			read -ra options <<<"$how $store $path"
			is "$1: $how $path" "$(said "${options[@]}")" "unread /m: $unread"
		done
	done
	is 'all stays' "$(paths)" "$before"
	ok 'a refresh that stays out of it says nothing' primefs refresh "$store"
	is 'and leaves it, too' "$(paths)" "$before"
	exits 'which is no success otherwise' 1 primefs refresh --cross-mounts "$store"
}
begin
mount -t tmpfs none "$src/m" 2>/dev/null || skip_all 'skipped: nothing can be mounted'

# ---- what has nothing to be known by ----
fill "$src/m" first
import
is 'a tmpfs is not known' "$(known)" 0
umount "$src/m"
mount -t tmpfs none "$src/m"
fill "$src/m" second
ok 'another one is followed' primefs refresh --cross-mounts "$store"
is 'as if it was the same' "$(paths)" '/k/ /m /m/second /m/x /m/x/y /m/z'

# ---- an overlay ----
overlay() { # NAME DIRECTORY
	mkdir -p "$work/$1"/{lower,upper,work}
	mount -t overlay -o "uuid=on,lowerdir=$work/$1/lower,upperdir=$work/$1/upper,workdir=$work/$1/work" none "$2"
}
begin
if overlay first "$src/m" 2>/dev/null && fill "$src/m" first && import && (($(known))); then
	umount "$src/m"
	overlay first "$src/m"
	is 'an overlay is mounted again' "$(counts "$store")" '0 added, 0 removed, 0 moved'
	umount "$src/m"
	overlay second "$src/m"
	fill "$src/m" second
	stays 'another overlay'
	umount "$src/m"
	overlay first "$src/m"
	ok 'it is back' primefs refresh --cross-mounts "$store"
else
	skip 'skipped: no overlay that is known'
fi

# ---- disks ----
disk() { # NAME: makes one, which has the same mark at its root as the others
	truncate -s 16M "$work/$1"
	E2FSPROGS_FAKE_TIME=1700000000 mkfs.ext4 -q -U "$2" "$work/$1"
}
attach() { # NAME DIRECTORY
	mount -o loop "$work/$1" "$2"
}
begin
if ! command -v mkfs.ext4 >/dev/null || ! disk one 11111111-2222-3333-4444-555555555555 ||
	! disk two 11111111-2222-3333-4444-666666666666 || ! attach two "$src/m" 2>/dev/null; then
	skip 'skipped: no disk can be mounted'
	check_store
	exit
fi
fill "$src/m" two
umount "$src/m"
attach one "$src/m"
fill "$src/m" one
setfattr -n user.note -v 'of one' "$src/m/z"
umount "$src/m"
nodes='/k/ /m /m/one /m/x /m/x/y /m/z'
one() { # a store of a source with the first disk
	begin
	attach one "$src/m"
	import
	inode=$(number /m/z)
}
exchange() { # NAME: another disk comes in the place of the one that is there
	umount "$src/m"
	attach "$1" "$src/m"
}
is_one() { is 'its nodes are the same' "$(paths) $(number /m/z) $(note /m/z)" "$nodes $inode of one"; }

one
is 'a disk is known' "$(known)" 1
is 'from its import on' "$(counts "$store")" '0 added, 0 removed, 0 moved'
is 'which nobody sees' "$(primefs query --tsv "$store" 'PRAGMA table_info(nodes)' | grep -c filesystem || true)" 0
done=0
for n in {4..24}; do
	rm -f "$store"*
	(ulimit -n "$n" && import) 2>/dev/null || continue
	is "also from one with $n descriptors" "$(known)" 1
	done=$((done + 1))
done
ok 'of which there are some, and not all' test "$done" -gt 0 -a "$done" -lt 21
exchange two
stays 'another disk'
umount "$src/m"
mount -t tmpfs none "$src/m"
fill "$src/m" none
stays 'something that is not known'
exchange one
is 'the disk comes back' "$(counts "$store")" '0 added, 0 removed, 0 moved'
is_one
touch "$src/m/more"
ok 'it has something new' primefs refresh --cross-mounts "$store"
rm "$src/m/more"
ok 'and loses it' primefs refresh --cross-mounts "$store"
is_one
umount "$src/m"
is 'without any it is not seen' "$(said --cross-mounts "$store")" "unread /m: $unread"

one
umount "$src/m"
attach one "$src/k"
attach two "$src/m"
ok 'a disk is mounted elsewhere, and another one in its place' primefs refresh --cross-mounts "$store"
is 'it has moved, and the other one comes' "$(paths)" '/k /k/one /k/x /k/x/y /k/z /m /m/two /m/x /m/x/y /m/z'
is 'with its nodes' "$(number /k/z) $(note /k/z) $(note /m/z)" "$inode of one "
is 'and both are known' "$(known)" 2

one
exchange two
change "UPDATE nodes SET path = '/k/m' WHERE path = '/m'"
change "UPDATE nodes SET path = '/k/zz' WHERE path = '/k/m/z'"
for how in '' --quick -n; do
	# shellcheck disable=SC2086
	is "a disk that the store has moved is not seen either $how" \
		"$(said --cross-mounts $how "$store" | cut -d: -f1 | sort | xargs)" 'unread /k/m unread /k/zz'
done
is 'and stays' "$(paths) $(number /k/zz) $(note /k/zz)" "/k /k/m /k/m/one /k/m/x /k/m/x/y /k/zz $inode of one"

one
exchange two
ok 'the disk will not come back' primefs refresh --cross-mounts --unmounted "$store"
is 'another one is followed in its place' "$(paths)" '/k/ /m /m/two /m/x /m/x/y /m/z'
ok 'from then on without a word' primefs refresh --cross-mounts "$store"
exchange one
stays 'the former one'

one
change "DELETE FROM nodes WHERE path = '/m/z' OR under(ino, '/m/x')"
exchange two
sleep 1.1
ok 'a disk of which the store has removed something' primefs refresh --cross-mounts --unmounted "$store"
is 'gives way to another one with all that this has' "$(paths)" '/k/ /m /m/two /m/x /m/x/y /m/z'

# ---- stores that do not know it yet ----
forget() {
	sql "DELETE FROM attr WHERE name IN (SELECT id FROM attr_name WHERE CAST(name AS TEXT) = 'primefs.filesystem')"
	rm -f "$store.img"
}
for how in '' --quick; do
	one
	forget
	is 'a dry run of an older store' "$(counts -n "$store")" '0 added, 0 removed, 0 moved'
	is 'does not learn it' "$(known)" 0
	# shellcheck disable=SC2086
	is "a refresh $how" "$(counts $how "$store")" '0 added, 0 removed, 0 moved'
	is 'does' "$(known)" 1
	exchange two
	stays 'from then on another disk'
done
one
forget
exchange two
ok 'before that another one is followed' primefs refresh --cross-mounts "$store"
is 'as if it was the same' "$(paths)" '/k/ /m /m/two /m/x /m/x/y /m/z'
is 'and known' "$(known)" 1
umount "$src/m"
ok 'until it will not be mounted again' primefs refresh --unmounted "$store"
is 'and is forgotten' "$(known)" 0
check_store
