#!/bin/bash
# SPDX-License-Identifier: MIT
# .query of a filesystem that an ordinary user has mounted: he and root see all, others what they may.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
requires fuse unprivileged setpriv unshare
in_own_namespace || skip_all 'skipped: no mount namespaces'
[[ -e /etc/fuse.conf ]] || skip_all 'skipped: no /etc/fuse.conf'
echo user_allow_other >"$work/fuse.conf"
mount --bind "$work/fuse.conf" /etc/fuse.conf
reachable_programs

other=4711
mkdir -p tree/open tree/closed tree/roots
touch tree/open/a tree/closed/b tree/roots/c
chmod 700 tree/closed tree/roots
primefs import tree "$store" >/dev/null
chown -R "$nobody:$nobody" "$work"
user() { as "$nobody" env HOME="$work" "$@"; }
count() { "$@" cat "$mnt/.query/sql/SELECT count(*) FROM nodes" 2>&1 | tail -n 1; }
chown_in_store() { # the mounting user may set what he likes in his store by statements
	user primefs query "$store" "UPDATE nodes SET uid = $1 WHERE path = '$2'" >/dev/null
}
chown_in_store 0 /roots
chown_in_store "$nobody" /closed

ok 'without allow_other' user primefs mount "$store" "$mnt" -o query_others
is 'he sees all' "$(count user)" 7
not_ok 'nobody else enters, whatever query_others says' as "$other" ls "$mnt"
not_ok 'nor asks' as "$other" cat "$mnt/.query/paths"
user primefs umount "$mnt"

ok 'with it' user primefs mount "$store" "$mnt" -o allow_other
is 'he sees all, even what he may not enter' "$(count user)" 7
not_ok 'which he does not' user ls "$mnt/roots"
is 'root does' "$(count env)" 7
fails_with 'others are refused' 'Permission denied' as "$other" cat "$mnt/.query/paths"
user primefs umount "$mnt"

ok 'with both' user primefs mount "$store" "$mnt" -o allow_other,query_others
is 'he sees all' "$(count user)" 7
is 'root, too' "$(count env)" 7
is 'others what they may' "$(count as "$other")" 5
is 'whose groups he can read' "$(count setpriv --reuid $other --regid $other --groups 17,18 --inh-caps=-all --)" 5
ok 'root changes something' bash -c "echo \"UPDATE nodes SET mode = 493 WHERE path = '/closed'\" >'$mnt/.query/run'"
is 'which others see' "$(count as "$other")" 6
not_ok 'others change nothing' as "$other" bash -c "echo 'DELETE FROM nodes' >'$mnt/.query/run'"
is 'nothing is gone' "$(count env)" 7
ok 'he unmounts' user primefs umount "$mnt"
ok 'check is clean' user primefs check "$store"
