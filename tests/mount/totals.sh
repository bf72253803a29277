#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# user.primefs.subtree_*: what find and awk sum up, after whatever has changed.
. "$(dirname "$0")/../lib.sh"
requires fuse getfattr setfattr fallocate

# The totals of a directory: count, size, blocks, newest mtime in nanoseconds.
by_find() {
	find "$1" -printf '%y %s %b %T@\n' | awk '
		{ count++; blocks += $3; sub(/\./, "", $4) }
		$1 != "d" { size += $2 }
		{ time = sprintf("%20s", substr($4, 1, length($4) - 1)) } # of one length: compared as text
		NR == 1 || time > newest { newest = time }
		END { sub(/ */, "", newest); print count, size + 0, blocks, newest }'
}
total() { getfattr --only-values -n "user.primefs.subtree_$1" "$2" 2>/dev/null; }
by_attribute() {
	echo "$(total count "$1") $(total size "$1") $(total blocks "$1") $(total mtime "$1")"
}
compare() { # DESCRIPTION: all directories
	local dir wrong=0
	while IFS= read -r dir; do
		if [[ $(by_find "$dir") != "$(by_attribute "$dir")" ]]; then
			wrong=$((wrong + 1))
			echo "        $dir: find $(by_find "$dir"), attributes $(by_attribute "$dir")"
		fi
	done < <(find "$mnt" -type d)
	is "$1: every directory's totals" "$wrong" 0
}

mount_store
mkdir -p "$mnt"/a/{b/c,d}/e "$mnt/x"
for file in a/1 a/b/2 a/b/c/3 a/b/c/e/4 x/5; do
	head -c "$((RANDOM * 7))" /dev/zero >"$mnt/$file"
done
compare 'before they were ever asked for'
is 'a file answers for itself' "$(by_attribute "$mnt/a/1")" "$(by_find "$mnt/a/1")"

echo more >>"$mnt/a/b/2"
truncate -s 1000000 "$mnt/a/b/c/3"
fallocate -l 300000 "$mnt/x/5"
ln -s nowhere/at/all "$mnt/a/link"
mkfifo "$mnt/a/d/e/fifo"
compare 'written, truncated, allocated, made'

touch -d '2090-01-01 UTC' "$mnt/a/b/c/e/4" "$mnt/x"
touch -d '2001-01-01 UTC' "$mnt/a/1"
compare 'times set'
touch -d '2000-01-01 UTC' "$mnt/a/b/c/e/4"
touch -d '2000-01-01 UTC' "$mnt/x"
compare 'times set back'

mv "$mnt/a/b/c" "$mnt/x/moved"
mv "$mnt/a/1" "$mnt/x/5"
mv "$mnt/x/moved/e" "$mnt/x/moved/f"
compare 'moved and replaced'

cp -a "$mnt/x" "$mnt/a/copy"
compare 'copied'

exec 3<>"$mnt/a/copy/5"
rm "$mnt/a/copy/5"
echo still there >&3
compare 'removed while it is open'
exec 3>&-
rm -r "$mnt/a/d" "$mnt/x/moved"
compare 'removed'
before=$(by_attribute "$mnt")
remount_store
is 'a remount changes nothing' "$(by_attribute "$mnt")" "$before"
compare 'mounted again'

is 'they are never listed' "$(getfattr -d -m - "$mnt/a" 2>&1)" ''
for name in count size blocks mtime; do
	fails_with "subtree_$name cannot be set" 'not permitted' \
		setfattr -n "user.primefs.subtree_$name" -v 3 "$mnt/a"
done
fails_with 'there are no others' 'No such attribute' getfattr -n user.primefs.subtree_x "$mnt"
is 'st_size says nothing of them' "$(stat -c %s "$mnt")" 0
if ((EUID == 0)); then
	mkdir -m 700 "$mnt/closed"
	fails_with 'others do not learn what closed directories hold' 'Permission denied' \
		as "$nobody" getfattr -n user.primefs.subtree_size "$mnt"
	ok 'but may ask for the rest' as "$nobody" getfattr -n user.primefs.path "$mnt"
else
	skip 'what others see: needs root'
fi
unmount_store
check_store
