#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A refresh that is killed leaves each directory as it was or as it is now; the next one goes on.
# timeout: 300
. "$(dirname "$0")/../lib.sh"

cycles=20
((!PFS_LONG)) || cycles=200
RANDOM=${PFS_SEED:-$$}
echo "PFS_SEED=${PFS_SEED:-$$}"

src=$work/src
fill() { # GENERATION: every directory has other files, and one of them is elsewhere
	local dir
	rm -rf "$src"/*/moving
	for dir in "$src"/*/; do
		rm -f "$dir"*
		for name in {1..20}; do echo "$1" >"$dir$1-$name"; done
	done
	mkdir "$src/$((1 + $1 % 30))/moving"
	echo "$1" >"$src/$((1 + $1 % 30))/moving/file"
}
for i in {1..30}; do mkdir -p "$src/$i"; done
fill 0
primefs import "$src" "$store" >/dev/null

# Of each directory the generations of its files, and how many there are.
generations() {
	primefs find "$store" / -mindepth 2 -maxdepth 2 -type f -printf '%h %f\n' |
		sed 's/-.*//' | sort | uniq -c | awk '{print $1, $2, $3}'
}
show='%P|%y|%m|%l|%T@\n'
listing() { sort <<<"$1"; }
whole=1 same=1 killed=0
for ((cycle = 1; cycle <= cycles; cycle++)); do
	fill "$cycle"
	primefs refresh "$store" >/dev/null 2>&1 &
	victim=$!
	sleep "0.$(printf '%03d' $((RANDOM % 120)))"
	kill -9 "$victim" 2>/dev/null && killed=$((killed + 1))
	wait "$victim" 2>/dev/null || true
	if generations | awk '$1 != 20 || seen[$2]++ {exit 1} END {if (NR != 30) exit 1}'; then :; else
		whole=0
		generations | awk '$1 != 20 || seen[$2]++'
	fi
	primefs refresh "$store" >/dev/null || same=0
	[[ $(listing "$(primefs find "$store" / -mindepth 1 -printf "$show")") == "$(
		listing "$(cd "$src" && find . -mindepth 1 -printf "$show")"
	)" ]] || same=0
done
echo "$killed of $cycles were killed"
is 'each directory is as it was or as it is' "$whole" 1
is 'the next refresh goes on' "$same" 1
check_store

# ---- a full disk ----
# The store's has room for some of the directories, each of which gets many more files.
many=150
printf -v long '%0100d' 0
grow() { # GENERATION FILES
	local dir name
	for dir in "$src"/*/; do
		rm -rf "${dir:?}"*
		for ((name = 1; name <= $2; name++)); do : >"$dir$1-$name-$long"; done
	done
}
if ((EUID == 0)) && mkdir "$work/small" && mount -t tmpfs -o size=6m tmpfs "$work/small" 2>/dev/null; then
	rm -f "$store"
	store=$work/small/store.pfs
	for i in {31..120}; do mkdir "$src/$i"; done
	grow 0 20
	primefs import "$src" "$store" >/dev/null
	grow 1 "$many"
	status=0
	primefs refresh "$store" >"$work/said" 2>&1 || status=$?
	is 'a refresh that fills the disk fails' "$status" 3
	is 'and says so in one line, with the directory and what it needs' \
		"$(sed -E 's,/[0-9]+: ,/N: ,; s,[0-9]+ bytes,N bytes,' "$work/said")" \
		"primefs refresh: /N: its changes need up to N bytes free where the store is: refreshing: No space left on device"
	generations >"$work/generations"
	cut -d ' ' -f 1 "$work/generations" | sort | uniq -c
	ok 'some directories are as they are now' grep -q "^$many .*/[0-9]* 1$" "$work/generations"
	ok 'others as they were' grep -q '^20 .*/[0-9]* 0$' "$work/generations"
	is 'each is the one or the other' "$(awk -v many="$many" \
		'!($1 == 20 && $3 == 0 || $1 == many && $3 == 1) || seen[$2]++' "$work/generations")" ''
	is 'and there' "$(wc -l <"$work/generations")" 120
	check_store
	mount -o remount,size=200m "$work/small"
	ok 'with room the next one goes on' primefs refresh "$store"
	is 'to the end' "$(primefs find "$store" / -mindepth 1 -printf '%P %y %T@\n' | sort)" \
		"$(cd "$src" && find . -mindepth 1 -printf '%P %y %T@\n' | sort)"
	check_store

	# What goes needs no more room than the store has, and what comes only its own.
	rm -rf "$src" "$store"*
	mkdir -p "$src/one" "$src/two"
	(cd "$src" && touch one/{1..5000} two/{1..5000})
	mount -o remount,size=9m "$work/small"
	primefs import -q "$src" "$store"
	rm -rf "$src/two"
	ok 'a directory of 5,000 goes from a small filesystem' primefs refresh "$store"
	is 'with all in it' "$(primefs find "$store" / | wc -l)" 5002
	touch "$src"/one/{a..z}{1..40}
	ok '1,040 files come to it' primefs refresh "$store"
	is 'all of them' "$(primefs find "$store" / | wc -l)" 6042
	check_store
else
	skip 'skipped: a full disk needs root and a tmpfs'
fi
