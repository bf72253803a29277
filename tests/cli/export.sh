#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# export: what was imported comes out again, and goes in again the same.
. "$(dirname "$0")/../lib.sh"

cat >"$work/in.csv" <<'END'
path,count,share,code,note
/a,1,0.5,007,plain
/a/b,-20,1e-07,10,"with ""quotes"", and
a line end"
/c d,9223372036854775807,2.5,0x1f,
END
primefs import --path=path "$work/in.csv" "$store" >/dev/null
ok 'export to csv' bash -c "primefs export --format=csv '$store' >'$work/out.csv'"
primefs import --path=path "$work/out.csv" "$work/second.pfs" >/dev/null
ok 'import of it, and export again' bash -c "primefs export --format=csv '$work/second.pfs' >'$work/again.csv'"
for value in '-20' '1e-07' 007 9223372036854775807 0x1f '"with ""quotes"", and'; do
	ok "has $value" grep -qF -- "$value" "$work/again.csv"
done
is 'the same paths' "$(primefs export --format=paths "$work/second.pfs" | sort)" \
	"$(primefs export --format=paths "$store" | sort)"
ok 'export to paths is import of paths' bash -c "primefs export --format=paths '$store' >'$work/paths'"
primefs import --format=paths "$work/paths" "$work/third.pfs" >/dev/null
is 'the same' "$(primefs export --format=paths "$work/third.pfs")" "$(cat "$work/paths")"
printf '/\t1\n/d/\t2\n' | primefs import --columns=n - "$work/root.pfs" >/dev/null
fails_with 'an attribute that there is not' '--columns=nn: no node has this attribute' primefs export --columns=n,nn "$work/root.pfs"
fails_with 'nor is a column of nodes' 'for primefs query' primefs export --format=csv --columns=size "$work/root.pfs"
is "the root's attributes are there" "$(primefs export --columns=n "$work/root.pfs" | xargs)" '/ 1 /d/ 2'
is 'in a table, too' "$(primefs export --format=csv "$work/root.pfs" | xargs)" 'path,n /,1 /d/,2'
is 'and go in again' "$(primefs export --format=csv "$work/root.pfs" |
	{ primefs import -q - "$work/root2.pfs" && primefs export --columns=n "$work/root2.pfs"; } | xargs)" '/ 1 /d/ 2'
fails_with 'the store itself is not written over' 'is a store' primefs export -o "$work/./root.pfs" "$work/root.pfs"
fails_with 'nor another one' 'root.pfs: is a store; name another file' primefs export -o "$work/root.pfs" "$work/root2.pfs"
ok 'and is whole' primefs check "$work/root.pfs"
for suffix in -wal -shm -journal .img .img.part .sock .part-1-2; do
	fails_with "nor what may lie beside one: $suffix" 'a store has beside it' \
		primefs export -o "$work/root.pfs$suffix" "$work/root2.pfs"
	ok 'which is not made' test ! -e "$work/root.pfs$suffix"
	fails_with 'by an import, too' 'a store has beside it' primefs import "$work/in.csv" "$work/root.pfs$suffix"
done
ln -s root.pfs-journal "$work/nowhere"
fails_with 'nor by a symlink to what is not there' 'a store has beside it' \
	primefs export -o "$work/nowhere" "$work/root2.pfs"
ok 'which is not made' test ! -e "$work/root.pfs-journal"
ok 'a file named for what is no store is one like any other' \
	primefs export -o "$work/paths-wal" "$work/root.pfs"

fails_with 'a format there is not' 'nonsense' primefs export --format=nonsense "$store"
exits 'is wrong usage' 2 primefs export --format=nonsense "$store"
fails_with 'a full disk is noticed' 'No space' bash -c "primefs export --format=paths '$store' >/dev/full"
formats=(paths csv)
if has_archives; then formats+=(tar); else skip 'skipped: archives: built without libarchive'; fi
for format in "${formats[@]}"; do
	for out in '>/dev/full' '-o /dev/full'; do
		is "in one line that names no other file: $format $out" \
			"$(bash -c "primefs export --format=$format '$store' $out" 2>&1 |
				sed 's,.*/dev/full:,output:,; s,.*standard output:,output:,')" 'output: No space left on device'
	done
done
if has_fuse; then
	mount_store
	echo new >"$mnt/new"
	sync "$mnt/new"
	ln -s "$store-wal" "$work/log"
	for name in "$store-wal" "$store-shm" "$work/log"; do
		fails_with "the files of a mounted store stay: ${name##*/}" 'a store has beside it' \
			primefs export -o "$name" "$mnt"
	done
	if output=$(primefs export --format=paths "$store" 2>&1); then
		ok 'a mounted store is exported as it is' grep -qx /new <<<"$output"
	else
		ok 'a mounted store is refused in one line' test "$(wc -l <<<"$output")" -eq 1
	fi
	unmount_store
	ok 'and once it is unmounted' grep -qx /new <(primefs export --format=paths "$store")
fi
