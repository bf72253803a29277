#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What reaches the daemon, as its log of requests (-d) tells: names, attributes, listings and content are
# asked for once, until something changes; writes are gathered by the kernel only with -o writeback.
. "$(dirname "$0")/../lib.sh"
requires fuse

log=$work/daemon.log

# asked OPCODE COMMAND...: how many requests of that kind the command makes.
asked() {
	local before after
	before=$(grep -c "opcode: $1 " "$log" || true)
	"${@:2}" >/dev/null 2>&1 || true
	after=$(grep -c "opcode: $1 " "$log" || true)
	echo $((after - before))
}

# none KINDS DESCRIPTION COMMAND...: asks for none of them, unless the kernel has just forgotten
# everything: other tests make it do so.
none() {
	local kind _ found
	for kind in $1; do
		for _ in 1 2 3 4 5; do
			found=$(asked "$kind" "${@:3}")
			((found > 0)) || break
		done
		is "$2: $kind" "$found" 0
	done
}

some() { # KIND DESCRIPTION COMMAND...
	ok "$2: $1" test "$(asked "$1" "${@:3}")" -gt 0
}

mount_store
for ((i = 0; i < 10; i++)); do
	mkdir "$mnt/d$i"
	for ((j = 0; j < 10; j++)); do
		echo "$i $j" >"$mnt/d$i/f$j"
	done
done
ln -s target "$mnt/link"
unmount_store

mount_in_foreground -d
ok 'requests are logged' test "$(asked GETATTR stat "$mnt")" -ge 0 -a -s "$log"
some READDIRPLUS 'the first listing' find "$mnt" -size +1000k
none 'LOOKUP GETATTR READDIR READDIRPLUS' 'the second' find "$mnt" -size +1000k
some READ 'the first reading' cat "$mnt/d1/f1"
none 'LOOKUP GETATTR READ FLUSH' 'the second' cat "$mnt/d1/f1"
some LOOKUP 'a name that is not there' stat "$mnt/none"
none 'LOOKUP' 'which is not there still' stat "$mnt/none"
some READLINK 'a symlink' readlink "$mnt/link"
none 'LOOKUP GETATTR READLINK' 'again' readlink "$mnt/link"
touch "$mnt/none"
ok 'is there once it was made' test -e "$mnt/none"
is 'and listed' "$(find "$mnt" -name none | wc -l)" 1

# append N: so many writes of one byte each
append() {
	local i
	for ((i = 0; i < $1; i++)); do
		printf x
	done >>"$mnt/appended"
}
is 'each write is sent' "$(asked WRITE append 100)" 100
ok 'and no attribute is asked for before it' test "$(asked GETXATTR append 100)" -lt 50
is 'and fsync is' "$(asked FSYNC sync "$mnt/appended")" 1
unmount_store

mount_in_foreground -d -o timeout=0
find "$mnt" -size +1000k >/dev/null
some LOOKUP '-o timeout=0: names are asked for each time' stat "$mnt/d1/f1"
some GETATTR '-o timeout=0: attributes too' find "$mnt" -size +1000k
unmount_store

mount_in_foreground -d -o writeback
ok '-o writeback: writes are gathered' test "$(asked WRITE append 100)" -lt 20
unmount_store
mount_store
is 'and arrive' "$(stat -c %s "$mnt/appended")" 300
unmount_store
check_store
