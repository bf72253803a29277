#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Inode numbers are primes, and the attributes user.primefs.* tell what they make.
. "$(dirname "$0")/../lib.sh"
requires fuse getfattr setfattr factor

attribute() { getfattr --only-values -n "user.primefs.$1" "$2" 2>/dev/null; }
inode() { stat -c %i "$1"; }
is_prime() { [[ $(factor "$1") == "$1: $1" ]]; }

mount_store
mkdir -p "$mnt/a/b/c"
echo text >"$mnt/a/b/c/file"
ln -s nowhere "$mnt/a/link"
mkfifo "$mnt/a/fifo"

is 'the root is 2' "$(inode "$mnt")" 2
for name in a a/b a/b/c a/b/c/file a/link a/fifo; do
	ok "the number of $name is prime" is_prime "$(inode "$mnt/$name")"
done
for name in a a/b a/b/c; do
	ok "the directory $name is below 2^32" test "$(inode "$mnt/$name")" -lt 4294967296
done
for name in a/b/c/file a/link a/fifo; do
	ok "$name is above 2^32" test "$(inode "$mnt/$name")" -gt 4294967296
done
is 'ls -i says the same' "$(ls -di "$mnt/a")" "$(inode "$mnt/a") $mnt/a"

for name in . a a/b/c/file; do
	is "user.primefs.prime of $name" "$(attribute prime "$mnt/$name")" "$(inode "$mnt/$name")"
done
is 'user.primefs.path of a file' "$(attribute path "$mnt/a/b/c/file")" /a/b/c/file
is 'user.primefs.path of the root' "$(attribute path "$mnt")" /
is 'user.primefs.code of the root' "$(attribute code "$mnt")" 2
product=2
for name in a a/b a/b/c; do
	product=$((product * $(inode "$mnt/$name")))
	is "user.primefs.code of $name is the product of the primes on its path" \
		"$(attribute code "$mnt/$name")" "$product"
done
# 4 small primes and one above 2^32 may pass 2^63: factor says what the code is made of
factors=$(for name in . a a/b a/b/c a/b/c/file; do inode "$mnt/$name"; done | sort -n | xargs)
is 'the code of a file is the product too' \
	"$(factor "$(attribute code "$mnt/a/b/c/file")" | cut -d: -f2- | xargs)" "$factors"

is 'user.primefs.ancestors of the root' "$(attribute ancestors "$mnt")" ''
is 'user.primefs.ancestors of a file: root first' "$(attribute ancestors "$mnt/a/b/c/file")" \
	"$(for name in . a a/b a/b/c; do inode "$mnt/$name"; done)"

# Longer than any that the engine keeps as a number: 600 primes make 7,000 bits.
chain=$mnt/$(printf 'd/%.0s' {1..600})
mkdir -p "$chain"
attribute ancestors "$chain" >"$work/above"
is 'a directory 600 deep has as many ancestors' "$(grep -c . "$work/above")" 600
is 'of which the first is the root' "$(head -n 1 "$work/above")" 2
python 'its code is their product' -c 'import math, sys
above = [int(line) for line in open(sys.argv[1])]
sys.set_int_max_str_digits(0) if hasattr(sys, "set_int_max_str_digits") else None
assert len(above) == 600 and math.prod(above) * int(sys.argv[2]) == int(sys.argv[3])' \
	"$work/above" "$(inode "$chain")" "$(attribute code "$chain")"
is 'it is found below each' "$(primefs tree "$mnt" count "/$(printf 'd/%.0s' {1..300})")" 301

before=$(attribute prime "$mnt/a/b/c/file")
mv "$mnt/a/b" "$mnt/moved"
is 'a move keeps the number' "$(inode "$mnt/moved/c/file")" "$before"
is 'and changes the path' "$(attribute path "$mnt/moved/c/file")" /moved/c/file
is 'and the code' "$(attribute code "$mnt/moved/c")" \
	"$((2 * $(inode "$mnt/moved") * $(inode "$mnt/moved/c")))"
is 'and the ancestors' "$(attribute ancestors "$mnt/moved/c/file")" \
	"$(for name in . moved moved/c; do inode "$mnt/$name"; done)"

is 'they are never listed' "$(getfattr -d -m - "$mnt/moved/c/file" 2>&1)" ''
for name in prime code ancestors path; do
	fails_with "user.primefs.$name cannot be set" 'not permitted' \
		setfattr -n "user.primefs.$name" -v 3 "$mnt/moved/c/file"
	fails_with "user.primefs.$name cannot be removed" 'not permitted' \
		setfattr -x "user.primefs.$name" "$mnt/moved/c/file"
done
setfattr -n user.own -v mine "$mnt/moved/c/file"
ok 'cp -a works' cp -a "$mnt/moved" "$mnt/copy"
is 'and takes the ordinary attributes along' "$(getfattr --only-values -n user.own "$mnt/copy/c/file")" mine
not_ok 'not the number' test "$(inode "$mnt/copy/c/file")" = "$(inode "$mnt/moved/c/file")"

old=$(inode "$mnt/copy/c/file")
for ((i = 0; i < 20; i++)); do
	rm "$mnt/copy/c/file"
	echo again >"$mnt/copy/c/file"
done
rm "$mnt/copy/c/file"
remount_store
for ((i = 0; i < 50; i++)); do : >"$mnt/copy/c/$i"; done
not_ok 'a number is never used again' grep -qx "$old" <(stat -c %i "$mnt"/copy/c/*)
is 'numbers survive a remount' "$(inode "$mnt/moved/c/file")" "$before"
fails_with 'link is refused' 'not permitted' ln "$mnt/moved/c/file" "$mnt/hard"
