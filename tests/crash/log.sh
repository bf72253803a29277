#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The log that a crash leaves beside a store is played back into that store, and into no other in its place.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse getfattr

crash() { # leaves a log with a part of the changes, and, as old.pfs, the store as it was some groups before
	local pid i
	rm -f "$store"*
	seq 3000 | sed 's|^|/d/|' | primefs import -q --format=paths - "$store"
	mount_store
	cp "$store" old.pfs
	for ((i = 0; i < 3; i++)); do
		touch "$mnt/before$i"
		sync "$mnt"
	done
	remount_store
	touch "$mnt/after"
	rm "$mnt"/d/1*
	sync "$mnt"
	pid=$(getfattr --absolute-names --only-values -n user.primefs.daemon "$mnt" | cut -d' ' -f1)
	kill -9 "$pid"
	wait_for 5 gone "$pid"
	primefs umount "$mnt"
	test -s "$store-wal"
}
nodes() { primefs query --csv "$1" 'SELECT count(*) FROM nodes' | tail -n 1 | tr -d '\r'; }
refused() { # DESCRIPTION: every command leaves the store as it is
	cp "$store" is.pfs
	for command in check info export optimize; do
		fails_with "$1: $command" 'its log .-wal. was left by another store' primefs "$command" "$store"
	done
	fails_with "$1: mount" 'its log .-wal. was left by another store' primefs mount "$store" "$mnt"
	ok "$1: nothing is changed" cmp "$store" is.pfs
}

crash
is 'its own log is played back' "$(nodes "$store")" "$((3000 + 6 - 1111))"
check_store

crash
cp "$store" moved.pfs
mv "$store-wal" moved.pfs-wal
is 'also where both were moved' "$(nodes moved.pfs)" "$((3000 + 6 - 1111))"

# A log keeps the name by which the store was opened: who renames that must hear of it.
rm -f "$store"*
mount_in_foreground
touch "$mnt/before"
sync "$mnt"
mv "$store" renamed.pfs
touch "$mnt/after" "$mnt/then"
sync "$mnt"
rm "$mnt/then"
sync "$mnt"
kill -9 "$daemon"
wait_for 5 gone "$daemon"
primefs umount "$mnt"
is 'that a store was renamed while it is mounted is told once' "$(grep -c "after a crash rename .*$store-wal likewise" daemon.log)" 1
mv "$store-wal" renamed.pfs-wal
is 'and with its log it has what was committed' \
	"$(primefs export --format=paths renamed.pfs | sort | tr '\n' ' ')" '/after /before '
rm -f "$store"*
store=renamed.pfs check_store

crash
seq 5000 | sed 's|^|/e/|' | primefs import -q --format=paths - other.pfs
mv other.pfs "$store"
refused 'another store in its place'
rm "$store-wal"
check_store
is 'which is whole without that log' "$(nodes "$store")" 5002

crash
cp old.pfs "$store"
refused 'a backup of other times'
rm "$store-wal"
check_store
is 'which is whole, too' "$(nodes "$store")" 3002

# Copies of one store that were changed separately have groups of the same numbers.
seq 3000 | sed 's|^|/d/|' | primefs import -q --format=paths - copy.pfs
cp copy.pfs "$store"
mount_in_foreground
for i in 1 2 3 4 5; do touch "$mnt/one$i" && sync "$mnt"; done
kill -9 "$daemon"
wait_for 5 gone "$daemon"
primefs umount "$mnt"
primefs mount copy.pfs "$mnt"
for i in 1 2 3; do touch "$mnt/other$i" && sync "$mnt"; done
primefs umount --wait=60 "$mnt"
mv copy.pfs "$store"
refused 'a copy with other changes'
rm "$store-wal"
check_store
is 'which has its own' "$(nodes "$store")" 3005

crash
rm "$store-wal"
for size in 4096 8192; do
	python 'the log of another database' - "$size" "$store-wal" <<'END'
import os, shutil, sqlite3, sys
db = sqlite3.connect("other.db")
db.executescript(f"PRAGMA page_size = {sys.argv[1]}; PRAGMA journal_mode = wal; CREATE TABLE a (b); INSERT INTO a VALUES (1)")
shutil.copy("other.db-wal", sys.argv[2])
db.close()
os.remove("other.db")
END
	[[ ! -e $store-wal ]] || refused "the log of another database, pages of $size"
done

crash
rm "$store"
empty_store
is 'an import clears it away' "$(nodes "$store")" 1

# What lies behind the last group may be of one that was not committed and is older: pages that did not fit into SQLite's
# cache. Here the page with the row of meta is put there as an earlier group wrote it, as SQLite leaves it then.
crash
python 'an older page lies behind its last group' - "$store-wal" <<'END'
import struct, sys
with open(sys.argv[1], "r+b") as log:
	head = log.read(32)
	size = struct.unpack(">I", head[8:12])[0]
	frames, at = [], 32
	while len(frame := log.read(24 + size)) == 24 + size and frame[8:16] == head[16:24]:
		frames.append(frame)
	old = next(frame for frame in frames if struct.unpack(">I", frame[:4])[0] == 2)
	log.seek(32 + len(frames) * (24 + size))
	log.write(old)
	log.truncate()
END
cp "$store-wal" kept-wal
mount_store
primefs umount "$mnt" # which plays the log back, whole
cp kept-wal "$store-wal"
is 'what was not committed says nothing' "$(nodes "$store")" "$((3000 + 6 - 1111))"
check_store

# A crash may leave the header of the next log's first frame with the page that the log had there before.
crash
cp "$store-wal" kept-wal
mount_store
primefs umount "$mnt"
python 'a new log has an old page' - kept-wal "$store-wal" <<'END'
import struct, sys
log = open(sys.argv[1], "rb").read()
def checksum(words, a=0, b=0):
	for i in range(0, len(words), 2):
		a = (a + words[i] + b) & 0xffffffff
		b = (b + words[i + 1] + a) & 0xffffffff
	return struct.pack(">II", a, b)
size, frame = struct.unpack(">I", log[8:12])[0], 32
while struct.unpack(">I", log[frame:frame + 4])[0] != 2:
	frame += 24 + size
head = log[:12] + struct.pack(">I", 9) + b"anothers"
order = ">" if log[3] & 1 else "<"
with open(sys.argv[2], "wb") as new:
	new.write(head + checksum(struct.unpack(order + "6I", head)))
	new.write(log[frame:frame + 8] + b"anothers" + log[frame + 16:frame + 24 + size])
END
is 'which says nothing, either' "$(nodes "$store")" "$((3000 + 6 - 1111))"
check_store
