#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The engine of a mount follows thousands of random operations, on the host and on a device; one that
# fails at whatever moment is left, and the answers stay right.  The device is a stand-in.
# timeout: 300
. "$(dirname "$0")/../lib.sh"
requires fuse
[[ $(stat -f -c %T /dev/shm 2>/dev/null) == tmpfs && -w /dev/shm ]] || skip_all 'skipped: no tmpfs at /dev/shm'

ref=$(mktemp -d /dev/shm/primefs.XXXXXX)
cleanup_fn rm -rf "$ref"
device=$PFS_BUILD/tests/device
[[ -x $device/primefs ]] || skip_all 'skipped: no stand-in for a device'
export PATH=$device:$PATH

# Questions while everything changes: none fails.
ask_until() {
	while [[ -e $1 ]]; do
		primefs tree "$mnt" subtree / >/dev/null && primefs tree "$mnt" count / >/dev/null
	done 2>errors
}

# follow DESCRIPTION OPERATIONS [OPTION]...
follow() {
	local name=$1 ops=$2 asker
	shift 2
	mkdir "$ref/$name" "$work/$name"
	rm -f "$store" daemon.log
	mount_in_foreground "$@"
	mkdir "$mnt/t"
	engine_agrees "$name: at first" "$mnt"
	touch asking
	ask_until asking &
	asker=$!
	run_probe twin --seed=$((RANDOM * 32768 + RANDOM)) --ops="$ops" "$ref/$name" "$mnt/t"
	rm asking
	wait "$asker"
	is "$name: every question was answered" "$(cat errors)" ''
	engine_agrees "$name: after $ops operations" "$mnt"
	find "$mnt" -mindepth 1 -type d | shuf -n 8 | while read -r dir; do
		path=/${dir#"$mnt/"}
		[[ $(primefs tree "$mnt" count "$path") == "$(find "$dir" -printf . | wc -c)" ]] &&
			[[ $(primefs tree --ino "$mnt" children "$path" | cut -f 1 | sort) == \
				"$(find "$dir" -mindepth 1 -maxdepth 1 -printf '%i\n' | sort)" ]] || echo "$path"
	done >differ
	is "$name: directories one by one" "$(cat differ)" ''
	primefs umount "$mnt"
	wait "$daemon" && status=0 || status=$?
	is "$name: the daemon ended well" "$status" 0
	check_store
}

follow host 4000 --engine=host
follow device 4000 --engine=cuda
is 'device: it has not failed' "$(grep -c 'device failed' daemon.log)" 0
calls='1 3 10 40 150'
((!PFS_LONG)) || calls="$(seq -s ' ' 1 60) 100 200 400 800 1600"
for n in $calls; do
	export PRIMEFS_CUDA_FAIL_AT=$n
	follow "failing-at-$n" 800 --engine=cuda
	left=$(grep -c 'going on with the host engine' daemon.log || true)
	ok "failing-at-$n: it was left, once" test "$left" = 1 -o "$n" -gt 40 -a "$left" = 0 # it may not come to so many
done
unset PRIMEFS_CUDA_FAIL_AT

# a device that was there when it was mounted, and cannot be opened for what is asked then
export PRIMEFS_CUDA_OPENS=1
follow 'not-opened' 800 --engine=cuda
is 'not-opened: it was said, once' "$(grep -c 'the device cannot be opened' daemon.log)" 1
export PRIMEFS_CUDA_OPENS=0
fails_with 1 'engine cuda: no CUDA device can be used here' primefs mount --engine=cuda "$store" "$mnt"
