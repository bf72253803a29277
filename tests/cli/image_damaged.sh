#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Commands on a store whose image file is damaged answer without it and say so in one line; of one that is merely
# outdated they say nothing.
. "$(dirname "$0")/../lib.sh"
requires awk

image=$store.img
awk 'BEGIN { for (i = 0; i < 70000; i++) printf "/d%d/f%d\n", i % 50, i }' >"$work/list"
primefs import --quiet --format=paths "$work/list" "$store"
is_new() { [[ -e $image && ! -e $image.part && $(stat -c %i "$image") != "${1-}" ]]; }
ok 'import leaves an image file' wait_for 60 is_new
cp -p "$image" "$work/whole"
expected=$(primefs find "$store" -name '*99' | sort | sha256sum)

# says DESCRIPTION PATTERN: the answer is the same, and one line, of that pattern, is said; '': none.
says() {
	is "$1: the answer" "$(primefs find "$store" -name '*99' 2>"$work/said" | sort | sha256sum)" "$expected"
	is "$1: what is said" "$(grep -c "^primefs: .*store.pfs.img: $2" "$work/said")/$(wc -l <"$work/said")" "$([[ $2 ]] && echo 1/1 || echo 0/0)"
}
# spoil OFFSET COUNT: of a whole one.
spoil() {
	cp -p "$work/whole" "$image"
	head -c "$2" /dev/urandom | dd of="$image" bs=1 seek="$1" conv=notrunc status=none
}
unused='damaged, and not used; it can be removed, or made anew by primefs optimize --image'

says 'a whole one' ''
spoil 40 8
says 'a damaged header' "$unused"
spoil 4096 8
says 'a damaged table' "$unused"
cp -p "$work/whole" "$image"
truncate -s $(($(stat -c %s "$image") / 2)) "$image"
says 'a cut one' "$unused"
truncate -s 20 "$image"
says 'cut within its header' "$unused"
is 'a mount is not needed to say it once' "$(primefs info "$store" 2>&1 | grep -c "$unused")" 1

before=$(stat -c %i "$image")
primefs optimize --image "$store"
ok 'optimize --image makes it anew' wait_for 60 is_new "$before"
says 'which is whole' ''

spoil $(($(stat -c %s "$work/whole") / 2)) 65536
is 'damage that is met with later' "$(primefs check "$store" 2>&1 >"$work/said" | grep -c 'store.pfs.img: damaged, or changed by somebody')" 1
not_ok 'and then it is gone' test -e "$image"

cp -p "$work/whole" "$image"
before=$(stat -c %i "$image")
head -n 20000 "$work/list" | sed 's/$/9x/' >"$work/more"
primefs import --quiet --format=paths --at=/more "$work/more" "$store"
ok 'more than an eighth is new' wait_for 60 is_new "$before"
cp -p "$work/whole" "$image"
says 'an outdated one' ''
