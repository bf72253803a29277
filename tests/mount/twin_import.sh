#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Random operations on what was imported, by copy and by link, give the same answers and the same
# trees as on the directory that it was imported from; that one is never written.
# timeout: 300
. "$(dirname "$0")/../lib.sh"
requires fuse
[[ $(stat -f -c %T /dev/shm 2>/dev/null) == tmpfs && -w /dev/shm ]] || skip_all 'skipped: no tmpfs at /dev/shm'

shm=$(mktemp -d /dev/shm/primefs.XXXXXX)
cleanup_fn rm -rf "$shm"
chmod 755 "$shm"

# All that is below a folder: names, attributes, content.
summary() {
	(
		cd "$1"
		find . ! -type d -printf '%p %y %m %U %G %s %T@ %l\n' | sort
		find . -type d -printf '%p %y %m %U %G %T@\n' | sort
		find . -type f -print0 | sort -z | xargs -0r sha256sum
	) | sha256sum
}

# Makes two equal folders, source and ref, of random entries.
grow() { # SEED
	rm -rf "$shm/source" "$shm/ref"
	mkdir -m 755 "$shm/source" "$shm/ref"
	run_probe twin --seed="$1" --ops=6000 "$shm/ref" "$shm/source"
}

rounds=3
((!PFS_LONG)) || rounds=40
for content in copy link; do
	for ((i = 1; i <= rounds; i++)); do
		grow $((1000 + i))
		before=$(summary "$shm/source")
		rm -f "$store"
		ok "imports by $content" primefs import --quiet --format=dir --content=$content \
			"$shm/source" "$store"
		mount_store
		run_probe twin --ops=0 "$shm/ref" "$mnt"
		run_probe twin --seed=$((2000 + i)) --ops=4000 "$shm/ref" "$mnt"
		remount_store
		run_probe twin --ops=0 "$shm/ref" "$mnt"
		run_probe twin --seed=$((3000 + i)) --ops=150 --times "$shm/ref" "$mnt"
		unmount_store
		check_store
		is 'the source is what it was' "$(summary "$shm/source")" "$before"
	done
done
