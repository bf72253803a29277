#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What goes in comes out: paths with their columns byte for byte, archives, linked content, stores that
# are added to; and what gets in the way of an import leaves nothing behind.
. "$(dirname "$0")/../lib.sh"

# Every node, in the order that export has: with columns, byte for byte.
{
	printf '/a\t1\t0.5\t007\n/a/b\t-20\t1e-07\t\n/a/b/c\t\t\tx y\n/a.b\t5\t3.0\t0x1f\n'
	printf '/e/\t9223372036854775807\t\t\n/\xff\xfe\t0\t2.5\t1 \n'
} >"$work/table"
ok 'paths with columns' primefs import --columns=n,share,code "$work/table" "$store"
primefs export --columns=n,share,code "$store" >"$work/back"
ok 'come out as they went in' cmp "$work/table" "$work/back"
tr '\n' '\0' <"$work/table" >"$work/table0"
rm "$store"
primefs import -0 --columns=n,share,code - "$store" <"$work/table0" >/dev/null
primefs export -0 --columns=n,share,code "$store" >"$work/back0"
ok 'from standard input with NULs, too' cmp "$work/table0" "$work/back0"
is 'below a directory' "$(primefs export --at=/a --columns=n "$store")" $'/b\t-20\n/b/c\t'
fails_with 'export below a file' 'Not a directory' primefs export --at=/a.b "$store"
fails_with 'a tab in a value' 'csv' bash -c "
	printf 'path,v\n/x,\"a\tb\"\n' >'$work/tab.csv'
	primefs import '$work/tab.csv' '$work/tab.pfs' && primefs export --columns=v '$work/tab.pfs'"
rm -f "$store" "$work/tab.pfs"

primefs-bench gen paths --nodes=20000 --seed=7 >"$work/list"
is 'gen: the same for the same seed' "$(primefs-bench gen paths -n 20000 -s 7 | cksum)" "$(cksum <"$work/list")"
primefs import --quiet "$work/list" "$store"
is 'gen: as many nodes as asked for' "$(primefs info --json "$store" | sed -n 's/.*"nodes": *\([0-9]*\).*/\1/p')" 20000
primefs export "$store" >"$work/all"
rm "$store"
shuf --random-source="$work/list" "$work/all" >"$work/shuffled"
primefs import --quiet "$work/shuffled" "$store"
ok 'the order of lines does not matter' cmp "$work/all" <(primefs export "$store")
check_store
rm "$store"

# A directory and its archives.
src=$work/src
mkdir -p "$src/d/deep" "$src/empty"
head -c 300000 /dev/urandom >"$src/d/random"
truncate -s 3M "$src/hole"
echo tail >>"$src/hole"
ln -s ../nowhere "$src/d/link"
mkfifo "$src/d/fifo"
printf x >"$src/d/deep/"$'\xff\xfe'
touch -d '1969-12-31 23:59:58.25 UTC' "$src/d/random"
if setfattr -n user.colour -v red "$src/hole" 2>/dev/null; then
	setfattr -n user.bytes -v 0x00ff "$src/d"
	attrs() { (cd "$1" && find . -exec getfattr -hd -m '^user\.' -e hex {} + 2>/dev/null | sort); }
else
	attrs() { :; }
fi
facts() { (cd "$1" && find . -printf '%P|%y|%m|%U|%G|%T@|%l|%s\n' | sed 's/|d|\(.*\)|[0-9]*$/|d|\1/' | sort); }
parts=(src)
archives() {
	local content
	for content in copy link; do
		primefs import --quiet --content=$content "$src" "$store"
		ok "$content: export as an archive" primefs export --format=tar -o "$work/out.tar" "$store"
		ok "$content: holes are not written out" test "$(stat -c %s "$work/out.tar")" -lt 1000000
		rm -rf "$work/out" && mkdir "$work/out"
		tar -C "$work/out" --xattrs -xpf "$work/out.tar" 2>/dev/null
		is "$content: tar makes the same of it" "$(facts "$work/out")" "$(facts "$src")"
		is "$content: attributes too" "$(attrs "$work/out")" "$(attrs "$src")"
		ok "$content: bytes too" diff -r --no-dereference -x fifo "$src" "$work/out"
		rm "$store"
		primefs import --quiet - "$store" <"$work/out.tar"
		check_store
		ok "$content: in again and out again" cmp "$work/out.tar" <(primefs export --format=tar "$store")
		rm "$store"
	done
	primefs import --quiet --content=none "$src" "$store"
	exits 'without content export says so' 1 primefs export --format=tar -o "$work/none.tar" "$store"
	rm "$store"
	gzip -k "$work/out.tar"
	is 'an archive is recognised, a compressed one too' \
		"$(primefs import --json "$work/out.tar.gz" "$store" | grep -c '"format": *"tar"')" 1
	rm "$store"
	parts+=(tar)
}
if has_archives; then
	archives
else
	skip 'skipped: archives: built without libarchive'
fi

# Added to an existing store.
printf 'kept/file\n' | primefs import --quiet --format=paths - "$store"
ok 'a directory is added' primefs import --quiet --content=copy --at=/more/src "$src" "$store"
! has_archives || ok 'an archive is added' primefs import --quiet --at=/more/tar "$work/out.tar" "$store"
ok 'a table is added' primefs import --quiet --at=/more --path=path - "$store" <<<$'path,v\nrow,1'
check_store
for part in "${parts[@]}"; do
	is "$part is complete" "$(primefs export "--at=/more/$part" -0 "$store" | tr '\0' '\n' | LC_ALL=C sort)" \
		"$(cd "$src" && LC_ALL=C find . -mindepth 1 \( -type d -empty -printf '/%P/\n' -o -printf '/%P\n' \) | LC_ALL=C sort)"
done
before=$(primefs export -0 "$store" | cksum)
fails_with 'what is there is not replaced' 'in the store already' \
	primefs import --on-error=stop --at=/more/src "$src" "$store"
is 'and nothing changes' "$(primefs export -0 "$store" | cksum)" "$before"
fails_with 'a store that is not there is not added to' 'no such store' primefs import --at=/ "$work/list" "$work/none.pfs"
if has_fuse; then
	mount_store
	fails_with 'a mounted store is refused with its daemon' "process [0-9]+" primefs import --at=/ "$work/list" "$store"
	is 'the mount sees what was added' "$(cat "$mnt/more/row")" 'v: 1'
	unmount_store
fi
rm "$store"

# What gets in the way.
printf 'a\n' >"$work/one"
touch "$store.part-2000000000-0123" "$store.part-2000000000" "$store.part-$$-0123"
primefs import --quiet "$work/one" "$store"
is 'what a dead import left is removed' "$(compgen -G "$store.part-2000000000*" || true)" ''
ok 'what a living process may need is not' test -e "$store.part-$$-0123"
rm -f "$store" "$store.part-$$-0123"
ok 'nothing can be put in the way of its file' bash -c "mkdir '$store.part-'\$\$ '$store.optimized' && exec primefs import --quiet '$work/one' '$store'"
ok 'nor of that of optimize' primefs optimize "$store"
rm -rf "$store"*
mkfifo "$work/pipe"
primefs import --format=paths "$work/pipe" "$store" 2>/dev/null &
import=$!
exec 9>"$work/pipe"
seq -f 'd/%06.0f' 100000 >&9 # more than is looked at before the store is made
wait_for 10 compgen -G "$store.part-$import-*"
kill -TERM "$import"
wait "$import" && status=0 || status=$?
exec 9>&-
is 'a signal ends it' "$status" 143
is 'and nothing is left' "$(find "$work" -name 'store.pfs*')" ''
for ((i = 1; i <= 5000; i++)); do echo ..; done >"$work/wrong"
{ primefs import --on-error=skip --format=paths "$work/wrong" "$store" 2>&1 || true; } | head -n 1 >"$work/first"
is 'nor when nobody reads what it says' "$(find "$work" -name 'store.pfs*')" ''
primefs-bench gen paths -n 100000 >"$work/list"
exits 'a limit of file sizes' 3 bash -c "ulimit -f 200 && exec primefs import --quiet '$work/list' '$store'"
is 'leaves nothing, too' "$(find "$work" -name 'store.pfs*')" ''
for ((i = 0; i < 20; i++)); do
	primefs import --quiet "$work/list" "$store" 2>/dev/null &
	import=$!
	until compgen -G "$store.part-$import-*" >/dev/null || [[ ! -d /proc/$import ]]; do :; done
	kill -TERM "$import" 2>/dev/null || true
	wait "$import" 2>/dev/null || true
	rm -f "$store"
done
is 'nor does a signal, however early' "$(find "$work" -name 'store.pfs*')" ''
primefs import --quiet "$work/one" "$store"
for delay in 0.05 0.1 0.2; do
	primefs import --quiet --at=/x "$work/list" "$store" 2>/dev/null &
	import=$!
	sleep "$delay"
	kill -KILL "$import" 2>/dev/null || true
	wait "$import" 2>/dev/null || true
	added=$(primefs export "$store" | wc -l)
	ok "killed after $delay s it has added all or nothing" test "$added" = 1 -o "$added" = 100001
	check_store
	if ((added > 1)); then
		rm "$store"
		primefs import --quiet "$work/one" "$store"
	fi
done
rm "$store"
fails_with 'no place to keep a table from a pipe' 'temporary file' bash -c \
	"printf 'path,n\nx,1\n' | TMPDIR=$work/nowhere primefs import --format=csv - '$store'"
fails_with 'a name that leaves no room for others beside it' 'too long' primefs import "$work/one" "$work/$(printf %0250d 0)"
fails_with 'a folder is no store' 'is a directory' primefs import "$work/one" "$work"
if ((EUID == 0)); then
	mkdir -m 755 "$work/closed"
	primefs import --quiet "$work/one" "$work/closed/s.pfs"
	chmod 755 "$work" && reachable_programs
	fails_with 'a folder that may not be written' 'folder may not be written' \
		as "$nobody" primefs import "$work/one" "$work/closed/new.pfs"
	fails_with 'a store that may not be' 'have to be writable' \
		as "$nobody" primefs import --at=/x "$work/one" "$work/closed/s.pfs"
fi
if ((EUID == 0)) && mount -t tmpfs -o size=2m tmpfs "$mnt" 2>/dev/null; then
	primefs-bench gen paths -n 100000 >"$work/list"
	fails_with 'no space' 'no space left' primefs import "$work/list" "$mnt/s.pfs"
	is 'says so in one line' "$(primefs import "$work/list" "$mnt/s.pfs" 2>&1 | wc -l)" 1
	is 'and leaves nothing' "$(ls -A "$mnt")" ''
	printf 'a\n' | primefs import --quiet - "$mnt/s.pfs"
	fails_with 'nor is there space to add' 'no space left' primefs import --at=/x "$work/list" "$mnt/s.pfs"
	is 'and the store is as it was' "$(primefs export "$mnt/s.pfs")" /a
	ok 'and sound' primefs check "$mnt/s.pfs"
	umount "$mnt"
else
	skip 'skipped: a full disk needs root and a tmpfs'
fi
