#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# import of a directory and of archives; export gives them back.
. "$(dirname "$0")/../lib.sh"

src=$work/src
mkdir -p "$src/sub/deeper" "$src/empty"
echo one >"$src/one"
head -c 200000 /dev/urandom >"$src/sub/random"
ln "$src/one" "$src/sub/hard"
ln -s ../one "$src/sub/soft"
mkfifo "$src/fifo"
printf x >"$src/sub/deeper/"$'odd \xff\n name'
chmod 4750 "$src/one"
chmod 1777 "$src/empty"
touch -d '1955-11-05 06:15:00.25' "$src/sub/random"
listing() { (cd "$1" && find . -mindepth 1 -printf '%P|%y|%m|%T@|%l|%s\0' | sed -z 's/|d|\(.*\)|[0-9]*$/|d|\1/' | sort -z | tr '\0\n' '\n?'); }
field() { sed -n "s/.*\"$1\": *\\([0-9]*\\).*/\\1/p"; }

for content in copy link none; do
	rm -f "$store"
	report=$(primefs import --json --content=$content "$src" "$store")
	is "$content: the further hard link is counted" "$(field hard_links <<<"$report")" 1
	is "$content: nodes" "$(primefs info --json "$store" | field nodes)" "$(find "$src" -printf . | wc -c)"
	is "$content: directories" "$(primefs info --json "$store" | field directories)" "$(find "$src" -type d | wc -l)"
	is "$content: bytes" "$(primefs info --json "$store" | field bytes)" \
		"$(find "$src" ! -type d -printf '%s\n' | awk '{s += $1} END {print s}')"
	check_store "$store"
	if has_fuse; then
		mount_store -o ro
		is "$content: the same names, types, modes, times" "$(listing "$mnt")" "$(listing "$src")"
		[[ $content == none ]] || ok "$content: the same bytes" diff -r --no-dereference -x fifo "$src" "$mnt"
		is "$content: hard links are nodes of their own" "$(stat -c %h "$mnt/one" "$mnt/sub/hard" | xargs)" '1 1'
		unmount_store
	fi
done

rm -f "$store"
ok 'the default is link' primefs import "$src" "$store"
ok 'whose store is small' test "$(stat -c %s "$store")" -lt 200000

# Out again and in again.
rm -f "$store"
archives() {
	local how
	primefs import --content=copy "$src" "$store" >/dev/null
	ok 'export as tar' bash -c "primefs export --format=tar '$store' >'$work/out.tar'"
	mkdir "$work/out"
	ok 'tar reads it' tar -C "$work/out" -xpf "$work/out.tar"
	is 'and gives the same' "$(listing "$work/out")" "$(listing "$src")"
	ok 'bytes too' diff -r --no-dereference -x fifo "$src" "$work/out"
	for how in '' z J; do
		tar -C "$src" --format=pax "-c${how}f" "$work/in.tar" . 2>/dev/null || continue
		rm -f "$store"
		ok "import of an archive (tar -c$how)" primefs import "$work/in.tar" "$store"
		if has_fuse; then
			mount_store -o ro
			is 'the same names, types, modes, times' "$(listing "$mnt")" "$(listing "$src")"
			unmount_store
		fi
		check_store "$store"
	done
	head -c 300 "$work/in.tar" >"$work/cut.tar"
	rm -f "$store"
	fails_with 'an archive that is cut short' 'cut.tar' primefs import --format=tar "$work/cut.tar" "$store"
}
no_archives() {
	skip 'skipped: archives: built without libarchive'
	tar -C "$src" -cf "$work/in.tar" .
	fails_with 'an archive is known even so' 'built without libarchive' primefs import "$work/in.tar" "$store"
	gzip "$work/in.tar"
	fails_with 'a compressed one too' 'built without libarchive' primefs import "$work/in.tar.gz" "$store"
}
if has_archives; then
	archives
else
	no_archives
fi
not_ok 'leaves no store' test -e "$store"

# Mount points are not crossed unless told.
if ((EUID == 0)); then
	mount -t tmpfs tmpfs "$src/empty"
	echo inside >"$src/empty/inside"
	rm -f "$store"
	primefs import "$src" "$store" >/dev/null
	not_ok 'a mount point is not crossed' grep -q inside <(primefs export --format=paths "$store")
	ok 'but is there' grep -qx /empty/ <(primefs export --format=paths "$store")
	rm -f "$store"
	primefs import --cross-mounts "$src" "$store" >/dev/null
	ok 'with --cross-mounts it is' grep -q inside <(primefs export --format=paths "$store")
	umount "$src/empty"

	rm -f "$store"
	mkdir -m 700 "$work/user"
	cp -a "$src" "$work/user/src"
	chown "$nobody" "$work/user"
	chown -R "$nobody" "$work/user/src"
	mkdir "$work/user/src/closed"
	chmod 700 "$work/user/src/closed"
	fails_with 'what cannot be read is reported' 'closed' as "$nobody" primefs import --on-error=stop "$work/user/src" "$work/user/s.pfs"
	exits 'or left out' 1 as "$nobody" primefs import --on-error=skip "$work/user/src" "$work/user/s.pfs"
fi
fails_with 'no such source' 'nowhere' primefs import "$work/nowhere" "$store"
fails_with 'no such folder for the store' 'nowhere' primefs import "$src" "$work/nowhere/s.pfs"
