#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# dupes: files with the same content, whatever their names, sizes and hashes say.
. "$(dirname "$0")/../lib.sh"

src=$work/src
mkdir -p "$src/a/b"
head -c 3000000 /dev/urandom >"$src/large"
cp "$src/large" "$src/a/copy"
cp "$src/large" "$src/a/b/other"
printf x | dd of="$src/a/b/other" bs=1 seek=2999999 conv=notrunc 2>/dev/null
[[ $(tail -c 1 "$src/large") != x ]] || printf y | dd of="$src/a/b/other" bs=1 seek=2999999 conv=notrunc 2>/dev/null
for name in one two a/three; do echo small >"$src/$name"; done
echo Small >"$src/a/four"
ln "$src/one" "$src/a/link"
: >"$src/empty"
: >"$src/a/empty"
field() { sed -n "s/.*\"$1\": *\\([0-9]*\\).*/\\1/p"; }

primefs import "$src" "$store" >/dev/null
found=$(primefs dupes "$store" | sort | xargs)
is 'files of one content' "$(tr ' ' '\n' <<<"$found" | grep -v -e one -e link | xargs)" '/a/copy /a/three /large /two'
is 'of the names of one file there is one' "$(tr ' ' '\n' <<<"$found" | grep -c -e one -e link)" 1
is 'the largest come first' "$(primefs dupes "$store" | head -n 2 | sort | xargs)" '/a/copy /large'
is 'groups are apart' "$(primefs dupes "$store" | grep -c '^$')" 2
is 'in a directory' "$(primefs dupes "$store" /a | xargs)" "$(tr ' ' '\n' <<<'/a/link /a/three' | xargs)"
is 'of a size' "$(primefs dupes --min-size=7 "$store" | sort | xargs)" '/a/copy /large'
is 'the sum' "$(primefs dupes -s "$store")" '5 files in 2 groups, 3000012 bytes to spare'
exits 'none' 1 primefs dupes --min-size=4000000 "$store"
fails_with 'a path that is not there' '/none: No such file' primefs dupes "$store" /none

# ---- hashes are kept ----
is 'what was hashed is not again' "$(primefs dupes --json "$store" | field hashed)" 0
ok 'refresh after that' bash -c "primefs refresh '$store' | grep -q ' 0 changed, 0 kept'"
hash_of() { primefs query --tsv "$store" "SELECT coalesce(hash, '-') FROM nodes WHERE path = '$1'" | tail -n 1; }
is 'the column has them' "$(primefs query --tsv "$store" 'SELECT count(hash), count(DISTINCT hash) FROM nodes' | tail -n 1)" "$(printf '7\t4')"
is 'equal files have the same' "$(hash_of /two)" "$(hash_of /a/three)"
if command -v xxhsum >/dev/null; then
	is 'which is that of xxhsum -H2' "$(hash_of /large)" "$(xxhsum -q -H2 "$src/large" | cut -d ' ' -f 1)"
else
	skip 'no xxhsum'
fi
is 'groups by it' "$(primefs query --tsv "$store" 'SELECT count(*) FROM nodes WHERE hash IS NOT NULL GROUP BY hash HAVING count(*) > 1 ORDER BY 1' | tail -n +2 | xargs)" '2 3'
is 'what nothing is as large as has none' "$(hash_of /empty)" -
fails_with 'nobody sets it' 'hash' primefs query "$store" "UPDATE nodes SET hash = 'x' WHERE path = '/two'"
is 'nor is it in *' "$(primefs query --tsv "$store" "SELECT count(*) FROM pragma_table_info('nodes') WHERE name LIKE '%hash%'" | tail -n 1)" 0
touch -d '2001-02-03' "$src/two"
primefs refresh "$store" >/dev/null
is 'of what has changed there is none' "$(hash_of /two)" -
echo small >"$src/new"
primefs refresh "$store" >/dev/null
is 'what changed is, and what is new' "$(primefs dupes --json "$store" | field hashed)" 2
chmod 400 "$store"
is 'a store that is not to be written' "$(primefs dupes --min-size=7 "$store" | sort | xargs)" '/a/copy /large'
chmod 600 "$store"
check_store

# ---- where nothing can be kept ----
mkdir "$work/closed"
primefs import -q --content=copy "$src" "$work/closed/own.pfs"
if ((EUID == 0)); then
	reachable_programs
	chown "$nobody" "$work/closed/own.pfs"
	is 'a folder that may not be written' "$(as "$nobody" primefs dupes --min-size=7 "$work/closed/own.pfs" 2>&1 | sort | xargs)" '/a/copy /large'
	if mkdir "$work/full" && mount -t tmpfs -o size=24m tmpfs "$work/full" 2>/dev/null; then
		primefs import -q --content=copy "$src" "$work/full/own.pfs"
		dd if=/dev/zero of="$work/full/rest" bs=64k 2>/dev/null || true
		dd if=/dev/zero bs=1 count=65536 2>/dev/null >>"$work/full/rest" || true
		is 'a full disk' "$(primefs dupes --min-size=7 "$work/full/own.pfs" 2>&1 | sort | xargs)" '/a/copy /large'
		mount -o remount,ro "$work/full"
		is 'a disk that is read only' "$(primefs dupes --min-size=7 "$work/full/own.pfs" 2>&1 | sort | xargs)" '/a/copy /large'
		umount "$work/full"
	else
		skip 'no tmpfs'
	fi
else
	chmod 500 "$work/closed"
	is 'a folder that may not be written' "$(primefs dupes --min-size=7 "$work/closed/own.pfs" 2>&1 | sort | xargs)" '/a/copy /large'
	chmod 700 "$work/closed"
	skip 'a full disk: needs root'
fi
rm -r "$work/closed"
fails_with 'a store that is not there' 'none.pfs: no such store' primefs dupes "$work/none.pfs"

# ---- two files that had one inode number, one after the other, as on disks that are mounted in turn ----
mkdir "$work/first" "$work/second"
for ((try = 0; try < 20; try++)); do # another process may have come between
	echo turn >"$work/first/f"
	was=$(stat -c %d:%i "$work/first/f")
	primefs import -q "$work/first" "$work/turns.pfs"
	rm "$work/first/f"
	echo turn >"$work/second/f"
	[[ $(stat -c %d:%i "$work/second/f") != "$was" ]] || break
	rm "$work/second/f" "$work/turns.pfs"
done
if ((try < 20)); then
	primefs import -q --at=/second "$work/second" "$work/turns.pfs"
	primefs import -q --at=/again "$work/second" "$work/turns.pfs"
	echo turn >"$work/first/f"
	is 'files of one number are two' "$(primefs dupes "$work/turns.pfs" | wc -l)" 3
	is 'but one that was imported twice is one' "$(primefs dupes "$work/turns.pfs" /again)$(primefs dupes "$work/turns.pfs" | grep -c -e second -e again)" 1
else
	skip 'inode numbers are not given anew here'
fi

# ---- names of one file ----
mkdir "$work/names"
echo name >"$work/names/a"
ln "$work/names/a" "$work/names/b"
echo name >"$work/names/c"
ln "$work/names/c" "$work/names/d"
primefs import -q "$work/names" "$work/names.pfs"
is 'one of each' "$(primefs dupes "$work/names.pfs" | xargs)" '/a /c'
if command -v sqlite3 >/dev/null; then
	forget() { # what is known of an original beside its number
		sqlite3 "$work/names.pfs" "UPDATE source SET $1 WHERE CAST(path AS TEXT) = 'a'"
		primefs import --trust "$work/names.pfs" >/dev/null
		primefs dupes "$work/names.pfs" | sort | xargs
	}
	is 'a record without a handle is compared by birth' "$(forget 'handle = NULL')" '/b /c'
	is 'one without either by its import' "$(forget 'handle = NULL, birth = NULL')" '/b /c'
	rm "$work/names.pfs"
	primefs import -q "$work/names" "$work/names.pfs"
else
	skip 'no sqlite3'
fi
rm "$work/names/a"
is 'a name that is gone is not needed' "$(primefs dupes "$work/names.pfs" 2>&1 | xargs)" '/b /c'
primefs import -q --content=copy "$work/names" "$work/copied.pfs"
is 'copies are files of their own' "$(primefs dupes "$work/copied.pfs" | sort | xargs)" '/b /c /d'

# ---- mounted, and content that is in the store ----
query_mounted() {
	exec 7<>"$mnt/.query/run"
	cat >&7
	tail -n 1 <&7
	exec 7>&-
}
if has_fuse; then
	mount_store
	cp "$src/large" "$mnt/written"
	is 'mounted' "$(primefs dupes --min-size=7 "$mnt" | sort | xargs)" '/a/copy /large /written'
	echo more >>"$mnt/written"
	is 'what is written is read anew' "$(primefs dupes --min-size=7 "$store" | sort | xargs)" '/a/copy /large'
	is 'a hash that was kept' "$(echo "SELECT count(hash) FROM nodes WHERE path = '/large'" | query_mounted)" 1
	if ((EUID == 0)); then
		# what a linked file's original lets others do is known only when somebody looks
		cp "$src/large" "$mnt/own"
		chmod 644 "$mnt/own"
		primefs dupes -s "$mnt" >/dev/null
		unmount_store
		mount_store -o query_others
		chmod 600 "$src/large" "$src/a/copy"
		query="SELECT count(hash) FROM nodes WHERE path IN ('/large', '/a/copy', '/own')"
		theirs() { as "$nobody" bash -c "$(declare -f query_mounted); mnt=$mnt; query_mounted"; }
		is 'root sees all' "$(echo "$query" | query_mounted)" 3
		is 'others those of content in the store' "$(echo "$query" | theirs)" 1
		not_ok 'not of what they cannot read' as "$nobody" cat "$mnt/large"
		is 'which they find, too' "$(echo "SELECT group_concat(path, ' ') FROM nodes WHERE hash IS NOT NULL" | theirs)" /own
		chmod 600 "$mnt/own"
		is 'as long as they may read it' "$(echo "$query" | theirs)" 0
	fi
	unmount_store
fi
rm "$store"
primefs import --content=none "$src" "$store" >/dev/null
exits 'files without content are not the same' 1 primefs dupes "$store"

# ---- what cannot be read is no answer ----
mkdir "$work/some"
echo equal >"$work/some/one"
echo equal >"$work/some/two"
rm "$store"
primefs import -q "$work/some" "$store"
cp "$store" copy.pfs
exits 'a copy, whose links are not followed' 3 primefs dupes copy.pfs
is 'which is said once, with what to do' "$(primefs dupes copy.pfs 2>&1 | grep -c 'copy.pfs: 2 files .* have no data: .*--trust')" 1
is 'and counted' "$(primefs dupes --json copy.pfs 2>/dev/null | field unread)" 2
primefs dupes -s "$store" >/dev/null
cp "$store" copy.pfs
exits 'a copy that has hashes' 3 primefs dupes copy.pfs
is 'each file of it is counted once' "$(primefs dupes --json copy.pfs 2>/dev/null | field unread)" 2
if ((EUID == 0)); then
	chmod 644 "$store"
	fails_with 'another user' 'the store belongs to another user' as "$nobody" primefs dupes "$store"
	exits 'by the status, too' 3 as "$nobody" primefs dupes "$store"
fi
rm "$work/some/two"
fails_with 'an original that is gone' '/two: cannot be read: its original is gone' primefs dupes "$store"
is 'the other one can be read' "$(primefs dupes --json "$store" 2>/dev/null | field unread)" 1
mv "$work/some" "$work/away"
exits 'a folder that is gone' 3 primefs dupes "$store"
is 'both are counted' "$(primefs dupes --json "$store" 2>/dev/null | field unread)" 2
fails_with 'also where the last one is told' '(/one|/two): cannot be read: .*\(the last of 2\)$' primefs dupes "$store"
