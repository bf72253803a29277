#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# An output file takes the place of what was there when it is complete, unless that cannot be replaced.
. "$(dirname "$0")/../lib.sh"

printf '/a\n/b\n' | primefs import --format=paths - "$store" >/dev/null
printf '/d/\n' | primefs import --format=paths - "$work/root.pfs" >/dev/null
mkdir outputs
cd outputs
stays() { # WHAT PATTERN COMMAND...
	echo before >out
	fails_with "$@"
	is 'what was there stays' "$(cat out)" before
	rm out
	not_ok "without one, too" "${@:3}"
	is 'and nothing is made' "$(ls)" ''
}
stays 'a path that there is not' '--at=/nowhere' primefs export --at=/nowhere -o out "$store"
stays 'a column that there is not' 'no node has this attribute' primefs export --columns=no -o out "$store"
nameless= # whether this filesystem has files without a name
[[ ! $(stat -fc %T .) =~ ^(tmpfs|ext2/ext3|xfs|btrfs)$ ]] || nameless=1
seq 9999 | primefs import --format=paths - "$work/many.pfs" >/dev/null
limited() { (ulimit -f 8 && "$@"); }
if [[ $nameless ]]; then
	stays 'no room' 'out: File too large' limited primefs export -o out "$work/many.pfs"
fi
(umask 027 && primefs export -o out "$store")
is 'a new file has the rights of any' "$(stat -c %a out)" 640
chmod 604 out
ln -s out link
ok 'a symlink is followed' primefs export -o link "$work/root.pfs"
is 'and stays one' "$(readlink link) $(cat out)" 'out /d/'
is 'and the file has its rights' "$(stat -c %a out)" 604
ln out other
ok 'a file of two names' primefs export -o out "$store"
ok 'keeps both' cmp out other
rm link other
is 'and nothing is beside it' "$(ls -A)" out
ln -s new link
ok 'a symlink to what is not there' primefs export -o link "$work/root.pfs"
is 'makes it' "$(cat new)" /d/
fails_with 'a folder that is not there' 'none/out: No such file' primefs export -o none/out "$store"
fails_with 'a folder' 'is a directory|Is a directory' primefs export -o "$work/outputs" "$store"

# two processes have the same number where each has numbers of its own
bash -c 'echo mine >.primefs-output-$$; exec primefs export -o out "$1"' - "$work/root.pfs"
is 'what has a name that another process may use stays' "$(cat .primefs-output-* out | xargs)" 'mine /d/'
rm .primefs-output-*

# ---- what others write to is written in place ----
ln -s /dev/stdout stdout
for name in /dev/stdout //dev/stdout /dev/fd/1 /proc/self/fd/1 stdout log; do
	echo first >log
	{
		primefs export -o "$name" "$work/root.pfs"
		echo last
	} >>log
	is "standard output by the name $name" "$(xargs <log)" '/d/ last'
done
file=$(stat -c %i log)
sleep 100 3>>log &
cleanup_fn kill_own $!
primefs export -o log "$work/root.pfs"
is "what another process writes to" "$(stat -c %i log) $(cat log)" "$file /d/"
kill_own $!
wait $! || true
file=$(stat -c %i log)
primefs export -o log "$work/root.pfs"
[[ ! $nameless ]] || not_ok 'and what nobody does is replaced' test "$file" -eq "$(stat -c %i log)"

# ---- what has more than its content and its rights is written in place ----
same_file() { # WHAT: the output, which is not made anew
	local before
	before=$(stat -c %i out)
	ok "$1" primefs export -o out "$work/root.pfs"
	is 'is written in place' "$(stat -c %i out) $(cat out)" "$before /d/"
}
echo before >out
if setfattr -n user.name -v value out 2>/dev/null; then
	same_file 'a file with an attribute'
	rm out
	echo before >out
	# by default user 65534 may do all with what is made in this folder
	all=ffffffff
	acl=02000000.0100.0700.$all.0200.0700.feff0000.0400.0500.$all.1000.0700.$all.2000.0500.$all
	if setfattr -n system.posix_acl_default -v "0x${acl//./}" . 2>/dev/null; then
		same_file 'a file without the ACL that others have'
		setfattr -x system.posix_acl_default .
	else
		skip 'skipped: no ACLs'
	fi
else
	skip 'skipped: no attributes, or no setfattr'
fi
if unshare -m true 2>/dev/null; then
	echo before >out
	echo mounted >mounted
	# shellcheck disable=SC2016 # expanded by the inner shell
	ok 'a file that is mounted' unshare -m --propagation private \
		bash -c 'mount --bind mounted out && exec primefs export -o out "$1"' - "$work/root.pfs"
	is 'is written in place' "$(cat mounted out | xargs)" '/d/ before'
else
	skip 'skipped: no mount namespaces'
fi
for letter in a i; do
	if chattr "+$letter" out 2>/dev/null; then
		cleanup_fn chattr -ai "$PWD/out"
		fails_with "what must not change (chattr +$letter) is refused before all is written" \
			'out: Operation not permitted' limited primefs export -o out "$work/many.pfs"
		chattr "-$letter" out
	else
		skip 'skipped: no chattr'
	fi
done
