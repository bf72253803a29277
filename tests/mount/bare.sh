#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What mount and umount say on a system that lacks what most have: fusermount3, /etc/mtab, /proc.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse unprivileged unshare
in_own_namespace || skip_all 'skipped: no mount namespaces'
open_fuse_to_all
primefs=$(command -v primefs)
without() { # WHAT COMMAND...: a mount namespace that lacks /proc, or all of /etc that programs can do without
	# shellcheck disable=SC2016 # another shell expands it
	unshare -m --propagation private bash -c '
		if [[ $0 == /proc ]]; then
			umount -l /proc
		else
			mkdir few && cp /etc/passwd /etc/group /etc/ld.so.cache few && mount --bind few /etc
		fi
		"$@"' "$@"
}

empty_store
ok 'a store' primefs mount "$store" "$mnt"
fails_with 'umount without /proc' "^primefs umount: $mnt: /proc/self/mounts.* mount /proc" without /proc primefs umount "$mnt"
ok 'it is still mounted' is_mounted "$mnt"
primefs umount "$mnt"

chown "$nobody" "$store" "$work" "$mnt"
mkdir closed
chmod 700 closed
for path in "$work/nothing" "$work/closed"; do
	fails_with "without fusermount3 in ${path##*/}" 'fusermount3 is not installed .package fuse3' \
		as "$nobody" env PATH="$path" "$primefs" mount "$store" "$mnt"
done
ok 'a user mounts' as "$nobody" primefs mount "$store" "$mnt"
fails_with 'and unmounts nothing without /etc/mtab' "^primefs umount: $mnt: .*ln -s /proc/self/mounts /etc/mtab" \
	without /etc setpriv --reuid "$nobody" --regid "$nobody" --clear-groups --inh-caps=-all -- primefs umount "$mnt"
ok 'but with it' as "$nobody" primefs umount "$mnt"
