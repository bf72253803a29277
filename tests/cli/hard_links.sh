#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The names of one file count once: link, links, du and find go by them, until one is written to or removed.
. "$(dirname "$0")/../lib.sh"

src=$work/src
mkdir -p "$src/a/deep" "$src/b"
head -c 100000 /dev/urandom >"$src/a/deep/x"
ln "$src/a/deep/x" "$src/b/y"
ln "$src/a/deep/x" "$src/z"
echo hi >"$src/q"
ln "$src/q" "$src/b/q2"
echo one >"$src/one"
ln "$src/one" "$work/outside"
sql() { primefs query "$1" "$2" | tail -n +2; }
gnu() { (cd "$src" && du "$@") | sed 's, \./, /,; s,\t\.$,\t/,; s,\t\./,\t/,; s,\t\([^/t]\),\t/\1,'; }

for content in link copy none; do
	rm -f "$store"
	primefs import --quiet --content=$content "$src" "$store"
	is "$content: links" "$(sql "$store" "SELECT path, links FROM nodes WHERE link IS NOT NULL ORDER BY path" | tr '\t' ' ' | xargs)" \
		'/a/deep/x 3 /b/q2 2 /b/y 3 /q 2 /z 3'
	is "$content: one number a file" "$(sql "$store" "SELECT count(*), count(DISTINCT link), count(DISTINCT link || ' ' || links) FROM nodes WHERE link > 0" | xargs)" '5 2 2'
	is "$content: a name outside is none here" "$(sql "$store" "SELECT links, link IS NULL, nlink FROM nodes WHERE name = 'one'" | xargs)" '1 1 1'
	is "$content: stat's number stays" "$(sql "$store" "SELECT max(nlink) FROM nodes WHERE type = 'f'")" 1
done
link=$(sql "$store" "SELECT link FROM nodes WHERE path = '/z'")
for where in "link IS NULL" "link IS NOT NULL" "link = $link" "link <> $link" "NOT link = $link" "link > $link" "link <= $link" \
	"link IN (1, $link)" "link IS $link" "link IS NOT $link" "links > 1" "links BETWEEN 2 AND 2" "link BETWEEN 1 AND 2"; do
	is "$where" "$(sql "$store" "SELECT group_concat(path) FROM nodes WHERE $where")" \
		"$(sql "$store" "SELECT group_concat(path) FROM (SELECT path, +link AS link, +links AS links FROM nodes LIMIT -1) WHERE $where")"
done

rm "$store"
primefs import --quiet "$src" "$store"
primefs optimize "$store" >/dev/null
mkdir "$work/empty"
folders=$({
	find "$src" -type d -printf '%s\n'
	du -sb "$work/empty" | cut -f 1 # nothing to coreutils from 9.2 on
} | sort -u)
for options in -sk -sb '-s --apparent-size -k' -skc -sbc; do
	if [[ $options != -sk* ]] && [[ $folders != 4096 ]]; then
		skip "du $options: to this du the source's folders are not of 4,096 bytes, as the store's are"
		continue
	fi
	# shellcheck disable=SC2086 # several options
	is "du $options, as GNU's of the source" "$(primefs du $options "$store")" "$(gnu $options .)"
done
for paths in 'a b z' 'z b a' 'a .' 'z b/y' 'b/y z one' '. a' 'b b'; do
	# shellcheck disable=SC2086,SC2046 # several paths
	is "du of $paths" "$(primefs du -kc "$store" -s $(for path in $paths; do echo "/${path#.}"; done))" "$(gnu -kcs $paths)"
done
is 'what is printed adds up' "$(primefs du -ak "$store" | awk '$2 ~ /[a-z0-9]$/ && $2 !~ /^\/(a|b|a\/deep)$/ { n += $1 } END { print n }')" \
	"$(($(primefs du -sk "$store" | cut -f 1) - $(sql "$store" "SELECT sum(blocks) / 2 FROM nodes WHERE type = 'd'")))"
is 'a directory counts what was not counted before' "$(primefs du -k "$store" | tail -n 1)" "$(gnu -k . | tail -n 1)"
is 'to a depth, too' "$(primefs du -kd 1 "$store" | tail -n 1)" "$(gnu -kd 1 . | tail -n 1)"
is 'find -samefile' "$(primefs find "$store" / -samefile /b/y | sort | xargs)" '/a/deep/x /b/y /z'
is 'of a file with one name' "$(primefs find "$store" / -samefile /one | xargs)" /one
is 'not -samefile' "$(primefs find "$store" / -type f ! -samefile /b/y | sort | xargs)" '/b/q2 /one /q'
fails_with 'of no file' 'no such path' primefs find "$store" / -samefile /none
is 'find -links' "$(primefs find "$store" / -type f -links 3 | sort | xargs)" '/a/deep/x /b/y /z'
is 'find -links +1' "$(primefs find "$store" / -type f -links +1 | wc -l)" 5

if has_archives; then
	tar -C "$src" -cf "$work/s.tar" .
	primefs import --quiet "$work/s.tar" "$work/tar.pfs"
	is 'of a tar archive: links' "$(sql "$work/tar.pfs" "SELECT path, links FROM nodes WHERE link IS NOT NULL ORDER BY path" | tr '\t' ' ' | xargs)" \
		'/a/deep/x 3 /b/q2 2 /b/y 3 /q 2 /z 3'
	is 'one number a file' "$(sql "$work/tar.pfs" "SELECT count(*), count(DISTINCT link), count(DISTINCT link || ' ' || links) FROM nodes WHERE link > 0" | xargs)" '5 2 2'
	is 'du counts it once' "$(primefs du -k "$work/tar.pfs" -s /a/deep/x /z | wc -l)" 1
	is 'find -samefile' "$(primefs find "$work/tar.pfs" / -samefile /b/y | sort | xargs)" '/a/deep/x /b/y /z'
	if (cd "$src" && find . | cpio -o -H newc >"$work/s.cpio") 2>/dev/null; then
		primefs import --quiet "$work/s.cpio" "$work/cpio.pfs"
		is 'of a cpio archive: links' "$(sql "$work/cpio.pfs" "SELECT path, links FROM nodes WHERE link IS NOT NULL ORDER BY path" | tr '\t' ' ' | xargs)" \
			'/a/deep/x 3 /b/q2 2 /b/y 3 /q 2 /z 3'
	else
		skip 'of a cpio archive: no cpio'
	fi
	ok 'check is clean' primefs check "$work/tar.pfs"
else
	skip 'skipped: archives: built without libarchive'
fi

if has_fuse; then
	mount_store
	is 'on a mount: find -samefile' "$(primefs find "$mnt" -samefile "$mnt/q" -printf '%P\n' | sort | xargs)" 'b/q2 q'
	fails_with 'not of a file outside' 'outside the mount' primefs find "$mnt" -samefile "$src/q"
	is 'du' "$(primefs du -sk "$mnt" | cut -f 1)" "$(du -sk "$src" | cut -f 1)"
	chmod 600 "$mnt/z"
	is 'a mode is no content' "$(sql "$mnt" "SELECT links FROM nodes WHERE name = 'z'")" 3
	echo more >>"$mnt/z"
	is 'what is written to is a file of its own' "$(sql "$mnt" "SELECT path, links FROM nodes WHERE name IN ('x', 'y', 'z') ORDER BY path" | xargs)" \
		'/a/deep/x 2 /b/y 2 /z 1'
	is 'and counts' "$(($(primefs du -sk "$mnt" | cut -f 1) - $(du -sk "$src" | cut -f 1)))" 100
	truncate -s 0 "$mnt/q"
	rm "$mnt/b/y"
	is 'removed, it is no name' "$(sql "$mnt" "SELECT count(*), max(links), count(link) FROM nodes WHERE name IN ('x', 'q2')" | xargs)" '2 1 2'
	mv "$mnt/a/deep/x" "$mnt/moved"
	is 'moved, it is' "$(sql "$mnt" "SELECT link IS NOT NULL FROM nodes WHERE name = 'moved'")" 1
	unmount_store
	is 'all of it holds afterwards' "$(sql "$store" "SELECT name, links FROM nodes WHERE link IS NOT NULL ORDER BY name" | xargs)" 'moved 1 q2 1'
fi
check_store
