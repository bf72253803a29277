#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A store that primefs 1 made is refreshed, and gets the records that it lacks.
. "$(dirname "$0")/../lib.sh"
requires sqlite3

src=$work/src
mkdir -p "$src"/{a,b/deep}
echo one >"$src/a/one"
echo two >"$src/b/deep/two"
ln -s nowhere "$src/a/soft"
mkfifo "$src/fifo"
primefs import "$src" "$work/new.pfs" >/dev/null
sqlite3 "$store" 'PRAGMA page_size = 8192; PRAGMA journal_mode = WAL' >/dev/null
{
	cat "$top/meta/schema_v1.sql"
	echo "ATTACH '$work/new.pfs' AS new;"
	echo "INSERT INTO meta SELECT id, seed, seq, next_directory, next_other, directories, others, end_slot, feed_start FROM new.meta;"
	echo "INSERT INTO node SELECT prime, parent, slot, mode, uid, gid, flags & 5, size, blocks, mtime, atime, ctime, name, rdev, target FROM new.node;"
	echo "INSERT INTO source_root SELECT id, path, dev, ino FROM new.source_root;"
	echo "INSERT INTO source SELECT s.prime, root, path, dev, ino, s.size, s.mtime, s.ctime, s.mode, s.uid, s.gid FROM new.source AS s JOIN new.node AS n USING (prime) WHERE n.flags & 1;"
	echo "PRAGMA application_id = $((0x70667331)); PRAGMA user_version = 1;"
} | sqlite3 "$store"
show='%P|%y|%m|%T@|%l\n'
follows() {
	is "$1" "$(primefs find "$store" / -mindepth 1 -printf "$show" | sort)" \
		"$(cd "$src" && find . -mindepth 1 -printf "$show" | sort)"
}
prime() { primefs resolve "$store" <<<"$1" | cut -f1; }
records() { sqlite3 "file:$store?mode=ro" "SELECT count(*) FROM source"; }

fails_with 'it is not trusted at first' 'import --trust' primefs refresh "$store"
primefs import --trust "$store" >/dev/null
is 'files have records' "$(records)" 2
deep=$(prime /b/deep) two=$(prime /b/deep/two) soft=$(prime /a/soft)
echo more >>"$src/b/deep/two"
echo new >"$src/b/new"
ok 'refresh' primefs refresh "$store"
follows 'the store follows'
is 'nodes stay' "$(prime /b/deep) $(prime /b/deep/two) $(prime /a/soft)" "$deep $two $soft"
is 'all have records now' "$(records)" "$(($(find "$src" -printf . | wc -c)))"
is 'folders, too' "$(sqlite3 "file:$store?mode=ro" 'SELECT count(*) FROM source_dir WHERE handle IS NOT NULL OR birth IS NOT NULL')" 3
is 'and the root its rights' "$(sqlite3 "file:$store?mode=ro" 'SELECT mode IS NOT NULL FROM source_root')" 1
check_store
mv "$src/b/deep" "$src/moved"
mv "$src/a/soft" "$src/softer"
rm "$src/fifo"
primefs refresh "$store" >/dev/null
follows 'from then on like any other'
is 'and keeps what moves' "$(prime /moved) $(prime /moved/two) $(prime /softer)" "$deep $two $soft"
check_store
