#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A store of an older version of the format: mounted read-only it stays as it is, the first mount for writing
# brings it up to today's and says so.
. "$(dirname "$0")/../lib.sh"
requires fuse sqlite3

mkdir -p "$work/src/d"
echo text >"$work/src/d/f"

# old_store: $store becomes what primefs 1 would have made of the source; old_store 2: of version 2.
old_store() {
	local version=${1:-1} stamp='' tables='node chunk attr_name attr'
	if ((version == 2)); then
		stamp=', handle, birth'
		tables+=' source_root source source_dir register hard_link'
	fi
	rm -f "$store"
	primefs import --content=copy "$work/src" "$work/new.pfs" >/dev/null
	sqlite3 "$store" "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL" >/dev/null
	sqlite3 "$store" <"$top/meta/schema_v$version.sql"
	{
		echo "ATTACH '$work/new.pfs' AS new;"
		echo "INSERT INTO meta SELECT id, seed, seq, next_directory, next_other, directories, others, end_slot, feed_start$stamp FROM new.meta;"
		for table in $tables; do
			echo "INSERT INTO $table SELECT $(sqlite3 "$store" \
				"SELECT group_concat(name) FROM pragma_table_info('$table')") FROM new.$table;"
		done
		echo "PRAGMA application_id = $((0x70667331)); PRAGMA user_version = $version;"
	} >"$work/old.sql"
	sqlite3 "$store" <"$work/old.sql"
	rm "$work/new.pfs" "$work/old.sql"
}
version() { sqlite3 "file:$1?mode=ro" 'PRAGMA user_version'; }

old_store
sum=$(sha256sum <"$store")
check_store
is 'info knows the version' "$(primefs info --json "$store" | grep -o '"schema": *[0-9]*' | grep -o '[0-9]*')" 1
is 'find reads it' "$(primefs find "$store" -name f)" "$(primefs find "$store" -type f)"
is 'mounting read-only says nothing' "$(mount_store -o ro 2>&1)" ''
is 'and reads' "$(cat "$mnt/d/f")" text
not_ok 'and does not write' touch "$mnt/d/f"
unmount_store
is 'the file is as it was' "$(sha256sum <"$store")" "$sum"

said=$(mount_store 2>&1)
is 'mounting for writing says one line' "$(wc -l <<<"$said")" 1
ok 'with the store and the versions' grep -qF "$store: is brought up from version 1 of the format to " <<<"$said"
is 'reads' "$(cat "$mnt/d/f")" text
echo more >>"$mnt/d/f"
unmount_store
ok 'the store is of a newer version' test "$(version "$store")" -gt 1
check_store
is 'the next time it says nothing' "$(mount_store 2>&1)" ''
is 'and what was written is there' "$(cat "$mnt/d/f")" $'text\nmore'
unmount_store

# A crash after that leaves a log that is known to be its own.
old_store
mv "$store" other.pfs
old_store
mount_in_foreground
kill -9 "$daemon"
wait_for 5 gone "$daemon"
primefs umount "$mnt"
cp "$store" own.pfs
cp "$store-wal" own.pfs-wal
mv other.pfs "$store"
fails_with 'a store put in its place is not given that log' 'its log .-wal. was left by another store' primefs check "$store"
ok 'it itself is whole with it' primefs check own.pfs
rm "$store-wal"
check_store

# Other commands that write do so, too.
old_store
is 'a query that only reads changes nothing' "$(primefs query "$store" 'SELECT count(*) FROM nodes' 2>&1 | tail -n 1)$(version "$store")" 31
primefs query "$store" "UPDATE nodes SET mtime = 0 WHERE name = 'f'" >/dev/null 2>"$work/said"
ok 'one that changes something says what happens' grep -q 'brought up from version 1' "$work/said"
ok 'and it has happened' test "$(version "$store")" -gt 1
old_store
echo /new >"$work/list"
primefs import --quiet --format=paths --at=/d "$work/list" "$store" 2>"$work/said"
ok 'so does import --at' grep -q 'brought up from version 1' "$work/said"
check_store
old_store
primefs optimize "$store" >/dev/null 2>"$work/said"
ok 'and optimize' grep -q 'brought up from version 1' "$work/said"
check_store

# Version 2.
old_store 2
sum=$(sha256sum <"$store")
check_store
is 'version 2 is read as it is' "$(primefs find "$store" -name f)$(sha256sum <"$store")" "$(primefs find "$store" -type f)$sum"
said=$(mount_store 2>&1)
ok 'and brought up' grep -q 'brought up from version 2 ' <<<"$said"
is 'and reads' "$(cat "$mnt/d/f")" text
echo more >>"$mnt/d/f"
unmount_store
is 'to that of a new store' "$(version "$store")" "$(primefs import "$work/src" "$work/new.pfs" >/dev/null; version "$work/new.pfs")"
check_store
rm "$work/new.pfs"
old_store 2
mount_store -o history=1h 2>/dev/null
since=$(date +%s.%N)
mkdir "$mnt/after"
unmount_store
is 'history begins where it is brought up' "$(primefs diff "$store" "$since" || true)" 'added /after'
check_store

# No room for it.
if ((EUID == 0)) && mkdir "$work/small" && mount -t tmpfs -o size=4m tmpfs "$work/small"; then
	old_store
	mv "$store" "$work/small/store.pfs"
	store=$work/small/store.pfs
	head -c 100m /dev/zero >"$work/small/filler" 2>/dev/null || true
	sum=$(sha256sum <"$store")
	fails_with 'a full disk: one line that says what to do' 'no room .* free 2 MiB, or open it read-only' primefs mount "$store" "$mnt"
	is 'nothing has changed' "$(sha256sum <"$store")" "$sum"
	ok 'read-only it can be mounted' mount_store -o ro
	is 'and read' "$(cat "$mnt/d/f")" text
	unmount_store
	rm "$work/small/filler"
	ok 'with room it can be mounted' mount_store
	unmount_store
	ok 'and is of a newer version' test "$(version "$store")" -gt 1
	check_store
else
	skip 'a full disk: needs root'
fi
