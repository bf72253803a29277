#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the daemon has to say goes to stderr in the foreground and to the system log otherwise.  That is a
# socket of this test's own, in a mount namespace of its own.
. "$(dirname "$0")/../lib.sh"
requires fuse root unshare
in_own_namespace || skip_all 'skipped: no mount namespaces'

faulty=$PFS_BUILD/tests/vfs/primefs-fault
[[ -x $faulty ]] || skip_all 'skipped: primefs-fault is not built'
export PFS_FAULT_FILE=$work/plan
: >"$PFS_FAULT_FILE"

mkdir "$work/dev"
cp -a /dev/null /dev/fuse "$work/dev"
mount --bind "$work/dev" /dev
cleanup_fn umount -l /dev
"$probes/listen" /dev/log >"$work/syslog" &
cleanup_fn kill_own $!
wait_for 5 test -S /dev/log

# trouble: the disk fails for a while, which is worth a word.
trouble() {
	echo x >"$mnt/f"
	echo 'write:0:*:EIO' >"$PFS_FAULT_FILE"
	sync "$mnt/f" 2>/dev/null && fail 'the fault has no effect'
	: >"$PFS_FAULT_FILE"
	wait_for 20 sync "$mnt/f"
}
failed='changes cannot be written \(Input/output error\)'
again='changes are written again'

empty_store
"$faulty" mount "$store" "$mnt" >"$work/terminal" 2>&1
trouble
ok 'a daemon tells the system log' wait_for 5 grep -qE "primefs.*: $store: $failed" "$work/syslog"
ok 'and when it is over' wait_for 5 grep -q "$again" "$work/syslog"
is 'not the terminal' "$(cat "$work/terminal")" ''
unmount_store

: >"$work/syslog"
"$faulty" mount -f "$store" "$mnt" >"$work/terminal" 2>&1 &
daemon=$!
cleanup_fn kill_own -9 "$daemon"
wait_for 20 is_mounted "$mnt"
trouble
ok 'in the foreground it tells stderr' wait_for 5 grep -qE "$failed" "$work/terminal"
ok 'and when it is over' wait_for 5 grep -q "$again" "$work/terminal"
is 'not the system log' "$(cat "$work/syslog")" ''
unmount_store
check_store
