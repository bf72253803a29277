#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A mounted store is asked through its daemon: the same answers, changes included at once; nobody who
# asks can hold it up.
. "$(dirname "$0")/../lib.sh"
requires fuse getfattr
users_mount=0
if ((EUID == 0)) && open_fuse_to_all; then
	users_mount=1
fi

pid_of() { getfattr --only-values -n user.primefs.daemon "$1" 2>/dev/null | cut -d' ' -f1; }
field() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p"; }

primefs-bench gen -n 50000 paths | primefs import --format=paths - "$store" >/dev/null
top=$(primefs tree "$store" children / | head -n 1)
ask() { # every kind of question, of $1
	primefs tree "$1" subtree /
	primefs tree --ino "$1" subtree "$top"
	primefs tree -0 "$1" children / | tr '\0' ,
	primefs tree "$1" ancestors "$last"
	primefs tree "$1" common "$last" "$top"
	primefs tree --json "$1" count "$top"
	primefs tree "$1" count / "$top"
}
last=$(primefs tree "$store" subtree / | tail -n 1)
ask "$store" >before
info=$(primefs info "$store" | grep -v 'takes\|image')

mount_store
ok 'a mounted store is asked' cmp before <(ask "$store")
ok 'so is its mountpoint' cmp before <(ask "$mnt")
is 'info of the store' "$(primefs info "$store" | grep -v 'takes\|image')" "$info"
is 'info of the mountpoint' "$(primefs info "$mnt" | grep -v 'takes\|image')" "$info"
fails_with 'no such path' '^primefs tree: /nowhere: No such file' primefs tree "$mnt" subtree /nowhere
exits 'nothing to print' 1 primefs tree "$mnt" children "$last"
is 'each refusal is one line' "$(primefs tree "$mnt" count /nowhere 2>&1 | wc -l)" 1
fails_with 'a folder that is no mountpoint' 'no store is mounted' primefs tree "$mnt$top" count /
if [[ $(head -c 2 "$(command -v primefs)") != '#!' ]]; then # one that adds --engine=cuda to everything
	fails_with 'another engine than it was mounted with' 'mounted with the engine|no CUDA device' \
		primefs tree --engine="$(nvidia-smi -L >/dev/null 2>&1 && echo host || echo cuda)" "$mnt" count /
fi
exits 'wrong usage is noticed before' 2 primefs tree "$mnt" sisters /

mkdir -p "$mnt/new/a/b"
echo x >"$mnt/new/a/b/c"
is 'what is new is there at once' "$(primefs tree "$store" subtree /new | xargs)" \
	'/new /new/a /new/a/b /new/a/b/c'
mv "$mnt/new/a" "$mnt$top/moved"
is 'what moved, too' "$(primefs tree "$mnt" ancestors "$top/moved/b/c" | xargs)" \
	"/ $top $top/moved $top/moved/b"
rm -r "$mnt/new" "$mnt$top/moved"
ok 'what is gone is not' cmp before <(ask "$mnt")

is 'the socket is the owner'"'"'s' "$(stat -c '%F %a %u' "$store.sock")" "socket 600 $EUID"
for command in 'check' 'optimize' 'import --format=paths --at=/ -'; do
	# shellcheck disable=SC2086 # a command and its operands
	fails_with "$command is still refused with the pid" "\\b$(pid_of "$mnt")\\b" \
		primefs $command "$store"
done

# Who does not read keeps nobody waiting, and who is gone is forgotten.
mkfifo fifo
primefs tree "$mnt" subtree / >fifo &
reader=$!
exec 5<fifo
read -r -u 5 line
is 'an answer that is not read to its end' "$line" /
ok 'holds up no change' timeout 20 mkdir "$mnt/meanwhile"
ok 'and no other answer' timeout 20 primefs tree "$mnt" count /meanwhile
rmdir "$mnt/meanwhile"
cat <&5 >rest
exec 5<&-
wait "$reader"
is 'and is what it was when it was asked' "$(wc -l <rest)" 49999
for ((i = 0; i < 40; i++)); do
	primefs tree "$mnt" subtree / | head -n 1 >/dev/null || true
done
for ((i = 0; i < 8; i++)); do
	primefs tree "$mnt" subtree / >fifo &
	reader=$!
	exec 5<fifo
	kill -9 "$reader"
	wait "$reader" 2>/dev/null || true
	exec 5<&-
done
is 'clients that are killed leave nothing behind' "$(primefs tree "$mnt" count /)" 50000

for ((i = 0; i < 6; i++)); do
	primefs tree "$mnt" subtree / >"answer$i" &
done
for ((i = 0; i < 300; i++)); do mkdir "$mnt/d$i"; done
wait
whole=0
for ((i = 0; i < 6; i++)); do
	n=$(wc -l <"answer$i")
	((n >= 50000 && n <= 50300)) && [[ $(tail -n 1 "answer$i") == /* ]] && whole=$((whole + 1))
done
is 'answers while much changes are whole' "$whole" 6

unmount_store
ok 'the socket goes with the daemon' test ! -e "$store.sock"
is 'the command reads the store itself again' "$(primefs tree "$store" count /)" 50300

mount_store
daemon=$(pid_of "$mnt")
kill -9 "$daemon"
wait_for 5 gone "$daemon"
ok 'a daemon that was killed leaves its socket' test -S "$store.sock"
ok 'which misleads nobody' primefs tree "$store" count /
primefs umount "$mnt"
mount_store
is 'and is replaced' "$(primefs tree "$mnt" count /)" 50300
unmount_store
is 'one file is left' "$(ls -- "$store"*)" "$store"

mkdir second
mount_store -o ro
primefs mount -o ro "$store" second
is 'of two readers one answers' "$(primefs tree "$store" count /)" 50300
is 'by its own mountpoint, too' "$(primefs tree second count /)" 50300
unmount_store
is 'and when it is gone the command reads' "$(primefs tree second count /)" 50300
primefs umount second
is 'one file is left then, too' "$(ls -- "$store"*)" "$store"

# The socket's name is taken: the mountpoint says where the daemon listens.
ask "$store" >now
mkdir -p "$store.sock/in the way"
mount_store
ok 'a name that is taken keeps nobody from asking' cmp now <(ask "$store")
is 'by the mountpoint, too' "$(primefs info "$mnt" | awk '$1 == "nodes" {print $2}')" 50300
is 'statements are the daemon'"'"'s' "$(touch "$mnt/late" && primefs query --tsv "$store" "SELECT name FROM nodes WHERE name = 'late'" | tail -n 1)" late
rm "$mnt/late"
unmount_store
ok 'what is in the way stays' test -d "$store.sock/in the way"
rm -r "$store.sock"

long=$(printf 'n%.0s' {1..150})
mkdir "$long"
cp "$store" "$long/$long.pfs"
primefs mount "$long/$long.pfs" "$mnt"
is 'long paths are no obstacle' "$(primefs tree "$long/$long.pfs" count /)" 50300
primefs umount "$mnt"
ln -s "$store" link.pfs
mount_store
is 'nor are links' "$(primefs tree link.pfs count /)" 50300

if ((EUID == 0)); then
	user() { as "$nobody" env HOME=/ "$@"; }
	chmod 755 "$work"
	chmod 644 "$store"
	reachable_programs
	fails_with 'another user is not answered' 'mounted by another user' \
		user primefs tree "$store" count /
	unmount_store
	mkdir -m 1777 sticky
	cp "$store" sticky/s.pfs
	chmod 644 sticky/s.pfs
	# Not by as(): $! is to be the very process, which would else outlive the test.
	setpriv --reuid 1234 --regid 1234 --clear-groups --inh-caps=-all -- \
		"$probes/listen" "$work/sticky/s.pfs.sock" >/dev/null 2>&1 &
	stranger=$!
	cleanup_fn kill_own "$stranger"
	wait_for 10 test -S sticky/s.pfs.sock
	ok 'a socket of another is not spoken to' primefs tree sticky/s.pfs count /
	primefs mount "$work/sticky/s.pfs" "$mnt"
	is 'but the daemon is' "$(touch "$mnt/late" && primefs tree sticky/s.pfs count /)" 50301
	primefs umount "$mnt"
	kill "$stranger"
	ok 'and the stranger is gone' wait_for 10 gone "$stranger"
	# The socket's name is a stranger's for good, and the last mount that says it is of that store is his,
	# too: that one is not even asked, and would never answer.
	rm -f sticky/s.pfs.sock
	mkdir -p 'sticky/s.pfs.sock/in the way' trap
	chown -R 1234 sticky/s.pfs.sock
	primefs mount "$work/sticky/s.pfs" "$mnt"
	exec 9<>/dev/fuse
	if mount -i -t fuse.primefs -o fd=9,rootmode=40000,user_id=1234,group_id=1234,allow_other \
		"$work/sticky/s.pfs" "$work/trap" 2>mount.err; then
		cleanup_fn umount -l "$work/trap"
		is 'the daemon is found by the mount of one who is trusted' \
			"$(timeout 20 primefs tree sticky/s.pfs count /)" 50301
		umount -l trap
	else
		skip "the daemon is found by the mount of one who is trusted: $(head -n 1 mount.err)"
	fi
	exec 9>&-
	primefs umount "$mnt"
	mkdir theirs
	cp "$store" theirs/s.pfs
	mkdir theirs/mnt
	chown -R "$nobody" theirs
	if [[ -u $(command -v fusermount3) ]] && ((users_mount)); then
		user primefs mount "$work/theirs/s.pfs" "$work/theirs/mnt"
		is 'root is' "$(primefs tree theirs/s.pfs count /)" 50300
		user primefs umount "$work/theirs/mnt"
	else
		skip 'ordinary users may not mount'
	fi
else
	unmount_store
fi
check_store
