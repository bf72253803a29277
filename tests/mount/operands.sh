#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ls, find and du take any operand that lies in a mount, whatever its type: sockets, fifos, devices, symlinks to
# it, `.`; they print what the system's programs print there.
. "$(dirname "$0")/../lib.sh"
requires fuse

src=$work/src
mkdir -p "$src/d"
mkfifo "$src/d/pipe"
echo x >"$src/d/file"
ln -s file "$src/d/link"
ln -s sock "$src/d/to-sock"
ln -s ../e "$src/d/to-e"
mkdir "$src/e"
: >"$src/e/f"
((EUID)) || mknod "$src/d/disk" b 259 12
"$probes/listen" "$src/d/sock" >/dev/null 2>&1 &
listener=$!
cleanup_fn kill_own "$listener"
wait_for 10 test -S "$src/d/sock"
touch -d '2020-02-03 04:05:06 UTC' "$src"/d/*
primefs import --quiet --content=copy "$src" "$store"
is 'a socket is imported as one' "$(primefs query "$store" "SELECT type FROM nodes WHERE name = 'sock'" | tail -n 1)" s
mount_store
ln -s "$mnt/d/sock" "$work/elsewhere"

same() { # COMMAND OPERANDS...
	is "$*" "$(primefs "$@" 2>&1)" "$("$@" 2>&1)"
}
for name in sock pipe file link to-sock disk; do
	[[ -e $mnt/d/$name || -L $mnt/d/$name ]] || continue
	same ls -l "$mnt/d/$name"
	same ls -d "$mnt/d/$name"
	same find "$mnt/d/$name" -printf '%y %s %p\n'
	same du -a "$mnt/d/$name"
done
same ls -l "$mnt/d"
same find "$mnt/d" -type s
is 'find of both' "$(primefs find "$mnt" -type s -o -type p | sort)" "$(find "$mnt" -type s -o -type p | sort)"
same du -a "$mnt/d/sock" "$mnt/d/pipe"
is 'a symlink to a socket, from elsewhere' "$(primefs ls -l "$work/elsewhere")" "$(ls -lL "$work/elsewhere")"
cd "$mnt/d"
same ls -l sock
same ls -la .
for options in '' -l -d -a -R -1 -ld; do
	# shellcheck disable=SC2086 # none, or one
	same ls $options to-e
done
same ls to-e file to-sock
same ls to-e/
same find . -type s
same du -a sock .
same du -s .
ln -s "$work" outside
fails_with 'a symlink that leads out' 'outside: lies in no mounted store' primefs ls outside
is 'is shown as itself' "$(primefs ls -d outside)" outside
cd "$work"
unmount_store
check_store
