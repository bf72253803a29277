#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A store that was cut short or overwritten with noise is refused with one line, or works as far as it
# can; no command is ever killed by a signal over it.
# timeout: 240
. "$(dirname "$0")/../lib.sh"

cycles=40
((!PFS_LONG)) || cycles=1000
RANDOM=${PFS_SEED:-$$}
echo "PFS_SEED=${PFS_SEED:-$$}"

# A store of some size with everything in it.
mkdir -p "$work/source/deep/er"
for ((i = 0; i < 300; i++)); do
	head -c $((i * 37)) /dev/urandom >"$work/source/deep/file $i"
done
ln -s target "$work/source/link"
primefs import --content=copy "$work/source" "$store" >/dev/null
size=$(stat -c %s "$store")
bad=$work/bad.pfs

# The command answers with a status of its own, within time, and in not too many words.
behaves() {
	local status=0 lines
	timeout 20 "$@" >"$work/output" 2>&1 </dev/null || status=$?
	lines=$(wc -l <"$work/output")
	if ((status > 3)) || { ((status == 3)) && ((lines != 1)); }; then
		echo "status $status, $lines lines"
		head -n 5 "$work/output"
		return 1
	fi
}

refused() { # exactly one line, status 3
	local status=0
	timeout 20 "$@" >"$work/output" 2>&1 </dev/null || status=$?
	[[ $status == 3 && $(wc -l <"$work/output") == 1 ]] || {
		echo "status $status"
		head -n 5 "$work/output"
		return 1
	}
}

commands() { # ASSERTION DESCRIPTION
	local verb
	for verb in info check 'export --format=paths' 'export --format=csv'; do
		# shellcheck disable=SC2086 # a command and its options
		ok "$2: $verb" "$1" primefs $verb "$bad"
		rm -f "$bad"-*
	done
	if has_fuse; then
		ok "$2: mount" "$1" primefs mount "$bad" "$mnt"
		if is_mounted "$mnt"; then
			find "$mnt" -type f -exec cat {} + >/dev/null 2>&1 || true
			ok "$2: the daemon lives" timeout 20 stat "$mnt"
			timeout 20 primefs umount "$mnt" || force_unmount "$mnt"
		fi
	fi
}

for length in 1 15 16 99 100 512 4096 $((size / 2)); do
	head -c "$length" "$store" >"$bad"
	commands refused "cut to $length bytes"
done
head -c "$size" /dev/urandom >"$bad"
commands refused 'noise'
head -c "$size" /dev/zero >"$bad"
commands refused 'zeros'
head -c 100 "$store" >"$bad"
head -c "$size" /dev/urandom >>"$bad"
commands refused 'noise behind a good head'
echo 'this is a text' >"$bad"
commands refused 'a text'
: >"$bad"
commands refused 'an empty file'
rm -f "$bad"
mkdir "$bad"
commands refused 'a directory'
rmdir "$bad"
if command -v sqlite3 >/dev/null; then
	sqlite3 "$bad" 'CREATE TABLE t(x); INSERT INTO t VALUES (1)'
	commands refused "somebody else's database"
fi

for ((cycle = 0; cycle < cycles; cycle++)); do
	cp "$store" "$bad"
	for ((n = RANDOM % 4; n >= 0; n--)); do
		head -c $((1 + RANDOM % 200)) /dev/urandom |
			dd of="$bad" bs=1 seek=$(((RANDOM * 32768 + RANDOM) % size)) conv=notrunc status=none
	done
	commands behaves "noise $cycle"
done
