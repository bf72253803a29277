#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Whose stores are believed about originals, and what a mount by root gives away of other users' files.
. "$(dirname "$0")/../lib.sh"
requires fuse root setfattr

mallory=65533 victim=65532
src=$work/src
mkdir -p "$src/open" "$src/shared"
echo public >"$src/open/x"
echo of the group >"$src/shared/acl"
chmod 600 "$src/shared/acl"
# as `setfacl -m u:65533:rw` makes it: owner rw, the user rw, group nothing, mask rw, others nothing
acl=0x0200000001000600ffffffff02000600fdff000004000000ffffffff10000600ffffffff20000000ffffffff
setfattr -n system.posix_acl_access -v "$acl" "$src/shared/acl" 2>/dev/null || skip_all 'skipped: a filesystem without ACLs'
chown -R "$victim" "$src"
others_read() { as "$mallory" cat "$1" 2>/dev/null || true; }
group_reads() { setpriv --reuid "$mallory" --regid 0 --clear-groups cat "$1" 2>/dev/null || true; }

# ---- the store's file
(umask 0 && primefs import "$src" "$store") >"$work/said"
is 'a new store is its owner'"'"'s alone' "$(stat -c %a "$store")" 600
ok 'what an ACL does not grant to all is told' grep -q '1 entries with an ACL have the mode' "$work/said"
ok 'or as --mode says' primefs import --quiet --mode=644 "$src" "$work/readable.pfs"
is 'whatever the umask' "$(stat -c %a "$work/readable.pfs")" 644
for mode in 755 400 8 644x 0777; do
	exits "no mode of a store: $mode" 2 primefs import --mode="$mode" "$src" "$work/none.pfs"
done
primefs optimize "$work/readable.pfs" >/dev/null
is 'which optimize keeps' "$(stat -c %a "$work/readable.pfs")" 644
mv "$work/readable.pfs" "$work/moved.pfs"

# ---- ACLs
mount_store
is 'an ACL for one user opens the file to no group' "$(stat -c %a "$mnt/shared/acl")$(group_reads "$mnt/shared/acl")" 600
is 'root reads it' "$(cat "$mnt/shared/acl")" 'of the group'
unmount_store
rm "$store"
primefs import --content=copy "$src" "$store" >/dev/null
mount_store
is 'by copy neither' "$(stat -c %a "$mnt/shared/acl")$(group_reads "$mnt/shared/acl")" 600
unmount_store
rm "$store"

# ---- files and folders that are replaced
primefs import "$src" "$store" >/dev/null
mount_store
chmod 644 "$mnt/open/x"
is 'others read it' "$(others_read "$mnt/open/x")" public
echo secret >"$work/secret"
chmod 600 "$work/secret"
rm "$src/open/x"
mv "$work/secret" "$src/open/x"
is 'another'"'"'s file in its place is closed to them' "$(others_read "$mnt/open/x")" ''
is 'as it is outside' "$(stat -c '%a %u' "$mnt/open/x")" '600 0'
mv "$src/open" "$work/away"
mkdir -m 700 "$src/open"
echo secret >"$src/open/x"
chmod 644 "$src/open/x"
not_ok 'a closed folder in place of another'"'"'s is not read through' cat "$mnt/open/x"
rm -r "$src/open"
mv "$work/away" "$src/open"
chmod 644 "$src/open/x"
is 'the old one is' "$(others_read "$mnt/open/x")" secret
chmod 700 "$src/open"
is 'a folder that is closed closes what is in it' "$(others_read "$mnt/open/x")" ''
chmod 755 "$src/open"
is 'until it is opened' "$(others_read "$mnt/open/x")" secret
unmount_store
check_store

# ---- stores of others, and copies
cp "$store" "$work/copy.pfs"
store=$work/copy.pfs
said=$(mount_store 2>&1)
is 'a copy is not believed: one line' "$(wc -l <<<"$said")" 1
ok 'that says how many, where and what to do' grep -q "2 files that are linked to originals below $src have no data: .*primefs import --trust" <<<"$said"
fails_with 'no data' 'No data available' cat "$mnt/open/x"
is 'names and sizes are there' "$(stat -c %s "$mnt/open/x")" 7
unmount_store
is 'nothing is said of links=no' "$(mount_store -o links=no 2>&1)" ''
fails_with 'which reads nothing either' 'No data available' cat "$mnt/open/x"
unmount_store
is 'nor of links=yes' "$(mount_store -o links=yes 2>&1)" ''
is 'which does' "$(cat "$mnt/open/x")" secret
unmount_store
fails_with 'another value is none' 'links: not auto, no or yes' primefs mount -o links=maybe "$store" "$mnt"
primefs import --trust "$store" >"$work/said"
ok 'import --trust shows what there is' grep -qx "  $src (2 files)" "$work/said"
is 'and is for ever' "$(mount_store 2>&1)$(cat "$mnt/open/x")" secret
unmount_store
primefs optimize "$store" >/dev/null
is 'optimize keeps the trust' "$(mount_store 2>&1)$(cat "$mnt/open/x")" secret
unmount_store
chown "$mallory" "$store"
mount_store 2>"$work/said"
ok 'another'"'"'s store is not believed' grep -q 'belongs to another user' "$work/said"
not_ok 'no data' cat "$mnt/open/x"
unmount_store
fails_with 'nor trusted for him' 'belongs to another user' primefs import --trust "$store"
chown 0 "$store"
chmod 660 "$store"
mount_store 2>"$work/said"
ok 'nor one that others may write' grep -q 'chmod go-w' "$work/said"
not_ok 'no data' cat "$mnt/open/x"
unmount_store
fails_with 'nor trusted' 'chmod go-w' primefs import --trust "$store"

# ---- an archive of what is not followed is not made in silence
chmod 600 "$store"
cp "$store" "$work/again.pfs"
if has_archives; then
	exits 'export of a copy leaves something out' 1 primefs export --format=tar -o "$work/out.tar" "$work/again.pfs"
	fails_with 'and says what to do' 'primefs import --trust' primefs export --format=tar -o "$work/out.tar" "$work/again.pfs"
fi

# ---- a store that was made to lead to /etc/shadow, in root's hands
if command -v sqlite3 >/dev/null; then
	mkdir -m 777 "$work/mallory"
	mkdir "$work/mallory/etc"
	echo bait >"$work/mallory/etc/shadow"
	chmod 644 "$work/mallory/etc/shadow"
	chown -R "$mallory" "$work/mallory"
	reachable_programs
	as "$mallory" primefs import --quiet "$work/mallory/etc" "$work/mallory/gift.pfs"
	read -r dev ino size <<<"$(stat -c '%d %i %s' /etc/shadow)"
	read -r root_dev root_ino <<<"$(stat -c '%d %i' /etc)"
	sqlite3 "$work/mallory/gift.pfs" "PRAGMA journal_mode = WAL; UPDATE source_root SET path = CAST('/etc' AS BLOB), dev = $root_dev, ino = $root_ino, handle = NULL, birth = NULL, mode = 16877, uid = 0, gid = 0;
		UPDATE source SET dev = $dev, ino = $ino, size = $size, mode = $((0100644)), uid = 0, gid = 0, handle = NULL, birth = NULL" >/dev/null
	store=$work/mallory/gift.pfs
	mount_store 2>/dev/null
	not_ok 'a store of another user leads nowhere' cat "$mnt/shadow"
	unmount_store
	store=$work/gift.pfs
	cp "$work/mallory/gift.pfs" "$store"
	mount_store 2>/dev/null
	not_ok 'nor does a copy of it' cat "$mnt/shadow"
	unmount_store
	(cd "$work/mallory" && tar c gift.pfs) | (cd "$work" && tar x --no-same-owner)
	mount_store 2>/dev/null
	not_ok 'nor one from an archive' cat "$mnt/shadow"
	unmount_store
	fails_with 'links=yes is not everybody'"'"'s' 'for its owner and root alone' \
		as "$mallory" primefs mount -o links=yes "$work/moved.pfs" "$work/mallory"
else
	skip 'a store that was tampered with: no sqlite3'
fi
