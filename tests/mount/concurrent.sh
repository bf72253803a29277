#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Several processes at once, in folders of their own and in one that they share.
# timeout: 240
. "$(dirname "$0")/../lib.sh"
requires fuse

mount_store
rounds=300
((!PFS_LONG)) || rounds=5000
mkdir "$mnt/shared"

# Creates, renames over each other's names, reads whatever is there, and removes.
worker() {
	local i
	mkdir "$mnt/own$1"
	for ((i = 0; i < rounds; i++)); do
		echo "$1 $i" >"$mnt/own$1/f$i"
		mv "$mnt/own$1/f$i" "$mnt/shared/name$((i % 7))" || return
		[[ $(cat "$mnt/shared/name$(((i * 3) % 7))" 2>/dev/null || echo gone) =~ ^([0-9]+\ [0-9]+|gone)$ ]] || return
		mkdir "$mnt/shared/d" 2>/dev/null && { rmdir "$mnt/shared/d" || return; }
		((i % 50)) || sync "$mnt/shared" || return
	done
}
pids=()
for w in 1 2 3 4; do
	worker "$w" &
	pids+=($!)
done
for pid in "${pids[@]}"; do
	wait "$pid" && status=0 || status=$?
	is "worker $pid meets nothing odd" "$status" 0
done
is 'the names that were fought for' "$(cd "$mnt/shared" && echo *)" \
	'name0 name1 name2 name3 name4 name5 name6'
is 'nothing else is left' "$(find "$mnt" -mindepth 2 -path '*/own*' | wc -l)" 0

# Directories moved against each other never make a loop or lose anything.
mkdir -p "$mnt/x/1" "$mnt/y/2"
mover() {
	local i
	for ((i = 0; i < rounds; i++)); do
		mv -T "$1" "$2" 2>/dev/null || true
		mv -T "$2" "$1" 2>/dev/null || true
	done
}
mover "$mnt/x" "$mnt/y/2/x" &
a=$!
mover "$mnt/y" "$mnt/x/1/y" &
b=$!
wait "$a" "$b"
is 'every directory is still there' "$(find "$mnt/x" "$mnt/y" -type d 2>/dev/null | sort -u | wc -l)" 4
unmount_store
check_store
