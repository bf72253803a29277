#!/bin/bash
# SPDX-License-Identifier: MIT
# Every example of .query/help does something.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse

mkdir -p tree/a/b
head -c 3000000 /dev/zero >tree/a/large.c
echo x >tree/a/b/x.h
primefs import tree "$store" >/dev/null
mount_store
cd "$mnt"
n=0
while IFS= read -r line; do
	[[ -n $line && $line != '#'* ]] || continue
	ok "$line" bash -c "${line//\/tmp\//$work\/}"
	n=$((n + 1))
done <"$mnt/.query/help"
ok 'there are examples' test "$n" -ge 20
cd "$work"
ok 'a statement copied' grep -q large.c "$work/large.csv"
unmount_store
check_store
