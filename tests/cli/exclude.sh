#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What import and refresh leave out: rules, caches, .gitignore files; git agrees where there is one.
. "$(dirname "$0")/../lib.sh"

src=$work/src
mkdir -p "$src"/{build,lib/build,lib/deep,cache/sub,doc}
for name in a.o b.c build/x lib/a.o lib/build/y lib/keep.o lib/deep/z.tmp lib/deep/z.c cache/data cache/sub/more doc/one.tmp; do
	echo "$name" >"$src/$name"
done
echo 'Signature: 8a477f597d28d172789f06886806bc55' >"$src/cache/CACHEDIR.TAG"
paths() { primefs find "$store" / -mindepth 1 -printf '%P\n' | sort | xargs; }
import() {
	rm -f "$store"
	primefs import -q "$@" "$src" "$store"
}

import --exclude='*.o' --exclude=build/
is 'rules of names' "$(paths)" \
	'b.c cache cache/CACHEDIR.TAG cache/data cache/sub cache/sub/more doc doc/one.tmp lib lib/deep lib/deep/z.c lib/deep/z.tmp'
import --exclude=/build --exclude='lib/**/z.*' --exclude='!lib/deep/z.c' --exclude-caches
is 'rules of paths, and caches' "$(paths)" \
	'a.o b.c cache cache/CACHEDIR.TAG doc doc/one.tmp lib lib/a.o lib/build lib/build/y lib/deep lib/deep/z.c lib/keep.o'
printf '# a comment\n*.tmp\ncache\n' >"$work/rules"
import --exclude-from="$work/rules"
is 'rules of a file' "$(paths)" 'a.o b.c build build/x doc lib lib/a.o lib/build lib/build/y lib/deep lib/deep/z.c lib/keep.o'
fails_with 'no such file' "$work/none: No such file" primefs import --exclude-from="$work/none" "$src" "$work/none.pfs"
fails_with 'rules are for folders' 'exclude is for --format=dir' primefs import --format=paths --exclude=x - "$work/none.pfs"

# ---- refresh leaves alone what it is told to ----
was=$(paths)
rm "$src/a.o"
echo x >"$src/new.tmp"
echo x >"$src/new.o"
mkdir "$src/lib/cache" && echo x >"$src/lib/cache/file"
ok 'refresh with rules' primefs refresh --exclude-from="$work/rules" --exclude='*.o' "$store"
is 'adds and removes nothing that they fit' "$(paths)" "$was"
primefs refresh --exclude-from="$work/rules" "$store" >/dev/null
is 'and the rest when they are fewer' "$(paths)" "${was/a.o b.c/b.c}$(printf ' new.o')"
printf '\357\273\277*.o\n*.tmp\ncache\n' >"$work/marked"
echo x >"$src/more.o"
primefs refresh --exclude-from="$work/marked" "$store" >/dev/null
is 'a byte order mark is in no rule' "$(paths | tr ' ' '\n' | grep -c more.o)" 0
rm "$src/more.o"

# ---- the store remembers ----
import --exclude-from="$work/rules" --exclude='/lib/build/' --exclude-caches --exclude='!z.tmp'
was=$(paths)
echo x >"$src/lib/new.tmp"
echo x >"$src/cache/new"
ok 'refresh without rules' primefs refresh "$store"
is 'leaves out what the import did' "$(paths)" "$was"
primefs optimize "$store"
primefs refresh "$store" >/dev/null
is 'after optimize, too' "$(paths)" "$was"
is 'nobody sees the rules' "$(primefs query "$store" "SELECT count(*) FROM pragma_table_xinfo('nodes') WHERE name LIKE '%left_out%'" | tail -n 1)" 0
ok 'and nothing if it is told so' primefs refresh --exclude= "$store"
is 'all is there' "$(paths | xargs -n 1 | grep -c '')" "$(cd "$src" && find . -mindepth 1 | grep -c '')"
rm "$src/lib/new.tmp" "$src/cache/new"

# ---- .gitignore ----
printf '*.o\n/build/\n!keep.o\n' >"$src/.gitignore"
printf '*.tmp\n!/a.o\n' >"$src/lib/.gitignore"
rm -f "$src/new.tmp" "$src/new.o"
rm -r "$src/lib/cache"
import --gitignore
wanted='.gitignore b.c cache cache/CACHEDIR.TAG cache/data cache/sub cache/sub/more doc doc/one.tmp lib lib/.gitignore lib/a.o lib/build lib/build/y lib/deep lib/deep/z.c lib/keep.o'
is '.gitignore files' "$(paths)" "$wanted"
if command -v git >/dev/null; then
	git init -q "$src" 2>/dev/null
	is 'git says so, too' "$(cd "$src" && git ls-files -co --exclude-standard | sort | xargs)" \
		"$(primefs find "$store" / -type f -printf '%P\n' | sort | xargs)"
	# and of random rules, each folder having its own
	echo "PFS_SEED=${PFS_SEED:-$$}"
	RANDOM=${PFS_SEED:-$$}
	pieces=(a b c A 1 - '*' '?' '[a-c]' '[!a]' '[^[:digit:]]' '[[:alpha:]]' '[[:upper:]-c]' '[[:digit:]b]' '[[:none:]a]'
		'[[:lower]' '[]a]' '[a' '[[:' '\a' '[\a-b]' '[a-[:digit:]]' '**' '/' '**/' '[[:xdigit:][:punct:]]')
	letters=(a b c A B 1 - ']' ':' _ x/ b/ '[')
	random=$work/random
	for ((i = 0; i < 60; i++)); do
		mkdir -p "$random/$i"
		for ((n = 0; n < 4; n++)); do
			rule=
			((RANDOM % 5)) || rule='!'
			for ((k = RANDOM % 4; k >= 0; k--)); do rule+=${pieces[RANDOM % ${#pieces[@]}]}; done
			[[ $rule == *[!/*]'**'* ]] || echo "$rule" # of which git says one thing and does another
		done >"$random/$i/.gitignore"
		for ((n = 0; n < 25; n++)); do
			name=x
			((RANDOM % 3)) || name=
			for ((k = RANDOM % 3; k >= 0; k--)); do name+=${letters[RANDOM % ${#letters[@]}]}; done
			name=$random/$i/${name#x}
			name=${name%/}
			[[ -d ${name%/*} ]] || mkdir "${name%/*}" || continue
			[[ -d $name ]] || true >"$name"
		done 2>/dev/null
	done
	git init -q "$random" 2>/dev/null
	(cd "$random" && git -c core.quotePath=false ls-files -zco --exclude-standard | tr '\0' '\n' | sort >"$work/git")
	rm -rf "$random/.git"
	primefs import -q --gitignore "$random" "$work/random.pfs"
	primefs find "$work/random.pfs" / -type f -printf '%P\n' | sort >"$work/own"
	ok 'so it does of random rules' diff "$work/git" "$work/own"
	ok 'of which some leave out something' test "$(wc -l <"$work/own")" -lt "$(find "$random" -type f | wc -l)"
	rm -rf "$src/.git"
else
	skip 'no git'
fi
echo x >"$src/lib/deep/new.tmp"
echo x >"$src/lib/deep/new.c"
primefs refresh --gitignore "$store" >/dev/null
is 'refresh reads them from the top down' "$(paths)" "${wanted/lib\/deep\/z.c/lib\/deep\/new.c lib\/deep\/z.c}"
check_store
if has_fuse; then
	mount_store
	echo x >"$src/lib/deep/more.tmp"
	echo x >"$src/lib/deep/more.c"
	primefs refresh --exclude-from="$work/rules" "$mnt" >/dev/null
	is 'the daemon is told the rules' "$(cd "$mnt/lib/deep" && echo ./*)" './more.c ./new.c ./z.c'
	unmount_store
fi
