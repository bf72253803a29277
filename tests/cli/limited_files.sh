#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Where a process may open few files (ulimit -n), a command does what it is told or says in one line what it lacks; it
# takes nothing that it cannot open for unreadable, or for gone.
# shellcheck disable=SC2154 # variables of tests/lib.sh
. "$(dirname "$0")/../lib.sh"

mkdir -p "$work"/src/a/b/c "$work"/src/d
echo x >"$work/src/a/b/c/f"
echo y >"$work/src/a/g"
echo none >"$work/src/d/.gitignore"

# limited DESCRIPTORS COMMAND...: sets $code, and $said to what it printed
limited() {
	code=0
	said=$(ulimit -n "$1" && exec "${@:2}" 2>&1) || code=$?
}

too_few() { # COMMAND
	((code == 3)) && [[ $(wc -l <<<"$said") == 1 && $said =~ ^"primefs $1: ".*([Tt]oo many open files|ulimit -n) ]]
}

refused=0 done=0
for option in --content=link --content=copy --gitignore --exclude-caches; do
	for n in {4..12}; do
		limited "$n" primefs import -q "$option" "$work/src" "$store"
		if ((code)); then
			ok "an import with $n descriptors and $option says that they are too few" too_few import
			ok 'and leaves nothing' test -z "$(find "$work" -name 'store.pfs*')"
			refused=$((refused + 1))
		else
			is "it has all, or nothing: $n, $option" "$(primefs export "$store" | wc -l)" 7
			rm "$store"*
			done=$((done + 1))
		fi
	done
done
ok 'both were met' test "$refused" -gt 0 -a "$done" -gt 0

primefs import -q "$work/src" "$store"
mkdir "$work/src/a/n"
mv "$work/src/a/g" "$work/src/d"
refused=0 done=0
for n in {4..16}; do
	limited "$n" primefs refresh --dry-run --list "$store"
	if ((code)); then
		ok "a refresh with $n descriptors says that they are too few" too_few refresh
		refused=$((refused + 1))
	else
		is "it finds all, or nothing: $n" "$(grep -c -e '^added /a/n$' -e '^moved /d/g <- /a/g$' <<<"$said")" 2
		done=$((done + 1))
	fi
done
ok 'both were met' test "$refused" -gt 0 -a "$done" -gt 0
check_store
