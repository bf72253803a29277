#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Files of many gigabytes, directories of very many entries (a million with --long), many inodes and
# open files without a descriptor each.
# timeout: 240
. "$(dirname "$0")/../lib.sh"
requires fuse

entries=50000
((!PFS_LONG)) || entries=1000000

mount_in_foreground

# A sparse file of 100 GB with something at odd places.
for place in 0 1 4294967295 8589934592 99999999990; do
	printf 'at %011d' "$place" | dd of="$mnt/sparse" bs=1 seek="$place" conv=notrunc status=none oflag=seek_bytes
done
is 'its size' "$(stat -c %s "$mnt/sparse")" $((99999999990 + 14))
at() { dd if="$mnt/sparse" bs=14 count=1 skip="$1" iflag=skip_bytes status=none; }
is 'behind 8 GB' "$(at 8589934592)" 'at 08589934592'
is 'across 4 GB' "$(at 4294967295)" 'at 04294967295'
is 'at its end' "$(at 99999999990)" 'at 99999999990'
ok 'takes no room' test "$(stat -c %b "$mnt/sparse")" -lt 10000
ok 'is cut' truncate -s 5000000000 "$mnt/sparse"
is 'still there' "$(at 4294967295)" 'at 04294967295'
ok 'fsync' sync "$mnt/sparse"

# A dense one, larger than what may be pending.
size=$((400 << 20))
((!PFS_LONG)) || size=$((6 << 30))
sum() { sha256sum | cut -d' ' -f1; }
stream() { openssl enc -aes-128-ctr -nosalt -K 0 -iv 0 </dev/zero 2>/dev/null | head -c "$size"; }
if command -v openssl >/dev/null; then
	stream >"$mnt/dense" || true
	is "$((size >> 20)) MB" "$(sum <"$mnt/dense")" "$(stream | sum)"
	remounted() { unmount_store && mount_in_foreground; }
	ok 'unmount' unmount_store
	mount_in_foreground
	is 'after a remount' "$(sum <"$mnt/dense")" "$(stream | sum)"
	rm "$mnt/dense"
else
	skip 'no openssl for a stream of bytes'
fi

# Names.
mkdir "$mnt/many"
(cd "$mnt/many" && seq 1 "$entries" | sed 's/.*/entry-&-of-many/' | xargs touch)
is "$entries entries are listed" "$(find "$mnt/many" -mindepth 1 | wc -l)" "$entries"
is 'each once' "$(find "$mnt/many" -mindepth 1 -printf '%f\n' | sort -u | wc -l)" "$entries"
ok 'one is found' test -e "$mnt/many/entry-$((entries / 2))-of-many"
not_ok 'one that is not there is not' test -e "$mnt/many/entry-0-of-many"
descriptors() { find "/proc/$daemon/fd" -mindepth 1 | wc -l; }
ok "cached inodes need no descriptors ($(descriptors))" test "$(descriptors)" -lt 100
unmount_store
mount_in_foreground
is 'all there after a remount' "$(find "$mnt/many" -type f -size 0 | wc -l)" "$entries"

# Open files.
cat >"$work/hold" <<'END'
ulimit -n 3000 2>/dev/null || ulimit -n "$(ulimit -Hn)"
count=0
for ((i = 1; i <= 2500; i++)); do
	exec {fd}<"$1/entry-$i-of-many" || break
	count=$((count + 1))
done
echo "$count $(find "/proc/$2/fd" -mindepth 1 | wc -l)"
END
read -r held used <<<"$(bash "$work/hold" "$mnt/many" "$daemon" 2>/dev/null)"
ok "open files neither ($used for $held)" test "$used" -lt 100
ok 'and there were many' test "$held" -gt 500

(cd "$mnt/many" && find . -mindepth 1 -delete)
ok 'all are removed' rmdir "$mnt/many"
unmount_store
check_store
