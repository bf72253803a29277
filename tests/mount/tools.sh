#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Ordinary tools at work: cp, tar, find, sed -i, git, a compiler, a database.
# timeout: 240
. "$(dirname "$0")/../lib.sh"
requires fuse

mount_store
src=$work/src
mkdir -p "$src/a/b c/d" "$src/empty"
for ((i = 0; i < 50; i++)); do head -c $((i * 999)) /dev/urandom >"$src/a/b c/file $i"; done
ln -s ../a "$src/empty/link"
ln -s /nowhere "$src/dangling"
mkfifo "$src/fifo"
chmod 2750 "$src/a/b c"
printf 'line\n%.0s' {1..100} >"$src/text"
touch -d '1969-07-20 20:17:40.5' "$src/text"
listing() { (cd "$1" && find . -printf '%P %y %m %T@ %l\n' | sort && find . -type f -exec sha256sum {} + | sort); }
wanted=$(listing "$src")

ok 'cp -a' cp -a "$src" "$mnt/copy"
is 'gives the same' "$(listing "$mnt/copy")" "$wanted"
ok 'tar in' bash -c "tar --format=posix -C '$src' -cf - . | tar -C '$mnt' --one-top-level=untarred -xpf -"
is 'gives the same' "$(listing "$mnt/untarred")" "$wanted"
tar --format=posix -C "$mnt/untarred" -cf "$work/out.tar" .
mkdir "$work/back"
tar -C "$work/back" -xpf "$work/out.tar"
is 'tar out gives the same' "$(listing "$work/back")" "$wanted"
ok 'diff -r finds none' diff -r --no-dereference -x fifo "$src" "$mnt/copy"
ok 'mv out' mv "$mnt/untarred" "$work/moved"
is 'gives the same' "$(listing "$work/moved")" "$wanted"
if command -v rsync >/dev/null; then
	ok 'rsync' rsync -a "$src/" "$mnt/rsynced/"
	is 'finds nothing to do the second time' "$(rsync -ai "$src/" "$mnt/rsynced/")" ''
fi
sed -i 's/line/LINE/' "$mnt/copy/text"
is 'sed -i' "$(grep -c LINE "$mnt/copy/text")" 100
is 'find by size' "$(cd "$mnt/copy" && find . -size +40k | wc -l)" "$(cd "$src" && find . -size +40k | wc -l)"
is 'du counts bytes' "$(du -sb --apparent-size "$mnt/copy/a/b c/file 9" | cut -f1)" 8991
ok 'dd with direct I/O' dd if=/dev/urandom of="$mnt/direct" bs=1000 count=100 oflag=direct status=none
is 'its size' "$(stat -c %s "$mnt/direct")" 100000

if command -v git >/dev/null; then
	git() { command git -c user.name=n -c user.email=e -c init.defaultBranch=main "$@"; }
	mkdir "$mnt/repo"
	ok 'git init' git -C "$mnt/repo" init -q
	cp -r "$src/a" "$mnt/repo"
	git -C "$mnt/repo" add . >/dev/null 2>&1
	ok 'git commit' git -C "$mnt/repo" commit -qm one
	ok 'git gc' git -C "$mnt/repo" gc -q
	ok 'git fsck' git -C "$mnt/repo" fsck --strict
	ok 'git clone' git clone -q "$mnt/repo" "$mnt/clone"
	is 'a clean tree' "$(git -C "$mnt/clone" status --porcelain)" ''
fi
if command -v cc >/dev/null; then
	printf '#include <stdio.h>\nint main(void) { puts("compiled here"); return 0; }\n' >"$mnt/p.c"
	ok 'a compiler' cc -o "$mnt/p" "$mnt/p.c"
	is 'and its program' "$("$mnt/p")" 'compiled here'
fi
if command -v sqlite3 >/dev/null; then
	ok 'a database with its locks' sqlite3 "$mnt/db" 'PRAGMA journal_mode=WAL; CREATE TABLE t(x);
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
		INSERT INTO t SELECT i FROM n;'
	is 'is sound' "$(sqlite3 "$mnt/db" 'PRAGMA integrity_check; SELECT sum(x) FROM t')" $'ok\n200010000'
fi
ok 'rm -r' rm -r "$mnt/copy"
remount_store
[[ ! -d $mnt/clone ]] || ok 'git fsck after a remount' git -C "$mnt/clone" fsck --strict
[[ ! -e $mnt/db ]] || is 'the database after a remount' "$(sqlite3 "$mnt/db" 'PRAGMA integrity_check')" ok
unmount_store
check_store
