#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The probes themselves: what they ask of a mount, the kernel's own tmpfs gives.
. "$(dirname "$0")/../lib.sh"

[[ $(stat -f -c %T /dev/shm 2>/dev/null) == tmpfs && -w /dev/shm ]] || skip_all 'skipped: no tmpfs at /dev/shm'
shm=$(mktemp -d /dev/shm/primefs.XXXXXX)
cleanup_fn rm -rf "$shm"
chmod 755 "$shm"

for probe in "${all_probes[@]}"; do
	mkdir "$shm/$probe"
	run_probe "$probe" "$shm/$probe"
done
mkdir -m 777 "$shm/a" "$shm/b"
run_probe twin --ops=2000 "$shm/a" "$shm/b"
run_probe twin --ops=100 --times "$shm/a" "$shm/b"
