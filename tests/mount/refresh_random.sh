#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Random changes of a folder, then a refresh, or with -o watch none: the mount is what the folder is.
# timeout: 300
. "$(dirname "$0")/../lib.sh"
requires fuse

n_rounds=150
((!PFS_LONG)) || n_rounds=5000
seed=${PFS_SEED:-$$}
echo "PFS_SEED=$seed"

src=$work/src
mkdir -p "$src"/{a,b}/{c,d}
for name in a/1 a/c/2 b/3 4; do echo "$name" >"$src/$name"; done
primefs import -q "$src" "$store"

show='%P|%y|%m|%U|%s|%T@|%l\n'
listing() { (cd "$1" && find . -mindepth 1 ! -type d -printf "$show" -o -mindepth 1 -printf '%P|%y|%m|%U\n' | sort); }
equal() { [[ $(listing "$src") == "$(listing "$mnt")" ]]; }

names=(a b c d e 1 2 3)
pick() { # *from or *to: a path of one to three names
	local -n path=$1
	path=$src/${names[RANDOM % 8]}
	((RANDOM % 2)) || path+=/${names[RANDOM % 8]}
	((RANDOM % 3)) || path+=/${names[RANDOM % 8]}
}
change() {
	local from to
	pick from
	pick to
	case $((RANDOM % 12)) in
	0) mkdir -p "$from" ;;
	1 | 2) echo "$RANDOM" >"$from" ;;
	3) echo "$RANDOM" >>"$from" ;;
	4) mv "$from" "$to" ;;
	5) mv -T "$from" "$to" ;;
	6) "$probes/exchange" "$from" "$to" ;;
	7) rm -rf "$from" ;;
	8) chmod "$((RANDOM % 2 ? 700 : 755))" "$from" ;;
	9) touch -d "@$((RANDOM * 1000)).$RANDOM" "$from" ;;
	10) ln "$from" "$to" ;;
	11) echo "$RANDOM" >"$work/new" && mv -T "$work/new" "$from" ;;
	esac 2>/dev/null || true
}
touch "$work/one" "$work/other"
number=$(stat -c %i "$work/one")
"$probes/exchange" "$work/one" "$work/other"
is 'names can be exchanged' "$(stat -c %i "$work/other")" "$number"
rounds() { rounds_ "$@" >"$work/log" 2>&1 || { tail -n 12 "$work/log"; return 1; }; }
rounds_() { # SECONDS COMMAND...: after each round's changes, and how long it may be until they show
	local round n wait=$1
	shift
	for ((round = 1; round <= n_rounds; round++)); do
		for ((n = RANDOM % 5 + 1; n; n--)); do change; done
		"$@"
		if ! wait_for "$wait" equal; then
			echo "round $round"
			diff <(listing "$src") <(listing "$mnt") || true
			return 1
		fi
	done
}
names_of() { (cd "$1" && find . -mindepth 1 -printf '%P|%y\n' | sort); }
quick_first() { # finds each name; files that changed are for the other refresh
	primefs refresh --quick "$mnt"
	if [[ $(names_of "$src") != "$(names_of "$mnt")" ]]; then
		echo 'after --quick'
		diff <(names_of "$src") <(names_of "$mnt") || true
		quick=wrong
	fi
	primefs refresh "$mnt"
}
nothing_differs() { # where there is rsync, it finds nothing to do
	if command -v rsync >/dev/null; then
		[[ -z $(rsync -anic --delete --no-times --omit-dir-times "$src/" "$mnt/") ]]
	else
		diff -r --no-dereference "$src" "$mnt"
	fi
}
# A refresh that began while the folder changed may still be at it.
same_content() { ok "$1" wait_for 30 nothing_differs; }

RANDOM=$seed
mount_store
ok 'random changes, each time refreshed' rounds 0 primefs refresh "$mnt"
same_content 'the content is the same'
quick=right
ok 'random changes, refreshed quickly and then wholly' rounds 0 quick_first
is 'quick refreshes have found each name' "$quick" right
same_content 'the content is the same again'
unmount_store
check_store

mount_store -o watch
ok 'random changes, watched' rounds 30 true
same_content 'the content is the same, watched'
grep "^source" "$mnt/.query/as_of"
unmount_store
check_store
